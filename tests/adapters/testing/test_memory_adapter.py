"""The in-memory adapter keeps its contract, failures included."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from adapters.base import (
    Adapter,
    Amendment,
    Card,
    CardEnd,
    CardKind,
    Choice,
    Conversation,
    ConversationKind,
    DeliveryError,
    Inbound,
    NotSent,
    Part,
    Receipt,
    Rejected,
    Sent,
    Tap,
    TapResult,
    TapVerdict,
    Uncertain,
    Verdict,
)
from adapters.testing import MemoryAdapter

CHAT = Conversation("memory", "42", ConversationKind.DIRECT)
CARD = Card(
    "id1",
    "A001",
    "r1",
    CardKind.APPROVAL,
    "Delete",
    "rm x",
    "why",
    (),
    (Choice("once", "Once"),),
    "memory:42",
    datetime(2026, 1, 1, tzinfo=UTC),
)


class Notebook:
    """An intake that notes what it is given."""

    def __init__(self) -> None:
        self.messages: list[Inbound] = []
        self.taps: list[Tap] = []

    async def accept(self, inbound: Inbound) -> Receipt:
        seen = any(one.event_key == inbound.event_key for one in self.messages)
        self.messages.append(inbound)
        return Receipt(Verdict.DUPLICATE if seen else Verdict.ACCEPTED)

    async def amend(self, inbound: Inbound) -> Amendment:
        raise AssertionError("nothing here is changed")

    async def tap(self, tap: Tap) -> TapResult:
        self.taps.append(tap)
        return TapResult(TapVerdict.SETTLED, "approved", tap.choice or "")

    async def dead_letter(self, platform: str, event_key: str, raw: bytes, reason: str) -> None:
        raise AssertionError("nothing here is malformed")


async def test_it_is_an_adapter() -> None:
    adapter: Adapter = MemoryAdapter()
    assert adapter.capabilities.pushes
    assert not adapter.health().ready
    await adapter.start(Notebook())
    assert adapter.health().ready
    await adapter.stop()
    assert not adapter.health().ready


async def test_messages_and_edits_stand_in_order() -> None:
    adapter = MemoryAdapter()
    first = await adapter.send(CHAT, Part("p1", "one"))
    await adapter.send(CHAT, Part("p2", "two"))
    await adapter.edit(CHAT, first, Part("p1", "one, edited"))
    assert adapter.texts() == ["one, edited", "two"]
    assert adapter.texts(chat="other") == []
    assert adapter.calls == ["send", "send", "edit"]


async def test_cards_end() -> None:
    adapter = MemoryAdapter()
    sent = await adapter.show_card(CHAT, CARD)
    assert len(adapter.cards(still_open=True)) == 1
    await adapter.end_card(CHAT, sent, CARD, CardEnd("approved", "once", "memory:42"))
    assert adapter.cards(still_open=True) == []
    assert adapter.cards()[0].end == CardEnd("approved", "once", "memory:42")


@pytest.mark.parametrize(
    ("error", "arrives"), [(NotSent("refused", retry_after_s=3), 0), (Uncertain("cut"), 1), (Rejected("no"), 0)]
)
async def test_it_fails_once_as_told(error: DeliveryError, arrives: int) -> None:
    adapter = MemoryAdapter()
    adapter.fail_next(error)
    with pytest.raises(type(error)) as caught:
        await adapter.send(CHAT, Part("p1", "one"))
    assert caught.value is error
    assert len(adapter.texts()) == arrives
    await adapter.send(CHAT, Part("p1", "one", repeated=True))
    assert len(adapter.texts()) == arrives + 1


async def test_an_edit_of_what_is_not_there_is_rejected() -> None:
    with pytest.raises(Rejected):
        await MemoryAdapter().edit(CHAT, Sent("42", "m9"), Part("p", "x"))


async def test_people_write_and_tap() -> None:
    adapter, intake = MemoryAdapter(), Notebook()
    await adapter.start(intake)
    assert (await adapter.say("hi", event_key="k")).verdict is Verdict.ACCEPTED
    assert (await adapter.say("hi", event_key="k")).verdict is Verdict.DUPLICATE
    await adapter.show_card(CHAT, CARD)
    await adapter.until(lambda a: bool(a.cards()))
    assert (await adapter.tap(adapter.cards()[0], "once")).outcome == "approved"
    assert intake.taps[0].shown_at == adapter.cards()[0].sent
    assert intake.messages[0].conversation == CHAT
