"""The queue of what people wrote, and the memory of what was seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from gateway.store.codec import Decoders, decode, dump, load_array, load_object, storable
from gateway.store.times import from_text, to_text

_SELECT = (
    "SELECT id, event_key, session, principal, role, sender, text, message_ref, reply_to, attachments, mergeable,"
    " control, state, turn, reply, received_at FROM inbox"
)
_DECODERS: Decoders = {5: load_object, 9: load_array, 10: bool, 11: bool, 15: from_text}


@dataclass(frozen=True, slots=True)
class NewInbound:
    """A message whose sender is authorised.

    Attributes:
        event_key: unique over all platforms, stable over redelivery.
        control: a word of control; it never waits behind a turn.
    """

    event_key: str
    session: str
    principal: str
    role: str
    sender: dict[str, Any]
    text: str
    message_ref: str
    reply_to: str
    attachments: list[dict[str, Any]]
    mergeable: bool
    control: bool


@dataclass(frozen=True, slots=True)
class Accepted:
    """What :func:`accept` did.

    Attributes:
        id: of the row, also of a duplicate's first arrival; 0 when nothing was stored.
        session: that took it; for a duplicate, the first time.
        queued: messages of the session that wait before this one.
    """

    verdict: Literal["accepted", "duplicate", "full"]
    id: int
    session: str
    queued: int


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A stored message.

    Attributes:
        state: ``queued``, ``taken`` (by ``turn``), ``done`` or ``dropped``.
        reply: the answer to a word of control.
    """

    id: int
    event_key: str
    session: str
    principal: str
    role: str
    sender: dict[str, Any]
    text: str
    message_ref: str
    reply_to: str
    attachments: tuple[dict[str, Any], ...]
    mergeable: bool
    control: bool
    state: str
    turn: str | None
    reply: str | None
    received_at: datetime


def accept(conn: sqlite3.Connection, item: NewInbound, now: datetime, queue_max: int) -> Accepted:
    """Store ``item`` unless its event was seen before or its session's queue is full.

    Words of control are not counted among the messages; their own bound is twice as wide.
    """
    seen = conn.execute(
        "SELECT id, session, state, control FROM inbox WHERE event_key = ?1", (storable(item.event_key),)
    ).fetchone()
    if seen is not None:
        id_, session, state, control = seen
        return Accepted(
            "duplicate", id_, session, _before(conn, session, id_) if (state, control) == ("queued", 0) else 0
        )
    waiting = _waiting(conn, item.session, control=item.control)
    if waiting >= (queue_max * 2 if item.control else queue_max):
        return Accepted("full", 0, item.session, waiting)
    cursor = conn.execute(
        "INSERT INTO inbox (event_key, session, principal, role, sender, text, message_ref, reply_to, attachments,"
        " mergeable, control, received_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        (
            storable(item.event_key),
            item.session,
            item.principal,
            item.role,
            dump(item.sender),
            storable(item.text),
            storable(item.message_ref),
            storable(item.reply_to),
            dump(item.attachments),
            item.mergeable,
            item.control,
            to_text(now),
        ),
    )
    return Accepted("accepted", cursor.lastrowid or 0, item.session, 0 if item.control else waiting)


def get(conn: sqlite3.Connection, id_: int) -> InboxRow | None:
    """The row of that id."""
    return _one(conn.execute(f"{_SELECT} WHERE id = ?1", (id_,)))


def next_queued(conn: sqlite3.Connection, session: str) -> InboxRow | None:
    """The oldest waiting message of a session; words of control are not among them."""
    return _one(
        conn.execute(
            f"{_SELECT} WHERE session = ?1 AND control = 0 AND state = 'queued' ORDER BY id LIMIT 1",
            (session,),
        )
    )


def queued(conn: sqlite3.Connection, session: str) -> list[InboxRow]:
    """All waiting messages of a session, oldest first; words of control are not among them."""
    return _all(
        conn.execute(
            f"{_SELECT} WHERE session = ?1 AND control = 0 AND state = 'queued' ORDER BY id",
            (session,),
        )
    )


def open_control(conn: sqlite3.Connection) -> list[InboxRow]:
    """Words of control that were stored and not handled yet, oldest first."""
    return _all(conn.execute(f"{_SELECT} WHERE control = 1 AND state = 'queued' ORDER BY id"))


def of_turn(conn: sqlite3.Connection, turn: str) -> list[InboxRow]:
    """The messages that a turn took, oldest first."""
    return _all(conn.execute(f"{_SELECT} WHERE turn = ?1 ORDER BY id", (turn,)))


