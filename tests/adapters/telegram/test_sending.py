"""What goes out: formatting, size, cards, and what is certain about a send that failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from adapters.base import (
    Card,
    CardEnd,
    CardKind,
    Choice,
    Conversation,
    ConversationKind,
    NotSent,
    Part,
    Rejected,
    Uncertain,
)
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.cards import MAX_CAPTION, MAX_TEXT, face, read_data
from adapters.telegram.settings import Command
from adapters.testing.telegram import FakeTelegram, Person
from adapters.text import utf16_len
from tests.adapters.telegram.notebook import Notebook, connected, until_health

CARD = Card(
    id="abcdefghijklmnopqrstuvwx",
    code="K3PF",
    request_id="r1",
    kind=CardKind.APPROVAL,
    title="Run a command that deletes",
    command="rm -rf build && echo '<b>done</b> & more'",
    reason="deletes a directory tree",
    rules=("rm.recursive",),
    choices=(Choice("once", "Approve once"), Choice("session", "For this session"), Choice("deny", "Deny")),
    requested_by="telegram:42",
    expires_at=datetime(2026, 1, 1, 12, 5, tzinfo=UTC),
    impact="37 files, 1.2 GB",
)


@pytest.fixture
async def adapter(telegram: FakeTelegram) -> AsyncIterator[TelegramAdapter]:
    async with connected(telegram, Notebook()) as started:
        await until_health(started, ready=True)
        yield started


@pytest.fixture
def ann(telegram: FakeTelegram) -> Person:
    return telegram.person("Ann")


def to(person: Person) -> Conversation:
    """The person's private chat."""
    return Conversation("telegram", str(person.id), ConversationKind.DIRECT)


def part(text: str, *, plain: bool = False, repeated: bool = False) -> Part:
    return Part("p1", text, plain, repeated)


class TestText:
    async def test_markdown_becomes_entities(self, adapter: TelegramAdapter, ann: Person) -> None:
        text = "**bold** and `code`, a < b & c\n\n```python\nif x:\n    y()\n```"
        sent = await adapter.send(to(ann), part(text))
        (message,) = ann.direct.from_bot
        assert (sent.chat, sent.message) == (str(ann.id), str(message.id))
        assert ("bold", "bold") in message.entities
        assert ("code", "code") in message.entities
        assert ("pre", "if x:\n    y()") in message.entities
        assert "a < b & c" in message.text

    async def test_names_and_addresses_come_out_exactly(self, adapter: TelegramAdapter, ann: Person) -> None:
        text = "http://h.test/a_b and http://h.test/c_d, snake_case_name"
        await adapter.send(to(ann), part(text))
        assert ann.direct.texts == [text]

    async def test_plain_text_is_sent_as_it_was_written(self, adapter: TelegramAdapter, ann: Person) -> None:
        text = "_italic_ and snake_case_name <b>"
        await adapter.send(to(ann), part(text, plain=True))
        (message,) = ann.direct.from_bot
        assert (message.text, message.entities) == (text, [])

    @pytest.mark.parametrize(
        "text",
        [
            "\U0001f680" * 3000,
            "." * 9000,
            "```\n" + "    x < y & z\n" * 900 + "```",
            "a paragraph of words " * 700,
            "| a | b |\n|---|---|\n" + "| **x** | y |\n" * 400,
        ],
    )
    async def test_long_text_is_split_into_parts_that_each_fit(
        self, adapter: TelegramAdapter, ann: Person, text: str
    ) -> None:
        pieces = adapter.split(text)
        assert len(pieces) > 1
        for piece in pieces:
            whole = Part("p1", piece.text, repeated=True, formatted=piece.formatted)
            await adapter.send(to(ann), whole)
            await adapter.send(to(ann), replace(whole, plain=True))
        assert len(ann.direct.texts) == 2 * len(pieces)
        assert all(utf16_len(shown) <= MAX_TEXT for shown in ann.direct.texts)

    async def test_what_may_be_there_already_is_marked(self, adapter: TelegramAdapter, ann: Person) -> None:
        await adapter.send(to(ann), part("hi", repeated=True))
        assert ann.direct.texts == ["🔁 (sent again; you may have it already)\nhi"]

    async def test_nothing_to_see_is_said_in_words(self, adapter: TelegramAdapter, ann: Person) -> None:
        await adapter.send(to(ann), part(" \n"))
        assert ann.direct.texts == ["(an empty answer)"]

    async def test_of_a_part_whose_end_failed_it_is_said_that_it_may_be_there(
        self, telegram: FakeTelegram, adapter: TelegramAdapter, ann: Person
    ) -> None:
        text = "*a* b " * 120  # more formatted pieces than a message may have
        await adapter.send(to(ann), part(text))
        assert len(ann.direct.texts) > 1
        assert ann.direct.texts[0].startswith("a b")
        before = len(ann.direct.texts)
        sending = asyncio.create_task(adapter.send(to(ann), part(text)))
        await ann.direct.until(lambda chat: len(chat.texts) > before)
        telegram.faults.flood(1)
        with pytest.raises(Uncertain):
            await sending

    async def test_an_edit_replaces_and_an_identical_one_succeeds(self, adapter: TelegramAdapter, ann: Person) -> None:
        sent = await adapter.send(to(ann), part("one"))
        await adapter.edit(to(ann), sent, part("two"))
        await adapter.edit(to(ann), sent, part("two"))
        assert ann.direct.texts == ["two"]

    async def test_it_goes_to_its_topic(self, telegram: FakeTelegram, adapter: TelegramAdapter) -> None:
        topic = telegram.group("Forum", forum=True).new_topic("Deploys")
        place = Conversation("telegram", str(topic.id), ConversationKind.GROUP, str(topic.topic))
        await adapter.send(place, part("hi"))
        assert topic.texts == ["hi"]

    async def test_it_follows_a_group_that_moved(self, telegram: FakeTelegram, adapter: TelegramAdapter) -> None:
        group = telegram.group("Ops")
        new = telegram.move(group)
        place = Conversation("telegram", str(group.id), ConversationKind.GROUP)
        for _ in range(2):
            sent = await adapter.send(place, part("hi"))
            assert sent.chat == str(new.id)
        assert new.texts == ["hi", "hi"]


