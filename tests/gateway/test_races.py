"""What happens when two things happen at once: deleting, stopping, answering, granting."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from tests.gateway.running import PATIENCE_S, Running, running


def rows(home: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(home / "state.db")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


async def until_state(daemon: Running, wanted: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            _, listed = await daemon.owner.call("GET", "/v1/sessions")
            if any(row["session"] == "main" and row["state"] == wanted for row in listed["sessions"]):
                return
            await asyncio.sleep(0.01)


async def test_deleting_a_session_gives_up_what_is_queued_behind_its_running_turn(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await daemon.owner.say("$ sleep 30", wait=None)
        await until_state(daemon, "running")
        last = asyncio.create_task(daemon.owner.say("$ echo ghost > ghost; sleep 1", message_id="queued"))
        async with asyncio.timeout(PATIENCE_S):
            while not rows(home_path, "SELECT 1 FROM inbox WHERE message_ref = 'queued'"):
                await asyncio.sleep(0.01)
        await daemon.owner.say("$ sleep 30", wait=None)
        status, _ = await daemon.owner.call("DELETE", "/v1/sessions/main")
        assert status == 204
        assert (await last)["status"] == "cancelled", "who waits for it is told at once"
        answer = await daemon.owner.say("$ ls -A")
        assert "ghost" not in answer["reply"]
    assert rows(home_path, "SELECT count(*) FROM turns") == [(1,)]
    started = rows(home_path, "SELECT count(*) FROM audit WHERE kind = 'start'")
    assert started == [(2,)], "the command that was killed and the listing, nothing of the deleted queue"
