"""Cards on a platform that is pushed to: typed answers, late taps, several at once, what comes in meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.base import ConversationKind, NotSent, TapVerdict, Verdict
from adapters.testing import MemoryAdapter
from adapters.testing.adapter import Shown
from gateway.config import Config
from tests.gateway.running import PATIENCE_S, Client, running, settings
from tests.gateway.test_push import PEOPLE, chatting, tapped


async def until(adapter: MemoryAdapter, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await adapter.until(lambda _: condition())


async def tap(adapter: MemoryAdapter, command: str, choice: str) -> TapVerdict:
    """Tap the card of ``command`` as soon as its place is known."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            card = card_of(adapter, command)
            result = await adapter.tap(card, choice)
            if result.verdict is not TapVerdict.NOT_YOURS:
                return result.verdict
            await asyncio.sleep(0.01)


def card_of(adapter: MemoryAdapter, command: str) -> Shown:
    return next(shown for shown in adapter.cards() if shown.card is not None and shown.card.command == command)


async def test_a_typed_answer_passes_the_queue_and_is_acknowledged(home_path: Path) -> None:
    """The turn waits for exactly that answer, with messages queued behind it."""
    async with chatting(home_path) as (adapter, _):
        await adapter.say("$ rm -rf build && echo deleted")
        await until(adapter, lambda: len(adapter.cards()) == 1)
        await adapter.say("$ echo behind")
        assert (await adapter.say("/approve")).verdict is Verdict.ACCEPTED
        await until(adapter, lambda: len(adapter.texts()) == 3)
        texts = adapter.texts()
    assert sum("Approved once." in text for text in texts) == 1
    assert [text for text in texts if "deleted" in text or "behind" in text] == [
        next(text for text in texts if "deleted" in text),
        next(text for text in texts if "behind" in text),
    ]


