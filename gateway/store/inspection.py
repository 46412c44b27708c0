"""What ``ostiary doctor`` asks of the database; all of it only reads."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from gateway.store.times import from_text

#: Faults that are listed; one is enough to know.
MAX_FAULTS = 5


def faults(conn: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with the file; empty for a sound one."""
    rows = conn.execute(f"PRAGMA quick_check({MAX_FAULTS})").fetchall()
    return [str(text) for (text,) in rows if text != "ok"]


def newest(conn: sqlite3.Connection) -> datetime | None:
    """The latest time that a row was written, None in an empty database."""
    (text,) = conn.execute(
        "SELECT max(at) FROM (SELECT max(received_at) AS at FROM inbox UNION ALL SELECT max(at) FROM messages"
        " UNION ALL SELECT at FROM audit WHERE seq = (SELECT max(seq) FROM audit))"
    ).fetchone()
    return None if text is None else from_text(text)
