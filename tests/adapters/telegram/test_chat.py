"""Text in, answers out, cards, through the whole gateway over real sockets."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from adapters.testing.telegram import FakeTelegram
from agent.control.ports import Role
from tests.adapters.telegram.whole import answered, card_in, chatting, tapped


async def test_a_message_is_answered(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        ann.writes("$ echo hi")
        assert "hi" in (await answered(ann.direct))[0]


async def test_answers_come_in_the_order_of_the_messages(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        for number in range(6):
            ann.writes(f"$ echo n{number}")
        texts = await answered(ann.direct, 6)
    assert [text.split()[0] for text in texts] == [f"n{number}" for number in range(6)]


async def test_a_card_is_shown_tapped_and_ended(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        ann.writes("$ rm -rf build")
        card = await card_in(ann.direct)
        assert ("pre", "rm -rf build") in card.entities
        assert list(card.buttons) == ["Approve once", "Approve for this session", "Always approve", "Deny"]
        assert await tapped(ann, card, "Approve once") == "Approved once."
        await ann.direct.until(lambda _: not card.buttons)
        assert card.text.startswith(f"✅ Approved once by telegram:{ann.id}")
        assert "rm -rf build" in card.text


async def test_strangers_get_silence(telegram: FakeTelegram, home_path: Path) -> None:
    ann, eve = telegram.person("Ann"), telegram.person("Eve")
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        eve.writes("$ echo hi")
        ann.writes("$ echo hi")
        await answered(ann.direct)
        assert eve.direct.texts == []
    rows = sqlite3.connect(home_path / "state.db").execute("SELECT DISTINCT principal FROM inbox").fetchall()
    assert rows == [(f"telegram:{ann.id}",)]