async def test_a_message_while_a_card_is_open_is_queued_and_the_card_stays_valid(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        await adapter.say("$ rm -rf build && echo deleted")
        await until(adapter, lambda: len(adapter.cards()) == 1)
        await adapter.say("$ echo also this")
        await adapter.say("/status")
        await until(adapter, lambda: len(adapter.texts()) == 1)
        status = adapter.texts()[0]
        assert "waiting for a person" in status
        assert "Queued messages: 1" in status
        assert adapter.cards()[0].end is None
        assert await tap(adapter, "rm -rf build && echo deleted", "once") is TapVerdict.SETTLED
        await until(adapter, lambda: len(adapter.texts()) == 3)
        assert "deleted" in adapter.texts()[1]
        assert "also this" in adapter.texts()[2]


async def test_cards_of_parallel_calls_are_all_shown_and_each_has_its_own_answer(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        await adapter.say("$ mkdir -p a b c")
        await adapter.say("$ rm -rf a\n$ rm -rf b\n$ rm -rf c")
        await until(adapter, lambda: len(adapter.cards()) == 3)
        assert await tap(adapter, "rm -rf c", "deny") is TapVerdict.SETTLED
        assert await tap(adapter, "rm -rf b", "once") is TapVerdict.SETTLED
        assert await tap(adapter, "rm -rf a", "deny") is TapVerdict.SETTLED
        await until(adapter, lambda: all(shown.end is not None for shown in adapter.cards()))
        await adapter.say("$ ls")
        await until(adapter, lambda: len(adapter.texts()) == 3)
        assert adapter.texts()[2].split("```")[1].split() == ["a", "c"]
        ends = {shown.card.command: shown.end.choice for shown in adapter.cards() if shown.card and shown.end}
    assert ends == {"rm -rf a": "deny", "rm -rf b": "once", "rm -rf c": "deny"}


async def test_two_quick_taps_settle_once_and_the_card_says_how(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, _):
        await adapter.say("$ rm -rf build")
        await until(adapter, lambda: len(adapter.cards()) == 1)
        await _placed(adapter)
        (card,) = adapter.cards()
        results = await asyncio.gather(*(adapter.tap(card, choice) for choice in ("once", "deny") * 3))
        await until(adapter, lambda: adapter.cards()[0].end is not None)
        (winner,) = (result for result in results if result.verdict is TapVerdict.SETTLED)
        end = adapter.cards()[0].end
    assert Counter(result.verdict for result in results) == {TapVerdict.SETTLED: 1, TapVerdict.ALREADY_SETTLED: 5}
    assert end is not None
    assert (end.choice, end.by) == (winner.choice, "memory:42")


async def _placed(adapter: MemoryAdapter) -> None:
    """Wait until the place of the card is known: an empty choice settles nothing."""
    async with asyncio.timeout(PATIENCE_S):
        while (await adapter.tap(adapter.cards()[0], "")).verdict is not TapVerdict.NOT_A_CHOICE:
            await asyncio.sleep(0.01)


def quick(seconds: float) -> Config:
    return settings(approvals={"timeout_s": seconds})


async def test_a_late_tap_is_told_so_and_changes_neither_card_nor_files(home_path: Path) -> None:
    adapter = MemoryAdapter()
    async with running(home_path, quick(0.5), adapters=[adapter], people=PEOPLE):
        await adapter.say("$ mkdir build\n$ rm -rf build")
        await until(adapter, lambda: bool(adapter.cards()) and adapter.cards()[0].end is not None)
        late = await adapter.tap(adapter.cards()[0], "once")
        assert (late.verdict, late.outcome) == (TapVerdict.EXPIRED, "timed_out")
        await until(adapter, lambda: len(adapter.texts()) == 1)
        await adapter.say("$ ls")
        await until(adapter, lambda: len(adapter.texts()) == 2)
        end = adapter.cards()[0].end
        assert end is not None
        assert (end.outcome, end.by) == ("timed_out", "")
    assert "build" in adapter.texts()[1]
    assert "Nobody answered in time" in adapter.texts()[0]


async def test_a_tap_on_a_card_that_ended_while_the_daemon_was_away(home_path: Path) -> None:
    """Its deadline passes between stop and start: the tap says so, the card loses its buttons, the turn goes on."""
    before = MemoryAdapter()
    async with running(home_path, quick(1.0), adapters=[before], people=PEOPLE) as daemon:
        await before.say("$ rm -rf build")
        await until(before, lambda: len(before.cards()) == 1)
        await _placed(before)
        await daemon.stop()
    (card,) = before.cards()
    assert card.end is None
    await asyncio.sleep(1.0)
    after = MemoryAdapter()
    after.shown = [card]
    async with running(home_path, quick(1.0), adapters=[after], people=PEOPLE):
        result = await after.tap(card, "once")
        assert (result.verdict, result.outcome) == (TapVerdict.EXPIRED, "timed_out")
        await until(after, lambda: len(after.texts()) == 1 and after.cards()[0].end is not None)
        assert "Nobody answered in time" in after.texts()[0]
        await after.say("$ echo next")
        await until(after, lambda: len(after.texts()) == 2)


async def test_redelivered_answers_find_closed_requests_and_do_nothing(home_path: Path) -> None:
    """A restart brings an old tap and an old ``/approve`` again while another card is open."""
    before = MemoryAdapter()
    async with running(home_path, adapters=[before], people=PEOPLE):
        await before.say("$ rm -rf first", event_key="memory:k1")
        await until(before, lambda: len(before.cards()) == 1)
        await before.say("/approve", event_key="memory:k2")
        await until(before, lambda: len(before.texts()) == 2)
    (old,) = before.cards()
    after = MemoryAdapter()
    async with running(home_path, adapters=[after], people=PEOPLE):
        await after.say("$ rm -rf second", event_key="memory:k3")
        await until(after, lambda: len(after.cards()) == 1)
        for key, text in (("memory:k1", "$ rm -rf first"), ("memory:k2", "/approve")):
            assert (await after.say(text, event_key=key)).verdict is Verdict.DUPLICATE
        assert (await after.tap(old, "once")).verdict is TapVerdict.ALREADY_SETTLED
        await after.say("/status", event_key="memory:k4")
        await until(after, lambda: len(after.texts()) == 1)
        assert "rm -rf second" in after.texts()[0]
        assert after.cards()[0].end is None
        assert (await tapped(after, "deny")).verdict is TapVerdict.SETTLED
        await until(after, lambda: len(after.texts()) == 2)
    assert len(after.cards()) == 1


async def test_a_restart_sends_nothing_that_was_sent(home_path: Path) -> None:
    before = MemoryAdapter()
    async with running(home_path, adapters=[before], people=PEOPLE):
        for number in range(4):
            await before.say(f"$ echo {number}", event_key=f"memory:{number}")
        await until(before, lambda: len(before.texts()) == 4)
    after = MemoryAdapter()
    async with running(home_path, adapters=[after], people=PEOPLE):
        for number in range(4):
            receipt = await after.say(f"$ echo {number}", event_key=f"memory:{number}")
            assert receipt.verdict is Verdict.DUPLICATE
        await after.say("$ echo new", event_key="memory:new")
        await until(after, lambda: len(after.texts()) >= 1)
    assert len(after.texts()) == 1
    assert "new" in after.texts()[0]


@pytest.mark.parametrize("how", ["/stop", "/new"])
async def test_a_stop_does_not_wait_for_what_cannot_be_delivered(home_path: Path, how: str) -> None:
    async with chatting(home_path) as (adapter, daemon):
        adapter.fail_next(NotSent("flood", retry_after_s=3_600))
        await adapter.say("$ echo undelivered", chat="C", kind=ConversationKind.GROUP)
        await until(adapter, lambda: adapter.calls == ["send"])
        await adapter.say("$ sleep 300", chat="C", kind=ConversationKind.GROUP)
        await adapter.say(how, chat="C", kind=ConversationKind.GROUP)
        status: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE_S):
            while status != {"memory:C": "idle"}:
                _, listed = await daemon.owner.call("GET", "/v1/sessions")
                status = {row["session"]: row["state"] for row in listed["sessions"]}
                await asyncio.sleep(0.01)


async def test_messages_run_in_the_order_in_which_they_arrived(home_path: Path) -> None:
    """All are handed in before the first is stored."""
    async with chatting(home_path) as (adapter, _):
        receipts = await asyncio.gather(*(adapter.say(f"$ echo {number} >> order") for number in range(20)))
        assert {receipt.verdict for receipt in receipts} == {Verdict.ACCEPTED}
        await adapter.say("$ tr '\\n' ' ' < order")
        await until(adapter, lambda: len(adapter.texts()) == 21)
    assert adapter.texts()[20].split("```")[1].split() == [str(number) for number in range(20)]


async def test_the_same_event_many_times_at_once_is_one_message(home_path: Path) -> None:
    async with chatting(home_path) as (adapter, daemon):
        receipts = await asyncio.gather(*(adapter.say("$ echo x >> count", event_key="memory:same") for _ in range(8)))
        assert Counter(receipt.verdict for receipt in receipts) == {Verdict.ACCEPTED: 1, Verdict.DUPLICATE: 7}
        answers = await asyncio.gather(*(daemon.owner.say("$ echo x >> count", message_id="same") for _ in range(8)))
        assert sum("duplicate" not in answer for answer in answers) == 1
        assert len({answer["turn"] for answer in answers}) == 1
        await adapter.say("$ wc -l < count")
        await until(adapter, lambda: len(adapter.texts()) == 2)
        assert adapter.texts()[1].split("```")[1].strip() == "1"


async def test_what_is_not_taken_is_said_and_leaves_nothing_behind(home_path: Path) -> None:
    """A full queue, and a daemon that drains: the verdict comes from the store, and the event may come again."""
    config = settings(gateway={"queue_max": 2, "drain_s": 5})
    before = MemoryAdapter()
    async with running(home_path, config, adapters=[before], people=PEOPLE) as daemon:
        await before.say("$ rm -rf build", event_key="memory:0")
        await until(before, lambda: len(before.cards()) == 1)
        verdicts = [(await before.say("$ echo", event_key=f"memory:{number}")).verdict for number in (1, 2, 3)]
        assert verdicts == [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.QUEUE_FULL]
        await before.say("$ sleep 2; echo slept", sender="43", event_key="memory:4")
        await _runs(daemon.owner, "memory:43")
        daemon.daemon.stop()
        async with asyncio.timeout(PATIENCE_S):
            while (await before.say("$ echo late", sender="44", event_key="memory:5")).verdict is Verdict.ACCEPTED:
                await asyncio.sleep(0)
        drained = await before.say("$ echo late", sender="43", event_key="memory:6")
        assert drained.verdict is Verdict.UNAVAILABLE
        assert drained.retry_after_s > 0
    after = MemoryAdapter()
    async with running(home_path, config, adapters=[after], people=PEOPLE):
        verdicts = [
            (await after.say("/status", sender="43", event_key=key)).verdict for key in ("memory:6", "memory:4")
        ]
        assert verdicts == [Verdict.ACCEPTED, Verdict.DUPLICATE]
        await until(after, lambda: len(after.texts("43")) >= 1)


async def _runs(client: Client, name: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            _, listed = await client.call("GET", "/v1/sessions")
            if any((row["session"], row["state"]) == (name, "running") for row in listed["sessions"]):
                return
            await asyncio.sleep(0.01)
