"""A platform that is pushed to: order, cards, failing sends, through the whole gateway."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from adapters.base import ConversationKind, NotSent, Rejected, Sent, TapResult, TapVerdict, Uncertain, Verdict
from adapters.testing import MemoryAdapter
from agent.control.ports import Role
from tests.gateway.running import PATIENCE_S, Running, running

PEOPLE = {"memory": {"42": Role.ADMIN, "43": Role.OPERATOR, "44": Role.USER}}


@asynccontextmanager
async def chatting(home: Path) -> AsyncIterator[tuple[MemoryAdapter, Running]]:
    """A gateway with a platform in memory."""
    adapter = MemoryAdapter()
    async with running(home, adapters=[adapter], people=PEOPLE) as daemon:
        yield adapter, daemon


async def until_texts(adapter: MemoryAdapter, wanted: int, chat: str | None = None) -> list[str]:
    """The texts of a chat, once there are ``wanted`` of them."""
    async with asyncio.timeout(PATIENCE_S):
        await adapter.until(lambda shown: len(shown.texts(chat)) >= wanted)
    return adapter.texts(chat)


async def test_answers_come_in_the_order_of_the_messages(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        for number in range(4):
            assert (await adapter.say(f"$ echo {number}")).verdict is Verdict.ACCEPTED
        texts = await until_texts(adapter, 4)
    assert [text.split()[1] for text in texts] == ["0", "1", "2", "3"]


async def test_strangers_get_no_service_and_leave_no_row(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        assert (await adapter.say("$ echo hi", sender="666")).verdict is Verdict.STRANGER
    rows = sqlite3.connect(home_path / "state.db").execute("SELECT count(*) FROM inbox").fetchone()
    assert rows == (0,)


async def test_a_redelivered_message_is_answered_once(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        await adapter.say("$ echo once", event_key="memory:7")
        assert (await adapter.say("$ echo once", event_key="memory:7")).verdict is Verdict.DUPLICATE
        await adapter.say("$ echo two")
        assert len(await until_texts(adapter, 2)) == 2


async def test_a_card_is_shown_tapped_and_ended(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        await adapter.say("$ rm -rf build")
        async with asyncio.timeout(PATIENCE_S):
            await adapter.until(lambda shown: bool(shown.cards()))
        (card,) = adapter.cards()
        result = await tapped(adapter, "once")
        assert (result.verdict, result.outcome) == (TapVerdict.SETTLED, "approved")
        async with asyncio.timeout(PATIENCE_S):
            await adapter.until(lambda shown: shown.cards()[0].end is not None)
        end = adapter.cards()[0].end
        assert end is not None
        assert (end.outcome, end.choice, end.by) == ("approved", "once", "memory:42")
        late = await adapter.tap(card, "once")
        assert late.verdict is TapVerdict.ALREADY_SETTLED


async def tapped(adapter: MemoryAdapter, choice: str, *, sender: str = "42") -> TapResult:
    """Tap the first card, again while its place is not stored yet: that is what a person would do."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            result = await adapter.tap(adapter.cards()[0], choice, sender=sender)
            if result.verdict is not TapVerdict.NOT_YOURS:
                return result
            await asyncio.sleep(0.01)


async def test_taps_of_others_and_on_other_messages_change_nothing(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, daemon):
        await adapter.say("$ rm -rf build", chat="group", kind=ConversationKind.GROUP)
        async with asyncio.timeout(PATIENCE_S):
            await adapter.until(lambda shown: bool(shown.cards()))
        (card,) = adapter.cards()
        for sender in ("43", "44", "666"):
            assert (await adapter.tap(card, "once", sender=sender)).verdict is TapVerdict.NOT_YOURS
        for place in (Sent("other-chat", card.sent.message), Sent(card.sent.chat, "other-message")):
            replayed = await adapter.tap(replace(card, sent=place), "once")
            assert replayed.verdict is TapVerdict.NOT_YOURS
        assert card.end is None
        await tapped(adapter, "deny")
        assert "Denied" in (await until_texts(adapter, 1))[0]
        del daemon


async def test_a_users_card_is_answered_by_an_operator_of_that_chat(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        await adapter.say("$ rm -rf build", sender="44", chat="group", kind=ConversationKind.GROUP)
        async with asyncio.timeout(PATIENCE_S):
            await adapter.until(lambda shown: bool(shown.cards()))
        assert (await adapter.tap(adapter.cards()[0], "once", sender="44")).verdict is TapVerdict.NOT_YOURS
        result = await tapped(adapter, "once", sender="43")
        assert result.verdict is TapVerdict.SETTLED


async def test_what_was_certainly_not_sent_is_sent_again_unmarked(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        adapter.fail_next(NotSent("429", retry_after_s=0.2))
        await adapter.say("$ echo hi")
        await until_texts(adapter, 1)
        assert [shown.part.repeated for shown in adapter.shown if shown.part] == [False]
        assert adapter.calls == ["send", "send"]


async def test_what_may_have_arrived_is_sent_once_more_marked_and_then_given_up(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        adapter.fail_next(Uncertain("cut"), Uncertain("cut again"))
        await adapter.say("$ echo one")
        await until_texts(adapter, 2)
        await adapter.say("$ echo two")
        await until_texts(adapter, 3)
        assert [shown.part.repeated for shown in adapter.shown if shown.part] == [False, True, False]


async def test_bad_formatting_falls_back_to_the_plain_text_once(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        adapter.fail_next(Rejected("can't parse entities", formatting=True))
        await adapter.say("$ echo hi")
        await until_texts(adapter, 1)
        (shown,) = adapter.shown
        assert shown.part is not None
        assert shown.part.plain is True


async def test_a_chat_that_fails_never_holds_up_another(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        adapter.fail_next(NotSent("flood", retry_after_s=3_600))
        await adapter.say("$ echo stuck", sender="42")
        async with asyncio.timeout(PATIENCE_S):
            await adapter.until(lambda shown: shown.calls == ["send"])
        await adapter.say("$ echo free", sender="43")
        assert "free" in (await until_texts(adapter, 1, chat="43"))[0]


async def test_what_can_never_be_sent_becomes_a_dead_letter_and_the_rest_goes_on(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        adapter.fail_next(Rejected("blocked by the user"))
        await adapter.say("$ echo one")
        await adapter.say("$ echo two")
        assert "two" in (await until_texts(adapter, 1))[0]
    rows = sqlite3.connect(home_path / "state.db").execute("SELECT error FROM outbox WHERE state = 'dead'").fetchall()
    assert rows == [("blocked by the user",)]


async def test_a_card_that_no_place_can_show_is_denied_at_once(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        adapter.fail_next(Rejected("cannot show cards"))
        await adapter.say("$ rm -rf build")
        assert "Nobody could be asked" in (await until_texts(adapter, 1))[0]


async def test_sends_that_a_stop_interrupts_go_out_after_the_restart(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        adapter.fail_next(NotSent("down", retry_after_s=1))
        await adapter.say("$ echo kept")
        async with asyncio.timeout(PATIENCE_S):
            await adapter.until(lambda shown: shown.calls == ["send"])
    async with chatting(home_path) as (adapter, _):
        assert "kept" in (await until_texts(adapter, 1))[0]
