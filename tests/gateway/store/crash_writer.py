"""A daemon's worth of writing, to be killed: each line on standard output is an acknowledged unit.

Writers run side by side; each unit adds an inbox row and an audit row, as the gateway does.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path

from agent.control.clock import SystemClock
from gateway.store import audit, inbox
from gateway.store.database import Database

KEY = b"k" * 32
WRITERS = 16


async def main(path: Path, boot: str) -> None:
    db = await Database.open(path, clock=SystemClock())
    chain = audit.Chain(KEY)

    async def writer(name: int) -> None:
        n = 0
        while True:
            key, n = f"{boot}.{name}.{n}", n + 1

            def unit(conn: sqlite3.Connection, key: str = key) -> None:
                now = datetime.now(UTC)
                inbox.accept(conn, message(key), now, 1_000_000)
                chain.append(conn, kind="decision", request_id=key, body={"key": key}, text=key, scope="s", now=now)

            await db.write(unit)
            print(key, flush=True)

    await asyncio.gather(*(writer(name) for name in range(WRITERS)))


def message(key: str) -> inbox.NewInbound:
    return inbox.NewInbound(
        event_key=key,
        session="http:owner/main",
        principal="http:owner",
        role="admin",
        sender={"id": "owner"},
        text="a text of some length " * 20,
        message_ref=key,
        reply_to="",
        attachments=[],
        mergeable=False,
        control=False,
    )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
