"""Everything that a turn does belongs to its own session, also while others run, and whoever woke them."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
from collections import defaultdict
from pathlib import Path

import structlog

from adapters.base import ConversationKind
from adapters.testing import MemoryAdapter
from agent.control.redact import Redactor
from gateway import logs
from gateway.config import Log
from tests.gateway.running import PATIENCE_S, Client, Json, running
from tests.gateway.test_end_to_end import with_others
from tests.gateway.test_push import PEOPLE

SESSIONS = ("red", "green", "blue")


async def converse(client: Client, name: str, rounds: int) -> list[tuple[str, Json]]:
    """Turns of two calls, one of which asks; the events of the session."""
    await client.say("hello", session=name)
    async with client.events(name) as stream:
        for number in range(rounds):
            text = f"$ echo {name} {number} >> log; sleep 0.0{number}; cat log\n$ rm -rf {name}-{number}"
            await client.say(text, session=name, wait=None)
            ask = await stream.until_type("ask")
            assert ask["command"] == f"rm -rf {name}-{number}"
            status, _ = await client.answer(ask, "once" if number % 2 else "deny")
            assert status == 200
            await stream.until_type("turn.finished")
        return stream.seen


def turns_of(home: Path) -> dict[str, str]:
    """Session name by turn."""
    conn = sqlite3.connect(f"file:{home}/state.db?mode=ro", uri=True)
    try:
        return dict(conn.execute("SELECT turns.id, sessions.name FROM turns JOIN sessions ON key = session"))
    finally:
        conn.close()


async def test_interleaved_turns_keep_events_asks_log_lines_and_workspaces_apart(home_path: Path) -> None:
    """Each of three sessions, two of them of one person, takes its asks and results alone."""
    written = io.StringIO()
    with logs.setup(Log(format="json", level="debug"), Redactor(), stream=written):
        async with running(home_path, with_others()) as daemon:
            owner, olga = daemon.owner, daemon.client("token-of-olga")
            whose = {"red": owner, "green": olga, "blue": owner}
            seen = dict(
                zip(
                    SESSIONS,
                    await asyncio.gather(*(converse(whose[name], name, 4) for name in SESSIONS)),
                    strict=True,
                )
            )
    session_of = turns_of(home_path)
    for name, events in seen.items():
        assert {session_of[data["turn"]] for _, data in events if "turn" in data} == {name}
        replies = "".join(data["text"] for kind, data in events if kind == "message")
        strangers = {"green": ("red", "blue"), "red": ("green",), "blue": ("green",)}[name]
        assert name in replies
        assert not any(stranger in replies for stranger in strangers), "green works in a workspace of its own"
    lines: dict[str, set[str]] = defaultdict(set)
    for line in map(json.loads, written.getvalue().splitlines()):
        if "turn" in line:
            lines[line["event"]].add(line["session"])
            assert line["session"].rpartition("/")[2].endswith(session_of[line["turn"]]), line
    for event in ("turn_started", "command_requested", "approval_requested", "command_answered", "turn_ended"):
        assert len(lines[event]) == len(SESSIONS), event


async def test_a_notice_goes_to_the_chat_of_its_own_turn(home_path: Path) -> None:
    """A message in chat B arrives while a tool of chat A runs; what A's tool brings goes to A."""
    adapter = MemoryAdapter()
    async with running(home_path, adapters=[adapter], people=PEOPLE) as daemon:
        await adapter.say("$ sleep 0.5; echo from-a\n$ rm -rf a", sender="42", chat="A", kind=ConversationKind.GROUP)
        await until(adapter, lambda: len(adapter.cards()) == 1)
        await adapter.say("$ echo from-b", sender="43", chat="B", kind=ConversationKind.GROUP)
        await until(adapter, lambda: len(adapter.texts("B")) == 1)
        await adapter.say("/deny", sender="42", chat="A", kind=ConversationKind.GROUP)
        await until(adapter, lambda: len(adapter.texts("A")) == 2)
        del daemon
    assert adapter.cards()[0].conversation.chat == "A"
    assert any("from-a" in text for text in adapter.texts("A"))
    assert "from-b" in adapter.texts("B")[0]
    assert not any("from-b" in text for text in adapter.texts("A"))


async def until(adapter: MemoryAdapter, condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(PATIENCE_S):
        await adapter.until(lambda _: bool(condition()))


async def test_a_task_takes_nothing_from_whoever_woke_it(home_path: Path) -> None:
    """What is bound where a message is accepted must not stand in the lines of the turn that it wakes."""
    written = io.StringIO()
    adapter = MemoryAdapter()
    with logs.setup(Log(format="json", level="debug"), Redactor(), stream=written):
        async with running(home_path, adapters=[adapter], people=PEOPLE):
            with structlog.contextvars.bound_contextvars(somebody="else"):
                await adapter.say("$ echo hi")
                await adapter.say("/status", sender="43")
            await until(adapter, lambda: len(adapter.texts()) == 2)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    marked = {line["event"] for line in lines if line.get("somebody") == "else"}
    assert marked == {"message_accepted"}
    assert {"turn_ended", "command_ended", "control"} <= {line["event"] for line in lines}
