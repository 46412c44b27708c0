"""What clients of a session's stream are told, kept for reconnects."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.store import meta
from gateway.store.codec import Decoders, decode, dump, load_object
from gateway.store.sessions import EVENT_FLOOR
from gateway.store.times import from_text, to_text

_SELECT = "SELECT id, session, turn, type, data, at FROM events"
#: By way of the session: its events have an index, those of a turn need none of their own.
_IN_TURN = "session = (SELECT session FROM turns WHERE id = ?1) AND turn = ?1"
_DECODERS: Decoders = {4: load_object, 5: from_text}


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of a session's stream."""

    id: int
    session: str
    turn: str | None
    type: str
    data: dict[str, Any]
    at: datetime


class EventIds:
    """Gives out ids that rise, over restarts and over a clock that was set back too.

    They begin at the microseconds since 1970 or behind the highest id ever given, whichever is greater; so they stay
    below 2**53, which is what a number in JavaScript holds, until the year 2255.
    """

    def __init__(self, start: int) -> None:
        """Begin with ``start``; see :meth:`begin`."""
        self._next = start

    @classmethod
    def begin(cls, conn: sqlite3.Connection, now: datetime) -> EventIds:
        """Go on behind what the database holds or has held."""
        (highest,) = conn.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()
        return cls(max(highest + 1, meta.get_int(conn, EVENT_FLOOR) + 1, int(now.timestamp() * 1_000_000)))

    @property
    def last(self) -> int:
        """The newest id that was given out."""
        return self._next - 1

    def next(self) -> int:
        """A new id."""
        id_, self._next = self._next, self._next + 1
        return id_


def append(
    conn: sqlite3.Connection,
    ids: EventIds,
    *,
    session: str,
    turn: str | None,
    type: str,
    data: dict[str, Any],
    now: datetime,
) -> int:
    """Keep an event; returns its id."""
    id_ = ids.next()
    conn.execute(
        "INSERT INTO events (id, session, turn, type, data, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        (id_, session, turn, type, dump(data), to_text(now)),
    )
    return id_


def append_all(
    conn: sqlite3.Connection,
    ids: EventIds,
    *,
    session: str,
    turn: str | None,
    items: Sequence[tuple[str, dict[str, Any]]],
    now: datetime,
) -> None:
    """Keep several events, as pairs of type and data, in one statement."""
    at = to_text(now)
    values = [value for kind, data in items for value in (ids.next(), session, turn, kind, dump(data), at)]
    rows = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(items))
    conn.execute(f"INSERT INTO events (id, session, turn, type, data, at) VALUES {rows}", values)  # noqa: S608 - marks only


def after(conn: sqlite3.Connection, session: str, after: int, limit: int) -> list[EventRow]:
    """At most ``limit`` events of a session with greater ids, in order."""
    return _all(conn.execute(f"{_SELECT} WHERE session = ?1 AND id > ?2 ORDER BY id LIMIT ?3", (session, after, limit)))


def of_turn(conn: sqlite3.Connection, turn: str) -> list[EventRow]:
    """The events of a turn that is on record, in order."""
    return _all(conn.execute(f"{_SELECT} WHERE {_IN_TURN} ORDER BY id", (turn,)))


def oldest(conn: sqlite3.Connection, session: str) -> int | None:
    """Id of the oldest event that is kept; None where none is."""
    (id_,) = conn.execute("SELECT min(id) FROM events WHERE session = ?1", (session,)).fetchone()
    return None if id_ is None else int(id_)


def latest(conn: sqlite3.Connection, session: str) -> int:
    """Id of the newest event; 0 where none is kept."""
    (id_,) = conn.execute("SELECT coalesce(max(id), 0) FROM events WHERE session = ?1", (session,)).fetchone()
    return int(id_)


def _all(rows: Iterable[tuple[Any, ...]]) -> list[EventRow]:
    return [EventRow(*decode(values, _DECODERS)) for values in rows]