class TestCertainty:
    async def test_a_rate_limit_says_when(self, telegram: FakeTelegram, adapter: TelegramAdapter, ann: Person) -> None:
        telegram.faults.flood(30)
        with pytest.raises(NotSent) as caught:
            await adapter.send(to(ann), part("hi"))
        assert caught.value.retry_after_s == 30

    async def test_a_refused_connection_is_certain(
        self, telegram: FakeTelegram, adapter: TelegramAdapter, ann: Person
    ) -> None:
        await telegram.refuse_connections()
        with pytest.raises(NotSent):
            await adapter.send(to(ann), part("hi"))

    @pytest.mark.parametrize("fault", ["cut_before", "cut_after", "server_error"])
    async def test_a_cut_is_not(
        self, telegram: FakeTelegram, adapter: TelegramAdapter, ann: Person, fault: str
    ) -> None:
        getattr(telegram.faults, fault)()
        with pytest.raises(Uncertain):
            await adapter.send(to(ann), part("hi"))
        assert ann.direct.texts == (["hi"] if fault == "cut_after" else [])

    async def test_bad_formatting_may_be_tried_without(
        self, telegram: FakeTelegram, adapter: TelegramAdapter, ann: Person
    ) -> None:
        telegram.faults.refuse(400, "Bad Request: can't parse entities: Unsupported start tag")
        with pytest.raises(Rejected) as caught:
            await adapter.send(to(ann), part("hi"))
        assert caught.value.formatting

    async def test_a_chat_that_blocked_the_bot_is_refused_for_good(
        self, telegram: FakeTelegram, adapter: TelegramAdapter, ann: Person
    ) -> None:
        ann.direct.block()
        with pytest.raises(Rejected, match="blocked") as caught:
            await adapter.send(to(ann), part("hi"))
        assert not caught.value.formatting

    async def test_after_the_stop_nothing_is_sent(self, telegram: FakeTelegram, ann: Person) -> None:
        async with connected(telegram, Notebook()) as adapter:
            pass
        with pytest.raises(NotSent):
            await adapter.send(to(ann), part("hi"))


