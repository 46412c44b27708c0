"""Turns: one piece of work for one principal; at most one runs in a session."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.store.codec import Decoders, decode, dump, load_object
from gateway.store.times import from_text, to_text

_SELECT = (
    "SELECT id, session, principal, role, state, iterations, crash_count, live_message, started_at, ended_at FROM turns"
)
_DECODERS: Decoders = {7: load_object, 8: from_text, 9: from_text}


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn.

    Attributes:
        state: ``running``, ``done``, ``failed`` or ``cancelled``.
        iterations: model calls so far.
        crash_count: starts of the daemon that found it unfinished after a crash.
        live_message: reference of the message that is edited while the answer streams.
    """

    id: str
    session: str
    principal: str
    role: str
    state: str
    iterations: int
    crash_count: int
    live_message: dict[str, Any] | None
    started_at: datetime
    ended_at: datetime | None


def start(conn: sqlite3.Connection, *, id: str, session: str, principal: str, role: str, now: datetime) -> TurnRow:
    """Open a turn; its row.

    Raises:
        sqlite3.IntegrityError: one is running in that session.
    """
    conn.execute(
        "INSERT INTO turns (id, session, principal, role, started_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        (id, session, principal, role, to_text(now)),
    )
    return TurnRow(
        id=id,
        session=session,
        principal=principal,
        role=role,
        state="running",
        iterations=0,
        crash_count=0,
        live_message=None,
        started_at=now,
        ended_at=None,
    )


def get(conn: sqlite3.Connection, id: str) -> TurnRow | None:
    """The turn of that id."""
    return _one(conn.execute(f"{_SELECT} WHERE id = ?1", (id,)))


def running(conn: sqlite3.Connection, session: str) -> TurnRow | None:
    """The turn that runs in a session."""
    return _one(conn.execute(f"{_SELECT} WHERE session = ?1 AND state = 'running'", (session,)))


def finish(conn: sqlite3.Connection, id: str, state: str, now: datetime) -> bool:
    """End a running turn as ``done``, ``failed`` or ``cancelled``; False when it had ended before."""
    cursor = conn.execute(
        "UPDATE turns SET state = ?2, ended_at = ?3 WHERE id = ?1 AND state = 'running'", (id, state, to_text(now))
    )
    return cursor.rowcount == 1


def set_live_message(conn: sqlite3.Connection, id: str, ref: dict[str, Any] | None) -> None:
    """Remember the message that is edited while the answer streams, before its first edit."""
    conn.execute("UPDATE turns SET live_message = ?2 WHERE id = ?1", (id, None if ref is None else dump(ref)))


def count_iteration(conn: sqlite3.Connection, id: str) -> int:
    """Count a model call; returns how many there were with it."""
    rows = conn.execute(
        "UPDATE turns SET iterations = iterations + 1 WHERE id = ?1 RETURNING iterations", (id,)
    ).fetchall()
    return int(rows[0][0]) if rows else 0


def count_crashes(conn: sqlite3.Connection) -> int:
    """Count a crash for every turn that was working; called at a start after an unclean end. Returns how many.

    One that only waited for a person has done nothing that could end a daemon: its card works until its deadline.
    """
    return conn.execute(
        "UPDATE turns SET crash_count = crash_count + 1 WHERE state = 'running' AND ("
        " NOT EXISTS (SELECT 1 FROM asks WHERE asks.turn = turns.id AND asks.state = 'pending')"
        " OR EXISTS (SELECT 1 FROM tool_calls WHERE tool_calls.turn = turns.id AND tool_calls.state = 'started'))"
    ).rowcount


def _one(cursor: sqlite3.Cursor) -> TurnRow | None:
    rows = cursor.fetchall()
    return _row(rows[0]) if rows else None


def _row(values: tuple[Any, ...]) -> TurnRow:
    return TurnRow(*decode(values, _DECODERS))
