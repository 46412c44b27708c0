"""What happens when two things happen at once: deleting, stopping, answering, granting."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from adapters.base import TapVerdict
from adapters.testing import MemoryAdapter
from agent.control.ports import Role
from gateway.web.exceptions import WebError
from tests.gateway.joined import joined
from tests.gateway.running import PATIENCE_S, Running, running, settings


def rows(home: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(home / "state.db")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


async def until_rows(home: Path, query: str) -> None:
    """Wait until ``query`` finds something."""
    async with asyncio.timeout(PATIENCE_S):
        while not rows(home, query):
            await asyncio.sleep(0.01)


async def test_deleting_a_session_gives_up_what_is_queued_behind_its_running_turn(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await daemon.owner.say("$ sleep 30", wait=None)
        await until_rows(home_path, "SELECT 1 FROM audit WHERE kind = 'start'")
        last = asyncio.create_task(daemon.owner.say("$ echo ghost > ghost; sleep 1", message_id="queued"))
        await until_rows(home_path, "SELECT 1 FROM inbox WHERE message_ref = 'queued'")
        await daemon.owner.say("$ sleep 30", wait=None)
        status, _ = await daemon.owner.call("DELETE", "/v1/sessions/main")
        assert status == 204
        assert (await last)["status"] == "cancelled", "who waits for it is told at once"
        answer = await daemon.owner.say("$ ls -A")
        assert "ghost" not in answer["reply"]
    assert rows(home_path, "SELECT count(*) FROM turns") == [(1,)]
    started = rows(home_path, "SELECT count(*) FROM audit WHERE kind = 'start'")
    assert started == [(2,)], "the command that was killed and the listing, nothing of the deleted queue"


def chat(home: Path, role: Role | None, adapter: MemoryAdapter) -> AbstractAsyncContextManager[Running]:
    people = {"memory": {} if role is None else {"42": role}}
    return running(home, adapters=[adapter], people=people)


async def test_who_lost_access_over_a_restart_is_not_served_any_more(home_path: Path) -> None:
    adapter = MemoryAdapter()
    async with chat(home_path, Role.ADMIN, adapter):
        await adapter.say("$ rm -rf build; echo ran > ran")
        await adapter.say("$ echo ran > ran")
        await adapter.until(lambda shown: bool(shown.cards()))
    async with chat(home_path, None, adapter):
        await adapter.until(lambda shown: len(shown.texts()) == 2)
        assert all("any more" in text for text in adapter.texts())
    assert rows(home_path, "SELECT state FROM asks") == [("cancelled",)]
    assert rows(home_path, "SELECT count(*) FROM audit WHERE kind = 'start'") == [(0,)]


async def test_always_needs_an_admin_at_the_time_of_the_answer(home_path: Path) -> None:
    adapter = MemoryAdapter()
    async with chat(home_path, Role.ADMIN, adapter):
        await adapter.say("$ rm -rf build")
        await adapter.until(lambda shown: bool(shown.cards()))
    async with chat(home_path, Role.OPERATOR, adapter):
        (card,) = adapter.cards()
        assert (await adapter.tap(card, "always")).verdict is TapVerdict.NOT_YOURS
        assert (await adapter.tap(card, "once")).verdict is TapVerdict.SETTLED
        await adapter.until(lambda shown: bool(shown.texts()))
    assert not (home_path / "allowlist.json").exists()


async def granted_for_good(daemon: Running, uses_left: int) -> None:
    """A permanent grant for what lies below ``build``, edited by hand to a number of uses."""
    (ask,) = await daemon.owner.begin("$ rm -rf build")
    await daemon.owner.answer(ask, "always")
    await daemon.owner.ended()
    file = daemon.home.allowlist_file
    content = json.loads(file.read_text())
    content["grants"][0]["uses_left"] = uses_left
    file.write_text(json.dumps(content))


async def test_two_commands_at_once_do_not_share_the_last_use_of_a_grant(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await granted_for_good(daemon, 1)
        await daemon.owner.say("$ rm -rf build/a\n$ rm -rf build/b", wait=None)
        (ask,) = await daemon.owner.asks(1)
        assert ask["command"] == "rm -rf build/b"
        assert json.loads(daemon.home.allowlist_file.read_text())["grants"][0]["uses_left"] == 0
        await daemon.owner.answer(ask, "deny")
        await daemon.owner.ended()


async def test_a_grant_that_is_revoked_while_its_command_waits_for_its_turn_covers_nothing(home_path: Path) -> None:
    async with running(home_path) as daemon:
        (ask,) = await daemon.owner.begin("$ rm -rf build")
        await daemon.owner.answer(ask, "session")
        await daemon.owner.ended()
        await daemon.owner.say("$ rm -rf other\n$ rm -rf build", wait=None)
        (first,) = await daemon.owner.asks(1)
        assert first["command"] == "rm -rf other"
        grant = (await daemon.owner.say("/grants"))["reply"].splitlines()[1].split(":")[0]
        assert "has ended" in (await daemon.owner.say(f"/grants revoke {grant}"))["reply"]
        await daemon.owner.answer(first, "once")
        (second,) = await daemon.owner.asks(1)
        assert second["command"] == "rm -rf build"
        await daemon.owner.answer(second, "deny")
        await daemon.owner.ended()


async def test_a_turn_gives_its_place_back_when_only_cards_are_left_of_it(home_path: Path) -> None:
    """The first command was approved and has run; the second waits, and the only place is somebody else's."""
    async with running(home_path, settings(gateway={"max_running_turns": 1})) as daemon:
        asks = await daemon.owner.begin("$ rm -rf a\n$ rm -rf b")
        first, second = sorted(asks, key=lambda ask: str(ask["command"]))
        await daemon.owner.answer(first, "once")
        await until_rows(home_path, "SELECT 1 FROM audit WHERE kind = 'outcome'")
        answer = await daemon.owner.say("$ echo other", session="other", wait=10)
        assert answer["status"] == "done"
        await daemon.owner.answer(second, "once")
        assert (await daemon.owner.ended())["status"] == "done"