class TestCards:
    async def test_show_everything_and_carry_only_the_id(self, adapter: TelegramAdapter, ann: Person) -> None:
        await adapter.show_card(to(ann), CARD)
        (card,) = ann.direct.cards
        assert ("pre", CARD.command) in card.entities
        for shown in (CARD.title, CARD.reason, CARD.impact, "rm.recursive", "telegram:42", "K3PF", "12:05:00 UTC"):
            assert shown in card.text
        assert card.buttons == {
            "Approve once": f"a:{CARD.id}:once",
            "For this session": f"a:{CARD.id}:session",
            "Deny": f"a:{CARD.id}:deny",
        }
        assert [read_data(data) for data in card.buttons.values()] == [
            (CARD.id, choice.value) for choice in CARD.choices
        ]

    async def test_show_what_cannot_be_seen(self, adapter: TelegramAdapter, ann: Person) -> None:
        await adapter.show_card(to(ann), replace(CARD, command="ls\u202e \u200b\u00a0x\r\ttab\nline \u2028 \ue000"))
        (card,) = ann.direct.cards
        assert ("pre", "ls⟨U+202E⟩ ⟨U+200B⟩⟨U+00A0⟩x⟨U+000D⟩\ttab\nline ⟨U+2028⟩ ⟨U+E000⟩") in card.entities

    @pytest.mark.parametrize("length", [2_000, 3_000, *range(3_300, 4_100, 100), 5_000, 200_000])
    async def test_never_cut_a_command(
        self, telegram: FakeTelegram, adapter: TelegramAdapter, ann: Person, length: int
    ) -> None:
        command = ("echo '\U0001f680 & <b>'; " * length)[:length]
        card = replace(CARD, command=command, reason="r<" * 450, impact="i" * 900, rules=("x" * 99,) * 20)
        sent = await adapter.show_card(to(ann), card)
        (message,) = ann.direct.cards
        if "document" in message.data:
            assert telegram.file_of(message).decode() == command
            assert f"{length:,} characters" in message.text
            assert utf16_len(message.text) <= MAX_CAPTION
        else:
            assert ("pre", command.rstrip()) in [(kind, text.rstrip()) for kind, text in message.entities]
        await adapter.end_card(to(ann), sent, card, CardEnd("approved", "once", "n" * 500))
        assert not message.buttons
        assert message.text.startswith("✅ Approved once by nnn")

    @pytest.mark.parametrize(
        ("outcome", "says"),
        [
            ("approved", "✅ Approved for this session by telegram:42"),
            ("denied", "⛔ Denied by telegram:42"),
            ("timed_out", "⌛ Nobody answered in time"),
            ("cancelled", "⏹ Cancelled"),
            ("undeliverable", "⛔ Denied: it could not be shown"),
        ],
    )
    async def test_say_how_they_ended_and_lose_their_buttons(
        self, adapter: TelegramAdapter, ann: Person, outcome: str, says: str
    ) -> None:
        sent = await adapter.show_card(to(ann), CARD)
        by = "telegram:42" if outcome in {"approved", "denied"} else ""
        end = CardEnd(outcome, "session" if outcome == "approved" else "", by)
        for _ in range(2):
            await adapter.end_card(to(ann), sent, CARD, end)
        (message,) = ann.direct.from_bot
        assert message.text.startswith(says)
        assert CARD.command in message.text
        assert not message.buttons

    async def test_that_no_button_can_carry_are_refused(self, adapter: TelegramAdapter, ann: Person) -> None:
        with pytest.raises(Rejected):
            await adapter.show_card(to(ann), replace(CARD, choices=(Choice("x" * 60, "X"),)))

    def test_tokens_and_lines_are_asked_for_in_words(self) -> None:
        token = face(replace(CARD, kind=CardKind.TOKEN, token="K7Q2ZX", choices=()))
        assert "Type <code>K7Q2ZX</code>" in token.html
        assert "Type <code>confirm</code>" in face(replace(CARD, kind=CardKind.LINE, choices=())).html


async def test_the_menu_is_set(telegram: FakeTelegram) -> None:
    async with connected(telegram, Notebook(), commands=(Command("stop", "cancel what runs now"),)):
        await telegram.until(lambda fake: bool(fake.state.commands))
    assert telegram.state.commands == [{"command": "stop", "description": "cancel what runs now"}]
