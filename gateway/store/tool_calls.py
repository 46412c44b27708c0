"""Tool calls on their way from plan to answer; the row is what a restart goes by."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.store.codec import Decoders, decode, storable
from gateway.store.times import from_text, to_text

_SELECT = (
    "SELECT id, session, turn, message, position, name, arguments, state, result, exit_code, started_at, ended_at"
    " FROM tool_calls"
)
_DECODERS: Decoders = {10: from_text, 11: from_text}


@dataclass(frozen=True, slots=True)
class ToolCallRow:
    """A tool call.

    Attributes:
        id: the request id.
        message: the assistant message that made it, ``position`` its place there, from 0.
        state: ``planned``, ``started`` (committed before it began), ``ended`` (``result`` is kept) or ``answered``.
    """

    id: str
    session: str
    turn: str
    message: int
    position: int
    name: str
    arguments: str
    state: str
    result: str | None
    exit_code: int | None
    started_at: datetime | None
    ended_at: datetime | None


def get(conn: sqlite3.Connection, id: str) -> ToolCallRow | None:
    """The call of that id."""
    rows = conn.execute(f"{_SELECT} WHERE id = ?1", (id,)).fetchall()
    return _row(rows[0]) if rows else None


def unanswered(conn: sqlite3.Connection, turn: str) -> list[ToolCallRow]:
    """The calls of a turn that have no answer yet, in order."""
    rows = conn.execute(f"{_SELECT} WHERE turn = ?1 AND state <> 'answered' ORDER BY message, position", (turn,))
    return [_row(values) for values in rows]


def mark_started(conn: sqlite3.Connection, id: str, now: datetime) -> bool:
    """Note that the call is about to run; False when it was started before, and must not run again."""
    cursor = conn.execute(
        "UPDATE tool_calls SET state = 'started', started_at = ?2 WHERE id = ?1 AND state = 'planned'",
        (id, to_text(now)),
    )
    return cursor.rowcount == 1


def mark_ended(conn: sqlite3.Connection, id: str, result: str, exit_code: int | None, now: datetime) -> bool:
    """Keep the outcome until its answer is a message; False when the call has one already."""
    cursor = conn.execute(
        "UPDATE tool_calls SET state = 'ended', result = ?2, exit_code = ?3, ended_at = ?4"
        " WHERE id = ?1 AND state IN ('planned', 'started')",
        (id, storable(result), exit_code, to_text(now)),
    )
    return cursor.rowcount == 1


def _row(values: tuple[Any, ...]) -> ToolCallRow:
    return ToolCallRow(*decode(values, _DECODERS))
