"""Events that could not be understood, kept raw so that the stream behind them moves on."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from gateway.store.codec import decode, storable
from gateway.store.times import from_text, to_text

#: Longer raw events are cut to this; platforms' own limits are below it.
RAW_MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One event as it came."""

    id: int
    platform: str
    event_key: str
    raw: bytes
    reason: str
    received_at: datetime


def add(conn: sqlite3.Connection, *, platform: str, event_key: str, raw: bytes, reason: str, now: datetime) -> bool:
    """Keep an event; False when it is kept already."""
    cursor = conn.execute(
        "INSERT INTO dead_letters (platform, event_key, raw, reason, received_at) VALUES (?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT (platform, event_key) DO NOTHING",
        (platform, storable(event_key), raw[:RAW_MAX_BYTES], storable(reason), to_text(now)),
    )
    return cursor.rowcount == 1


def list(conn: sqlite3.Connection, limit: int = 100) -> tuple[DeadLetter, ...]:
    """The newest events, the latest first."""
    rows = conn.execute(
        "SELECT id, platform, event_key, raw, reason, received_at FROM dead_letters ORDER BY id DESC LIMIT ?1", (limit,)
    )
    return tuple(DeadLetter(*decode(values, {5: from_text})) for values in rows)