async def test_starts_that_fail_are_no_crashes_of_the_turns_that_wait_for_the_next_one(home_path: Path) -> None:
    async with running(home_path, settings(gateway={"drain_s": 0.1})) as daemon:
        await daemon.owner.say("$ sleep 30", wait=None)
        await until_rows(home_path, "SELECT 1 FROM audit WHERE kind = 'start'")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for _ in range(4):
            with pytest.raises(ExceptionGroup) as failure:
                async with running(home_path, settings(adapters={"http": {"port": port}})):
                    raise AssertionError("the port is taken")
            assert failure.group_contains(WebError)
    async with running(home_path) as daemon:
        assert (await daemon.owner.ended())["status"] == "done"
    assert rows(home_path, "SELECT crash_count FROM turns") == [(0,)]


async def test_a_stop_right_behind_a_message_stops_it(home_path: Path) -> None:
    """The message is accepted and its turn is just being begun: nothing of it may run after the stop."""
    async with joined(home_path) as parts:
        with parts.locked():
            said = asyncio.create_task(parts.adapter.say("$ echo ran > ran"))
            await parts.until(lambda: parts.db.stalled_s() > 0)
        await said
        session = parts.core.sessions.get("memory:42")
        assert session is not None
        assert session.turn is None, "it is being begun"
        assert parts.core.sessions.stop("memory:42", "Stopped by the test.")
        await parts.adapter.until(lambda adapter: bool(adapter.texts()))
        assert parts.adapter.texts() == ["Stopped by the test."]
    assert rows(home_path, "SELECT count(*) FROM audit WHERE kind = 'start'") == [(0,)]
    assert rows(home_path, "SELECT state FROM turns") == [("cancelled",)]
