"""What was said in a session, in the order in which the model sees it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from gateway.store.codec import Decoders, decode, storable
from gateway.store.times import from_text, to_text
from gateway.store.tool_calls import ToolCallRow, unanswered

__all__ = [
    "CallRow",
    "Said",
    "StoredMessage",
    "ToolCallRow",
    "add_assistant",
    "add_final",
    "add_tool",
    "add_user",
    "history",
    "page",
    "turn_texts",
    "unanswered",
]

_SELECT = (
    "SELECT m.id, m.turn, m.role, m.text, m.call_id, m.ok, m.final, m.status, m.at, coalesce(c.name, '')"
    " FROM messages m LEFT JOIN tool_calls c ON c.id = m.call_id"
)
_DECODERS: Decoders = {5: bool, 6: bool, 8: from_text}


#: Messages that a turn's history holds at most: what a model can use, and a bound on the work of every turn.
HISTORY_MAX = 400


@dataclass(frozen=True, slots=True)
class CallRow:
    """A tool call as part of an assistant message; ``arguments`` as the model wrote them."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message.

    Attributes:
        role: ``user``, ``assistant`` or ``tool``.
        ok: False for a tool's error.
        call_id: of role tool: the call that it answers; ``name`` is that call's tool.
        final: whether it ended its turn; then ``status`` is ``done``, ``failed`` or ``cancelled``.
    """

    id: int
    turn: str
    role: str
    text: str
    call_id: str | None
    ok: bool
    final: bool
    status: str
    at: datetime
    name: str = ""


class Said(NamedTuple):
    """A message as a history needs it: many are read for every turn, so it holds nothing else.

    Attributes:
        role: ``user``, ``assistant`` or ``tool``.
        call_id: of role tool: the call that it answers; ``name`` is that call's tool.
        ok: False for a tool's error.
        calls: of role assistant: what it called, in order.
    """

    role: str
    text: str
    call_id: str | None
    ok: bool
    name: str
    calls: tuple[CallRow, ...]


def add_user(conn: sqlite3.Connection, session: str, turn: str, text: str, now: datetime) -> int:
    """Add what a person said; returns the message's id."""
    return _insert(conn, session, turn, "user", text, now)


def add_assistant(
    conn: sqlite3.Connection, session: str, turn: str, text: str, calls: Sequence[CallRow], now: datetime
) -> int:
    """Add an assistant message and plan its calls; returns the message's id.

    Raises:
        sqlite3.IntegrityError: the id of a call is taken.
    """
    message = _insert(conn, session, turn, "assistant", text, now)
    conn.executemany(
        "INSERT INTO tool_calls (id, session, turn, message, position, name, arguments)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        [
            (call.id, session, turn, message, position, storable(call.name), storable(call.arguments))
            for position, call in enumerate(calls)
        ],
    )
    return message


def add_tool(
    conn: sqlite3.Connection, session: str, turn: str, call_id: str, text: str, ok: bool, now: datetime
) -> int:
    """Add the answer to a call, which counts as answered then; returns the message's id.

    A call is answered once: another answer changes nothing and returns the id of the first.
    """
    rows = conn.execute("SELECT id FROM messages WHERE call_id = ?1", (call_id,)).fetchall()
    if rows:
        return int(rows[0][0])
    conn.execute("UPDATE tool_calls SET state = 'answered', result = NULL WHERE id = ?1", (call_id,))
    cursor = conn.execute(
        "INSERT INTO messages (session, turn, role, text, call_id, ok, at) VALUES (?1, ?2, 'tool', ?3, ?4, ?5, ?6)",
        (session, turn, storable(text), call_id, ok, to_text(now)),
    )
    return cursor.lastrowid or 0


def add_final(conn: sqlite3.Connection, session: str, turn: str, text: str, status: str, now: datetime) -> int:
    """Add the assistant message that ends its turn as ``done``, ``failed`` or ``cancelled``; returns its id."""
    cursor = conn.execute(
        "INSERT INTO messages (session, turn, role, text, final, status, at)"
        " VALUES (?1, ?2, 'assistant', ?3, 1, ?4, ?5)",
        (session, turn, storable(text), status, to_text(now)),
    )
    return cursor.lastrowid or 0


def history(conn: sqlite3.Connection, session: str, most: int = HISTORY_MAX) -> list[Said]:
    """The messages that count for the session, oldest first: whole turns, at most about ``most`` messages.

    Older turns stay in the store for reading and search; they no longer reach the model.
    """
    found = conn.execute(
        "SELECT max(s.history_from, coalesce((SELECT min(id) - 1 FROM messages WHERE turn = (SELECT turn FROM messages"
        " WHERE session = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)), 0)) FROM sessions s WHERE s.key = ?1",
        (session, most),
    ).fetchone()
    start = 0 if found is None else found[0]
    calls: dict[int, list[CallRow]] = {}
    for message, *call in conn.execute(
        "SELECT c.message, c.id, c.name, c.arguments FROM messages m JOIN tool_calls c ON c.message = m.id"
        " WHERE m.session = ?1 AND m.id > ?2 AND m.role = 'assistant' ORDER BY c.message, c.position",
        (session, start),
    ):
        calls.setdefault(message, []).append(CallRow(*call))
    rows = conn.execute(
        "SELECT m.id, m.role, m.text, m.call_id, m.ok, coalesce(c.name, '') FROM messages m"
        " LEFT JOIN tool_calls c ON c.id = m.call_id WHERE m.session = ?1 AND m.id > ?2 ORDER BY m.id",
        (session, start),
    )
    return [
        Said(role, text, call_id, bool(ok), name, tuple(calls.get(id_, ())))
        for id_, role, text, call_id, ok, name in rows
    ]


def page(conn: sqlite3.Connection, session: str, limit: int, before: int | None = None) -> list[StoredMessage]:
    """The newest ``limit`` messages of people and assistant that have a text, oldest first; with ids below ``before``.

    What was said before the last :func:`gateway.store.sessions.reset` is among them.
    """
    rows = conn.execute(
        f"{_SELECT} WHERE m.session = ?1 AND m.id < coalesce(?3, 9223372036854775807)"
        " AND m.role IN ('user', 'assistant') AND m.text <> '' ORDER BY m.id DESC LIMIT ?2",
        (session, limit, before),
    ).fetchall()
    return [_row(values) for values in reversed(rows)]


def turn_texts(conn: sqlite3.Connection, turn: str) -> list[str]:
    """What the assistant said in a turn, in order, without empty texts."""
    rows = conn.execute(
        "SELECT text FROM messages WHERE turn = ?1 AND role = 'assistant' AND text <> '' ORDER BY id", (turn,)
    )
    return [text for (text,) in rows]


def _insert(conn: sqlite3.Connection, session: str, turn: str, role: str, text: str, now: datetime) -> int:
    cursor = conn.execute(
        "INSERT INTO messages (session, turn, role, text, at) VALUES (?1, ?2, ?3, ?4, ?5)",
        (session, turn, role, storable(text), to_text(now)),
    )
    return cursor.lastrowid or 0


def _row(values: tuple[Any, ...]) -> StoredMessage:
    return StoredMessage(*decode(values, _DECODERS))
