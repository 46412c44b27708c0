"""Conversations and where their answers go."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from gateway.store import meta
from gateway.store.codec import Decoders, decode, dump, load_object, storable
from gateway.store.times import from_text, to_text

_COLUMNS = "key, name, adapter, owner, scope, conversation, title, history_from, created_at, last_at"
_SELECT = f"SELECT {_COLUMNS} FROM sessions"  # noqa: S608 - the names above
_DECODERS: Decoders = {5: load_object, 8: from_text, 9: from_text}

#: Under this key of the meta table: the highest event id that was ever deleted with a session.
EVENT_FLOOR = "event_floor"


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A conversation.

    Attributes:
        key: ``http:USER/NAME``, ``telegram:CHAT[:TOPIC]`` or ``slack:TEAM:CHANNEL[:THREAD]``.
        name: as its owner names it over HTTP; equal to ``key`` for chats.
        owner: principal of a direct or named session, None in groups.
        conversation: where answers go.
        history_from: only messages with a greater id count.
    """

    key: str
    name: str
    adapter: str
    owner: str | None
    scope: str
    conversation: dict[str, Any]
    title: str
    history_from: int
    created_at: datetime
    last_at: datetime


def ensure(
    conn: sqlite3.Connection,
    *,
    key: str,
    name: str,
    adapter: str,
    owner: str | None,
    scope: str,
    conversation: dict[str, Any],
    now: datetime,
) -> SessionRow:
    """The session of that key, made where there is none. Its last activity is ``now``."""
    rows = conn.execute(
        "INSERT INTO sessions (key, name, adapter, owner, scope, conversation, created_at, last_at)"  # noqa: S608
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) ON CONFLICT (key) DO UPDATE SET last_at = excluded.last_at"
        f" RETURNING {_COLUMNS}",
        (key, name, adapter, owner, scope, dump(conversation), to_text(now)),
    ).fetchall()
    return _row(rows[0])


def get(conn: sqlite3.Connection, key: str) -> SessionRow | None:
    """The session of that key."""
    rows = conn.execute(f"{_SELECT} WHERE key = ?1", (key,)).fetchall()
    return _row(rows[0]) if rows else None


def touch(conn: sqlite3.Connection, key: str, now: datetime) -> SessionRow | None:
    """Note activity; the session as it is then, None where it is gone."""
    rows = conn.execute(
        f"UPDATE sessions SET last_at = ?2 WHERE key = ?1 RETURNING {_COLUMNS}",  # noqa: S608 - names of the class above
        (key, to_text(now)),
    ).fetchall()
    return _row(rows[0]) if rows else None


def by_owner(conn: sqlite3.Connection, owner: str, limit: int) -> list[SessionRow]:
    """A person's own sessions, the latest first."""
    return _all(conn.execute(f"{_SELECT} WHERE owner = ?1 ORDER BY last_at DESC, key LIMIT ?2", (owner, limit)))


def recent(conn: sqlite3.Connection, limit: int) -> list[SessionRow]:
    """Everybody's sessions, the latest first."""
    return _all(conn.execute(f"{_SELECT} ORDER BY last_at DESC, key LIMIT ?1", (limit,)))


def named(conn: sqlite3.Connection, name: str) -> list[SessionRow]:
    """Sessions with that key or name; two people may both have one of a name."""
    return _all(conn.execute(f"{_SELECT} WHERE key = ?1 OR name = ?1 ORDER BY key <> ?1, key", (name,)))


def state_of(conn: sqlite3.Connection, key: str) -> Literal["idle", "running", "waiting"]:
    """``waiting`` while its turn waits for a person."""
    running, waiting = conn.execute(
        "SELECT EXISTS (SELECT 1 FROM turns WHERE session = ?1 AND state = 'running'),"
        " EXISTS (SELECT 1 FROM asks WHERE session = ?1 AND state = 'pending')",
        (key,),
    ).fetchone()
    if not running:
        return "idle"
    return "waiting" if waiting else "running"


def set_title(conn: sqlite3.Connection, key: str, title: str) -> None:
    """Name a session for lists."""
    conn.execute("UPDATE sessions SET title = ?2 WHERE key = ?1", (key, storable(title)))


def reset(conn: sqlite3.Connection, key: str) -> None:
    """Begin anew: messages so far do not count any more, except those of a turn that runs now."""
    conn.execute(
        "UPDATE sessions SET history_from = max(history_from, coalesce((SELECT max(id) FROM messages"
        " WHERE session = ?1 AND turn NOT IN (SELECT id FROM turns WHERE session = ?1 AND state = 'running')), 0))"
        " WHERE key = ?1",
        (key,),
    )


def events_purged(conn: sqlite3.Connection, key: str) -> int:
    """Id of the newest event of the session that was cleaned away; 0 when all are there."""
    found = conn.execute("SELECT events_purged FROM sessions WHERE key = ?1", (key,)).fetchone()
    return 0 if found is None else int(found[0])


def delete(conn: sqlite3.Connection, key: str) -> bool:
    """Forget a session and all that belongs to it; False when there is none.

    The audit chain stays. Of the inbox the keys stay, with everything that a person wrote taken out, so that a
    redelivery is still a duplicate; they go with :func:`gateway.store.retention.clean`.
    """
    conn.execute("DELETE FROM ask_votes WHERE ask IN (SELECT id FROM asks WHERE session = ?1)", (key,))
    (newest,) = conn.execute("SELECT coalesce(max(id), 0) FROM events WHERE session = ?1", (key,)).fetchone()
    if newest > meta.get_int(conn, EVENT_FLOOR):
        meta.put(conn, EVENT_FLOOR, str(newest))
    for table in ("asks", "grants", "tool_calls", "messages", "turns", "events", "outbox"):
        conn.execute(f"DELETE FROM {table} WHERE session = ?1", (key,))  # noqa: S608 - names from this tuple
    conn.execute(
        "UPDATE inbox SET state = 'dropped', principal = '', sender = '{}', text = '', reply_to = '',"
        " attachments = '[]', turn = NULL, reply = NULL WHERE session = ?1",
        (key,),
    )
    return conn.execute("DELETE FROM sessions WHERE key = ?1", (key,)).rowcount == 1


def _all(rows: Iterable[tuple[Any, ...]]) -> list[SessionRow]:
    return [_row(values) for values in rows]


def _row(values: tuple[Any, ...]) -> SessionRow:
    return SessionRow(*decode(values, _DECODERS))