def find_by_ref(conn: sqlite3.Connection, session: str, message_ref: str) -> InboxRow | None:
    """The newest row of a session with that reference."""
    return _one(
        conn.execute(
            f"{_SELECT} WHERE session = ?1 AND message_ref = ?2 ORDER BY id DESC LIMIT 1",
            (session, storable(message_ref)),
        )
    )


def sessions_with_work(conn: sqlite3.Connection) -> list[str]:
    """Sessions with a running turn, then those with waiting messages, the longest waiting first."""
    rows = conn.execute(
        "SELECT session FROM ("
        " SELECT session, 0 AS first FROM turns WHERE state = 'running'"
        " UNION ALL"
        " SELECT session, min(id) FROM inbox WHERE state = 'queued' AND control = 0 GROUP BY session"
        ") GROUP BY session ORDER BY min(first), session"
    )
    return [session for (session,) in rows]


def take(conn: sqlite3.Connection, id_: int, turn: str) -> bool:
    """Give a waiting message to a turn; False when it does not wait any more."""
    cursor = conn.execute("UPDATE inbox SET state = 'taken', turn = ?2 WHERE id = ?1 AND state = 'queued'", (id_, turn))
    return cursor.rowcount == 1


def finish(conn: sqlite3.Connection, id_: int, reply: str | None = None) -> bool:
    """Mark a row as handled, with the answer to a word of control; False when it was before."""
    cursor = conn.execute(
        "UPDATE inbox SET state = 'done', reply = ?2 WHERE id = ?1 AND state IN ('queued', 'taken')",
        (id_, None if reply is None else storable(reply)),
    )
    return cursor.rowcount == 1


def finish_turn(conn: sqlite3.Connection, turn: str) -> int:
    """Mark everything that a turn took as handled; how many rows."""
    return conn.execute("UPDATE inbox SET state = 'done' WHERE turn = ?1 AND state = 'taken'", (turn,)).rowcount


def has_queued(conn: sqlite3.Connection, session: str) -> bool:
    """Whether a message of the session waits; words of control are not among them."""
    (found,) = conn.execute(
        "SELECT EXISTS (SELECT 1 FROM inbox WHERE session = ?1 AND control = 0 AND state = 'queued')", (session,)
    ).fetchone()
    return bool(found)


def drop(conn: sqlite3.Connection, session: str) -> int:
    """Give up all waiting messages of a session; returns how many there were."""
    cursor = conn.execute(
        "UPDATE inbox SET state = 'dropped' WHERE session = ?1 AND control = 0 AND state = 'queued'", (session,)
    )
    return cursor.rowcount


def drop_one(conn: sqlite3.Connection, id_: int) -> bool:
    """Give up one waiting message; False when it does not wait any more."""
    cursor = conn.execute("UPDATE inbox SET state = 'dropped' WHERE id = ?1 AND state = 'queued'", (id_,))
    return cursor.rowcount == 1


def amend(conn: sqlite3.Connection, event_key: str, text: str, *, principal: str | None = None) -> bool:
    """Replace the text of a message that still waits, of ``principal`` alone where one is given; False otherwise."""
    cursor = conn.execute(
        "UPDATE inbox SET text = ?2 WHERE event_key = ?1 AND state = 'queued' AND control = 0"
        " AND principal = coalesce(?3, principal)",
        (storable(event_key), storable(text), principal),
    )
    return cursor.rowcount == 1


def _waiting(conn: sqlite3.Connection, session: str, *, control: bool) -> int:
    (count,) = conn.execute(
        "SELECT count(*) FROM inbox WHERE session = ?1 AND control = ?2 AND state = 'queued'", (session, control)
    ).fetchone()
    return int(count)


def _before(conn: sqlite3.Connection, session: str, id_: int) -> int:
    (count,) = conn.execute(
        "SELECT count(*) FROM inbox WHERE session = ?1 AND control = 0 AND state = 'queued' AND id < ?2", (session, id_)
    ).fetchone()
    return int(count)


def _one(rows: Iterable[tuple[Any, ...]]) -> InboxRow | None:
    return next((_row(values) for values in rows), None)


def _all(rows: Iterable[tuple[Any, ...]]) -> list[InboxRow]:
    return [_row(values) for values in rows]


def _row(values: tuple[Any, ...]) -> InboxRow:
    return InboxRow(*decode(values, _DECODERS))
