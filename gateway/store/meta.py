"""Small values of the store itself, by key."""

from __future__ import annotations

import sqlite3


def get(conn: sqlite3.Connection, key: str) -> str | None:
    """The value of ``key``, None where it was never put."""
    row = conn.execute("SELECT value FROM meta WHERE key = ?1", (key,)).fetchone()
    return None if row is None else str(row[0])


def get_int(conn: sqlite3.Connection, key: str) -> int:
    """The whole number under ``key``, 0 where it was never put."""
    return int(get(conn, key) or 0)


def put(conn: sqlite3.Connection, key: str, value: str) -> None:
    """Set ``key``."""
    conn.execute(
        "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
