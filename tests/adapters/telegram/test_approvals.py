"""The hand test by taps: two people, two chats and a group with topics, through the whole gateway."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from adapters.telegram.settings import Clock
from adapters.testing.telegram import FakeTelegram, Message, Person
from agent.control.clock import ManualClock
from agent.control.ports import Role
from tests.adapters.telegram.whole import answered, card_in, chatting, tapped
from tests.gateway.running import settings


def started(home: Path) -> list[str]:
    """Kinds of the audit rows of commands that began to run."""
    with sqlite3.connect(home / "state.db") as conn:
        return [kind for (kind,) in conn.execute("SELECT kind FROM audit WHERE kind = 'start'")]


async def test_each_button_answers_its_own_card(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        ann.writes("$ touch a b c; ls")
        await answered(ann.direct)
        ann.writes("$ rm -rf a\n$ rm -rf b\n$ rm -rf c")
        await card_in(ann.direct, 2)
        first, second, third = (
            next(card for card in ann.direct.cards if f"rm -rf {name}" in card.text) for name in "abc"
        )
        assert await tapped(ann, third, "Approve once") == "Approved once."
        assert await tapped(ann, first, "Deny") == "Denied. Nothing runs."
        assert await tapped(ann, second, "Approve once") == "Approved once."
        await ann.direct.until(lambda chat: not chat.cards)
        await ann.direct.until(lambda chat: len(chat.texts) == 5)
        ann.writes("$ ls")
        assert (await answered(ann.direct, 6))[5].split()[0] == "a"


async def test_session_always_and_the_next_question(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        ann.writes("$ rm -rf build")
        assert "this session" in await tapped(ann, await card_in(ann.direct), "Approve for this session")
        await ann.direct.until(lambda chat: len(chat.texts) == 2 and not chat.cards)
        ann.writes("$ rm -rf build")
        await answered(ann.direct, 3)
        assert ann.direct.cards == []
        ann.writes("$ rm -rf other")
        assert "for good" in await tapped(ann, await card_in(ann.direct), "Always approve")
        await ann.direct.until(lambda chat: not chat.cards)
        ann.writes("/new")
        await ann.direct.until(lambda chat: any("New conversation" in text for text in chat.texts))
        seen = len(ann.direct.texts)
        ann.writes("$ rm -rf other")
        await answered(ann.direct, seen + 1)
        assert ann.direct.cards == []
        ann.writes("$ rm -rf build")
        assert await tapped(ann, await card_in(ann.direct), "Deny") == "Denied. Nothing runs."
        await ann.direct.until(lambda chat: not chat.cards)


async def test_refused_commands_have_no_card(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        ann.writes("$ rm -rf /")
        assert "refused" in (await answered(ann.direct))[0].lower()
        assert ann.direct.cards == []
    assert started(home_path) == []


async def test_nobody_else_no_other_chat_and_no_other_message_settles_a_card(
    telegram: FakeTelegram, home_path: Path
) -> None:
    ann, bob, eve = telegram.person("Ann"), telegram.person("Bob"), telegram.person("Eve")
    group = telegram.group("Ops")
    async with chatting(home_path, telegram, {ann: Role.ADMIN, bob: Role.ADMIN}):
        ann.writes("@porter_bot $ rm -rf build", to=group)
        card = await card_in(group)
        data = card.buttons["Approve once"]
        assert "may not answer" in await eve.taps(card, "Approve once").answered()
        assert "not yours" in await bob.taps(card, "Approve once").answered()
        bob.writes("hello")
        await answered(bob.direct)
        ann.writes("hello")
        await answered(ann.direct)
        for elsewhere in (ann.direct.from_bot[0], bob.direct.from_bot[0]):
            assert "not yours" in await ann.sends_tap(elsewhere, data).answered()
        other = bob.writes("look at this", to=group)
        assert "not yours" in await ann.sends_tap(other, data).answered()
        assert "no such request" in await ann.sends_tap(card, data.replace("a:", "a:x")).answered()
        assert len(card.buttons) == 4
        assert started(home_path) == []
        assert await ann.sends_tap(card, data).answered() == "Approved once."
        await group.until(lambda _: card.text.startswith("✅ Approved once"))
        # settled: told, and nothing runs again
        assert "Already approved" in await ann.sends_tap(card, data.replace(":once", ":deny")).answered()
    assert len(started(home_path)) == 1
    answers = [call.params["callback_query_id"] for call in telegram.called("answerCallbackQuery")]
    assert len(answers) == len(set(answers))


async def test_two_people_two_chats_and_topics_do_not_mix(telegram: FakeTelegram, home_path: Path) -> None:
    ann, bob = telegram.person("Ann"), telegram.person("Bob")
    forum = telegram.group("Forum", forum=True)
    one, two = forum.new_topic("one"), forum.new_topic("two")
    async with chatting(home_path, telegram, {ann: Role.ADMIN, bob: Role.ADMIN}):
        ann.writes("@porter_bot $ rm -rf first", to=one)
        bob.writes("@porter_bot $ rm -rf second", to=two)
        ann.writes("$ rm -rf third")
        cards = [await card_in(place) for place in (one, two, ann.direct)]
        assert [name in card.text for name, card in zip(("first", "second", "third"), cards, strict=True)] == [True] * 3
        assert len(one.cards) == len(two.cards) == 1
        assert await tapped(bob, cards[1], "Approve once") == "Approved once."
        assert "not yours" in await bob.taps(cards[0], "Approve once").answered()
        assert await tapped(ann, cards[2], "Deny") == "Denied. Nothing runs."
        assert await tapped(ann, cards[0], "Approve once") == "Approved once."
        for place in (one, two, ann.direct):
            await place.until(lambda chat: not chat.cards and len(chat.texts) == 2)
        # files of a group belong to the group, those of a person to the person
        bob.writes("@porter_bot $ echo theirs > f", to=two)
        await answered(two, 3)
        ann.writes("@porter_bot $ cat f", to=one)
        assert "theirs" in (await answered(one, 3))[2]
        ann.writes("$ cat f")
        assert "theirs" not in (await answered(ann.direct, 3))[2]


async def test_a_users_card_is_answered_by_an_operator_of_that_chat(telegram: FakeTelegram, home_path: Path) -> None:
    ann, bob = telegram.person("Ann"), telegram.person("Bob")
    group = telegram.group("Ops")
    async with chatting(home_path, telegram, {ann: Role.OPERATOR, bob: Role.USER}):
        bob.writes("@porter_bot $ rm -rf build", to=group)
        card = await card_in(group)
        assert "Always approve" not in card.buttons
        assert "not yours" in await bob.taps(card, "Approve once").answered()
        assert await tapped(ann, card, "Approve once") == "Approved once."
        await group.until(lambda _: card.text.startswith(f"✅ Approved once by telegram:{ann.id}"))


async def test_a_button_of_a_request_that_nobody_knows_is_taken_away(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    keyboard = {"inline_keyboard": [[{"text": "Approve once", "callback_data": "a:long-gone:once"}]]}
    telegram.state.put_message(ann.direct.state, telegram.state.me, {"text": "?", "reply_markup": keyboard})
    (card,) = ann.direct.cards
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        assert "no such request" in await ann.taps(card, "Approve once").answered()
        await ann.direct.until(lambda _: not card.buttons)


async def test_typed_answers_pass_the_turn_that_waits(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        ann.writes("$ rm -rf build")
        card = await card_in(ann.direct)
        ann.writes("also this: $ echo later")
        ann.writes("/approve")
        await ann.direct.until(lambda _: card.text.startswith("✅ Approved once"))
        await ann.direct.until(lambda chat: any("Approved once." in text for text in chat.texts))


async def test_silence_denies_and_a_late_tap_is_told(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    config = settings(approvals={"timeout_s": 0.4})
    async with chatting(home_path, telegram, {ann: Role.ADMIN}, config=config):
        ann.writes("$ rm -rf build")
        card = await card_in(ann.direct)
        data = card.buttons["Approve once"]
        await ann.direct.until(lambda _: card.text.startswith("⌛ Nobody answered in time"))
        assert card.buttons == {}
        assert "Too late" in await ann.sends_tap(card, data).answered()
    assert started(home_path) == []


async def test_a_tap_whose_answer_comes_too_late_still_counts(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        ann.writes("$ rm -rf build")
        card = await card_in(ann.direct)
        # until its place is stored a tap is refused
        assert "Choose one of" in await tapped_data(ann, card, "maybe")
        telegram.faults.refuse(400, "Bad Request: query is too old", method="answerCallbackQuery")
        ann.taps(card, "Approve once")
        await ann.direct.until(lambda _: card.text.startswith("✅ Approved once"))


async def tapped_data(person: Person, card: Message, choice: str) -> str:
    """Send a choice that the card does not have, again while its place is not stored yet."""
    data = card.buttons["Approve once"].replace(":once", f":{choice}")
    while True:
        text = await person.sends_tap(card, data).answered()
        if "not yours" not in text:
            return text
        await asyncio.sleep(0.01)


async def test_a_card_that_the_chat_does_not_take_is_denied_at_once(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        telegram.faults.refuse(403, "Forbidden: not enough rights to send text messages to the chat")
        ann.writes("$ rm -rf build")
        assert "Nobody could be asked" in (await answered(ann.direct))[0]
    assert started(home_path) == []


async def test_a_long_command_is_read_in_a_file(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    command = "rm -rf " + " ".join(f"directory-number-{number}" for number in range(172))
    async with chatting(home_path, telegram, {ann: Role.ADMIN}):
        ann.writes(f"$ {command}"[:4096])
        card = await card_in(ann.direct)
        assert telegram.file_of(card).decode() in f"$ {command}"
        assert await tapped(ann, card, "Deny") == "Denied. Nothing runs."
        await ann.direct.until(lambda _: card.text.startswith("⛔ Denied by"))


def test_the_clock_of_tests_is_a_clock_of_the_adapter() -> None:
    clock: Clock = ManualClock()
    assert clock.monotonic() > 0
