"""A daemon that is killed while people chat over Telegram: nothing is lost, and nothing doubled without a mark."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from pathlib import Path

import aiohttp

from adapters.telegram.wording import REPEATED
from adapters.testing.telegram import FakeTelegram, Person
from tests.chaos.process import DaemonProcess
from tests.gateway.running import PATIENCE_S

#: Messages that each person writes while the daemon is killed again and again.
MESSAGES = 12


def daemon_of(home: Path, telegram: FakeTelegram, *people: Person) -> DaemonProcess:
    """``ostiary run``, configured as its owner would."""
    allowed = ",".join(str(person.id) for person in people)
    return DaemonProcess(
        home,
        (
            "adapters.telegram.enabled=true",
            f"adapters.telegram.token={telegram.token}",
            f"adapters.telegram.base_url={telegram.base_url}",
            f"adapters.telegram.allowed_users=[{allowed}]",
            "log.level=debug",
        ),
    )


def numbers(person: Person, *, marked: bool) -> list[int]:
    """Numbers of the answers in a person's chat, in order; those marked as sent again, or the others."""
    texts = (text for text in person.direct.texts if text.startswith(REPEATED) is marked)
    lines = (text.removeprefix(REPEATED).split() for text in texts)
    return [int(words[0].removeprefix("n")) for words in lines if words and words[0].startswith("n")]


def told(person: Person) -> set[int]:
    """Every number that the person was answered with."""
    return {*numbers(person, marked=False), *numbers(person, marked=True)}


async def test_killed_at_random_instants_while_people_write(home_path: Path, kills: int) -> None:
    async with FakeTelegram.running() as telegram:
        people = [telegram.person("Ann"), telegram.person("Bob")]
        daemon = daemon_of(home_path, telegram, *people)
        waiting = [(person, number) for number in range(MESSAGES) for person in people]
        for round_ in range(kills):
            await daemon.start()
            share = waiting[round_ * len(waiting) // kills : (round_ + 1) * len(waiting) // kills]
            for person, number in share:
                person.writes(f"$ echo n{number}; echo n{number} >> log.txt")
                await asyncio.sleep(random.uniform(0, 0.05))
            await asyncio.sleep(random.uniform(0.0, 0.6))
            await daemon.kill()
        await daemon.start()
        async with asyncio.timeout(PATIENCE_S):
            for person in people:
                while len(person.direct.texts) < MESSAGES or not complete(person):
                    await asyncio.sleep(0.05)
        assert await daemon.stop() == 0
    for person in people:
        unmarked = Counter(numbers(person, marked=False))
        assert [number for number, count in unmarked.items() if count > 1] == [], "a second answer carries the mark"
    for file in (home_path / "workspaces").glob("*/log.txt"):
        ran = Counter(file.read_text().split())
        assert [line for line, count in ran.items() if count > 1] == [], "nothing ran twice"
    with sqlite3.connect(home_path / "state.db") as conn:
        rows = conn.execute("SELECT principal, count(*) FROM inbox WHERE state = 'done' GROUP BY principal").fetchall()
    assert dict(rows) == {f"telegram:{person.id}": MESSAGES for person in people}


def complete(person: Person) -> bool:
    """Whether each message was answered: with its output, or with the word that its outcome is unknown."""
    unknown = sum("outcome is unknown" in text for text in person.direct.texts)
    return len(told(person)) + unknown >= MESSAGES


async def test_a_card_that_was_open_at_the_kill_is_tapped_after_it(home_path: Path) -> None:
    async with FakeTelegram.running() as telegram, aiohttp.ClientSession() as web:
        ann = telegram.person("Ann")
        daemon = daemon_of(home_path, telegram, ann)
        await daemon.start()
        ann.writes("$ mkdir build")
        await ann.direct.until(lambda chat: len(chat.texts) == 1)
        ann.writes("$ rm -rf build")
        await ann.direct.until(lambda chat: bool(chat.cards))
        (card,) = ann.direct.cards
        async with asyncio.timeout(PATIENCE_S):
            while not placed(home_path):
                await asyncio.sleep(0.02)
        await daemon.kill()
        tap = ann.taps(card, "Approve once")
        await daemon.start()
        assert await tap.answered() == "Approved once."
        await ann.direct.until(lambda _: card.text.startswith("✅ Approved once"))
        await ann.direct.until(lambda chat: len(chat.texts) == 3)
        ann.writes("$ test -e build || echo gone")
        await ann.direct.until(lambda chat: "gone" in chat.texts[-1])
        status, ready = await daemon.client(web).call("GET", "/readyz")
        assert (status, ready["ready"]) == (200, True)
        assert await daemon.stop() == 0
    assert not [line for line in daemon.errors if telegram.token in line], "no log line holds the token"


def placed(home: Path) -> bool:
    """Whether the place of the card is stored."""
    with sqlite3.connect(f"file:{home}/state.db?mode=ro", uri=True) as conn:
        return bool(conn.execute("SELECT count(*) FROM asks WHERE shown <> '[]'").fetchone()[0])


async def test_what_came_while_it_was_down_is_answered_and_an_old_update_is_not_answered_again(
    home_path: Path,
) -> None:
    async with FakeTelegram.running() as telegram:
        ann = telegram.person("Ann")
        daemon = daemon_of(home_path, telegram, ann)
        ann.writes("$ echo early")
        update = dict(telegram.state.updates[0])
        await daemon.start()
        await ann.direct.until(lambda chat: len(chat.texts) == 1)
        assert await daemon.stop() == 0
        telegram.push_again(update)
        ann.writes("$ echo late")
        await daemon.start()
        await ann.direct.until(lambda chat: any("late" in text for text in chat.texts))
        await telegram.until(lambda fake: not fake.state.updates)
        assert await daemon.stop() == 0
    assert [text.split()[0] for text in ann.direct.texts] == ["early", "late"]
