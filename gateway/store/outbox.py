"""Messages on their way to platforms that the gateway pushes to, one row a part, in order within a lane."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.store.codec import Decoders, decode, dump, load_object, storable
from gateway.store.times import from_text, to_text

_SELECT = (
    "SELECT id, part_id, adapter, lane, conversation, session, turn, kind, body, state, uncertain, attempts, next_at,"
    " sent_ref, error, created_at, sent_at, formatted FROM outbox"
)
_DECODERS: Decoders = {4: load_object, 10: bool, 12: from_text, 13: load_object, 15: from_text, 16: from_text}


@dataclass(frozen=True, slots=True)
class NewPart:
    """A message to send.

    Attributes:
        part_id: unique; lets a platform with metadata look for it before a re-send.
        lane: adapter and chat; order is kept within it.
        kind: ``text`` (``body`` is markdown), ``card`` or ``card_end`` (``body`` is JSON with the ask's id).
        formatted: of a text that was split, ``body`` in the platform's own format.
    """

    part_id: str
    adapter: str
    lane: str
    conversation: dict[str, Any]
    session: str
    turn: str | None
    kind: str
    body: str
    formatted: str = ""


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A message and how far it came.

    Attributes:
        state: ``pending``, ``sending``, ``sent`` or ``dead``.
        uncertain: an attempt may have arrived; the next one is marked.
        attempts: how often sending began.
        next_at: not before this; while it is being sent, when that began.
        sent_ref: where it stands on the platform.
    """

    id: int
    part_id: str
    adapter: str
    lane: str
    conversation: dict[str, Any]
    session: str
    turn: str | None
    kind: str
    body: str
    state: str
    uncertain: bool
    attempts: int
    next_at: datetime
    sent_ref: dict[str, Any] | None
    error: str | None
    created_at: datetime
    sent_at: datetime | None
    formatted: str = ""


def add(conn: sqlite3.Connection, part: NewPart, now: datetime) -> int:
    """Queue a part at the end of its lane; returns the row's id, that of the first one for a part queued before."""
    conn.execute(
        "INSERT INTO outbox (part_id, adapter, lane, conversation, session, turn, kind, body, next_at, created_at,"
        " formatted) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10) ON CONFLICT (part_id) DO NOTHING",
        (
            part.part_id,
            part.adapter,
            part.lane,
            dump(part.conversation),
            part.session,
            part.turn,
            part.kind,
            storable(part.body),
            to_text(now),
            storable(part.formatted),
        ),
    )
    (id_,) = conn.execute("SELECT id FROM outbox WHERE part_id = ?1", (part.part_id,)).fetchone()
    return int(id_)


def get(conn: sqlite3.Connection, id: int) -> OutboxRow | None:
    """The row of that id."""
    return _first(conn.execute(f"{_SELECT} WHERE id = ?1", (id,)))


def next_due(conn: sqlite3.Connection, lane: str) -> OutboxRow | None:
    """The head of a lane: what must go next, not before its ``next_at``. None while it is being sent or none waits."""
    row = _first(
        conn.execute(f"{_SELECT} WHERE lane = ?1 AND state IN ('pending', 'sending') ORDER BY id LIMIT 1", (lane,))
    )
    return row if row is not None and row.state == "pending" else None


def lanes_with_work(conn: sqlite3.Connection) -> list[str]:
    """Lanes in which something waits or is being sent, the longest waiting first."""
    rows = conn.execute("SELECT lane FROM outbox WHERE state IN ('pending', 'sending') GROUP BY lane ORDER BY min(id)")
    return [lane for (lane,) in rows]


def mark_sending(conn: sqlite3.Connection, id: int, now: datetime) -> bool:
    """Note that an attempt begins, and when; False when the part does not wait any more."""
    cursor = conn.execute(
        "UPDATE outbox SET state = 'sending', attempts = attempts + 1, next_at = ?2"
        " WHERE id = ?1 AND state = 'pending'",
        (id, to_text(now)),
    )
    return cursor.rowcount == 1


def mark_sent(conn: sqlite3.Connection, id: int, sent_ref: dict[str, Any] | None, now: datetime) -> bool:
    """Note that it arrived, and where it stands; False when that was noted before."""
    cursor = conn.execute(
        "UPDATE outbox SET state = 'sent', sent_ref = ?2, sent_at = ?3, error = NULL WHERE id = ?1 AND state <> 'sent'",
        (id, None if sent_ref is None else dump(sent_ref), to_text(now)),
    )
    return cursor.rowcount == 1


def mark_retry(conn: sqlite3.Connection, id: int, next_at: datetime, uncertain: bool, error: str) -> bool:
    """Put it back until ``next_at``; once uncertain it stays so. False when it was settled before."""
    cursor = conn.execute(
        "UPDATE outbox SET state = 'pending', next_at = ?2, uncertain = max(uncertain, ?3), error = ?4"
        " WHERE id = ?1 AND state IN ('pending', 'sending')",
        (id, to_text(next_at), uncertain, storable(error)),
    )
    return cursor.rowcount == 1


def mark_dead(conn: sqlite3.Connection, id: int, error: str) -> bool:
    """Give it up; the lane goes on behind it. False when it was settled before."""
    cursor = conn.execute(
        "UPDATE outbox SET state = 'dead', error = ?2 WHERE id = ?1 AND state IN ('pending', 'sending')",
        (id, storable(error)),
    )
    return cursor.rowcount == 1


def dead(conn: sqlite3.Connection, limit: int = 1_000) -> list[OutboxRow]:
    """What was given up, oldest first."""
    return _all(conn.execute(f"{_SELECT} WHERE state = 'dead' ORDER BY id LIMIT ?1", (limit,)))


def revive(conn: sqlite3.Connection, id: int) -> bool:
    """Try again what was given up, at once; False when it was not."""
    cursor = conn.execute(
        "UPDATE outbox SET state = 'pending', next_at = created_at, attempts = 0 WHERE id = ?1 AND state = 'dead'",
        (id,),
    )
    return cursor.rowcount == 1


def recover(conn: sqlite3.Connection) -> int:
    """At a start: what was being sent may have arrived. It waits again, marked; returns how many there were."""
    return conn.execute("UPDATE outbox SET state = 'pending', uncertain = 1 WHERE state = 'sending'").rowcount


def _first(rows: Iterable[tuple[Any, ...]]) -> OutboxRow | None:
    return next(iter(_all(rows)), None)


def _all(rows: Iterable[tuple[Any, ...]]) -> list[OutboxRow]:
    return [OutboxRow(*decode(values, _DECODERS)) for values in rows]
