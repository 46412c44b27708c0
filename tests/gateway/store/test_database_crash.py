from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.control.clock import SystemClock
from gateway.store import audit, inbox
from gateway.store.database import Database
from tests.gateway.store.crash_writer import KEY


@pytest.mark.chaos
async def test_kill_at_any_instant_loses_no_acknowledged_unit(db_path: Path) -> None:
    """A real writer is killed again and again; each start finds everything that the one before had acknowledged."""
    chance = random.Random(7)
    acknowledged: set[str] = set()
    for boot in range(5):
        acknowledged |= _run_and_kill(db_path, str(boot), chance.uniform(0.0, 0.25))
        conn = sqlite3.connect(f"{db_path.as_uri()}?mode=ro", uri=True)
        stored = {key for (key,) in conn.execute("SELECT event_key FROM inbox")}
        recorded = {key for (key,) in conn.execute("SELECT request_id FROM audit")}
        found = audit.verify(conn, KEY)
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        conn.close()
        assert acknowledged <= stored
        assert stored == recorded
        assert found.ok, found
        assert found.rows == len(stored)
    assert len(acknowledged) > 100


def _run_and_kill(path: Path, boot: str, after_s: float) -> set[str]:
    """Start a writer, kill it some time after its first acknowledgement, return what it acknowledged."""
    command = [sys.executable, "-m", "tests.gateway.store.crash_writer", str(path), boot]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        # Read on while it runs, or the pipe fills up and the writer stands still.
        lines, end = [first], time.monotonic() + after_s
        while time.monotonic() < end:
            lines.append(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.readlines()
    # The kill may cut the last line short.
    return {line.decode().strip() for line in lines if line.endswith(b"\n")}


async def test_a_database_goes_on_after_a_crash(db_path: Path) -> None:
    acknowledged = _run_and_kill(db_path, "x", 0.05)
    db = await Database.open(db_path, clock=SystemClock())
    waiting = await db.read(lambda conn: inbox.queued(conn, "http:owner/main"))
    assert acknowledged <= {row.event_key for row in waiting}
    first = waiting[0]
    assert await db.write(lambda conn: inbox.take(conn, first.id, "turn"))
    await db.close()
