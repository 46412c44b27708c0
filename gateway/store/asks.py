"""Requests to people. A request's state changes once, away from ``pending``."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from gateway.store.codec import Decoders, decode, dump, load_array, storable
from gateway.store.times import from_text, maybe_text, to_text

#: No vowels, so that a code is never a word; nothing that looks like something else.
CODE_ALPHABET = "BCDFGHJKLMNPQRSTVWXYZ23456789"
CODE_LENGTH = 4

#: States in which a person's will lets something run.
CONSENTING = frozenset({"approved", "answered"})
#: What settles a request for the rest of its turn. ``cancelled`` does not: nobody decided.
BLOCKING = ("denied", "timed_out", "undeliverable")


@dataclass(frozen=True, slots=True)
class AskRow:
    """A request to people; the columns of the table.

    Attributes:
        id: unguessable and single-use.
        code: for typed answers.
        kind: ``approval``, ``token``, ``line`` or ``question``.
        grants: drafts, as JSON objects.
        need: distinct people who must approve.
        shown: references of the messages that carry the card, as JSON objects.
        state: ``pending``, ``approved``, ``denied``, ``timed_out``, ``cancelled``, ``undeliverable`` or ``answered``.
    """

    id: str
    code: str
    kind: str
    session: str
    turn: str
    request_id: str
    digest: str
    digest_version: int
    title: str
    command: str
    reason: str
    rules: tuple[str, ...]
    choices: tuple[str, ...]
    requester: str
    requester_role: str
    created_at: datetime
    expires_at: datetime
    evidence: str = ""
    impact: str = ""
    token: str = ""
    grants: tuple[dict[str, Any], ...] = ()
    origin: str = ""
    need: int = 1
    shown: tuple[dict[str, Any], ...] = ()
    state: str = "pending"
    choice: str | None = None
    answer: str | None = None
    settled_by: str | None = None
    deny_reason: str = ""
    settled_at: datetime | None = None


_NAMES = tuple(field.name for field in fields(AskRow))
_ARRAYS = ("rules", "choices", "grants", "shown")
_TIMES = ("created_at", "expires_at", "settled_at")
_DECODERS: Decoders = {_NAMES.index(name): load_array for name in _ARRAYS} | {
    _NAMES.index(name): from_text for name in _TIMES
}
_SELECT = f"SELECT {', '.join(_NAMES)} FROM asks"  # noqa: S608 - names of the class above
_INSERT = f"INSERT INTO asks ({', '.join(_NAMES)}) VALUES ({', '.join(f'?{n + 1}' for n in range(len(_NAMES)))})"  # noqa: S608


def open_ask(conn: sqlite3.Connection, row: AskRow) -> None:
    """Store a new request.

    Raises:
        sqlite3.IntegrityError: its id is taken.
    """
    values = []
    for name in _NAMES:
        value = getattr(row, name)
        if name in _ARRAYS:
            value = dump(list(value))
        elif name in _TIMES:
            value = maybe_text(value)
        elif isinstance(value, str):
            value = storable(value)
        values.append(value)
    conn.execute(_INSERT, values)


def get(conn: sqlite3.Connection, id: str) -> AskRow | None:
    """The request of that id."""
    return _first(conn.execute(f"{_SELECT} WHERE id = ?1", (id,)))


def by_code(conn: sqlite3.Connection, session: str, code: str) -> AskRow | None:
    """The open request of a session with that code, case ignored."""
    return _first(
        conn.execute(
            f"{_SELECT} WHERE session = ?1 AND state = 'pending' AND code = ?2", (session, storable(code).upper())
        )
    )


def open_in(conn: sqlite3.Connection, session: str) -> list[AskRow]:
    """The open requests of a session, oldest first."""
    return _all(conn.execute(f"{_SELECT} WHERE session = ?1 AND state = 'pending' ORDER BY created_at, id", (session,)))


def open_of_turn(conn: sqlite3.Connection, turn: str) -> list[AskRow]:
    """Requests of a turn that wait for an answer, the oldest first."""
    return _all(conn.execute(f"{_SELECT} WHERE turn = ?1 AND state = 'pending' ORDER BY created_at", (turn,)))


def newest_time(conn: sqlite3.Connection) -> datetime | None:
    """The latest time that any accepted message or event bears; None in an empty database."""
    (newest,) = conn.execute(
        "SELECT max(at) FROM (SELECT * FROM (SELECT received_at AS at FROM inbox ORDER BY id DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT at FROM events ORDER BY id DESC LIMIT 1))"
    ).fetchone()
    return None if newest is None else from_text(newest)


def all_open(conn: sqlite3.Connection) -> list[AskRow]:
    """All open requests, oldest first."""
    return _all(conn.execute(f"{_SELECT} WHERE state = 'pending' ORDER BY created_at, id"))


def latest(conn: sqlite3.Connection, request_id: str, digest: str) -> AskRow | None:
    """The newest request for that command request and digest, whatever became of it."""
    return _first(
        conn.execute(
            f"{_SELECT} WHERE request_id = ?1 AND digest = ?2 ORDER BY created_at DESC, id DESC LIMIT 1",
            (request_id, digest),
        )
    )


def of_request(conn: sqlite3.Connection, request_id: str) -> list[AskRow]:
    """All requests to people that a command request led to, oldest first."""
    return _all(conn.execute(f"{_SELECT} WHERE request_id = ?1 ORDER BY created_at, id", (request_id,)))


def blocked(conn: sqlite3.Connection, turn: str, digest: str) -> AskRow | None:
    """The request that denied this digest in this turn, timed out or could not be delivered; None where none did."""
    return _first(
        conn.execute(
            f"{_SELECT} WHERE turn = ?1 AND digest = ?2 AND state IN (?3, ?4, ?5) ORDER BY settled_at DESC LIMIT 1",
            (turn, digest, *BLOCKING),
        )
    )


def settle(
    conn: sqlite3.Connection,
    id: str,
    *,
    state: str,
    choice: str | None,
    by: str | None,
    reason: str,
    now: datetime,
    answer: str | None = None,
) -> bool:
    """End a request that is pending; False when it is not, or when ``now`` is too late to consent.

    A late answer never approves, so ``approved`` and ``answered`` are taken up to ``expires_at`` only.
    """
    if state == "pending":
        raise ValueError("a request is not settled as pending")
    cursor = conn.execute(
        "UPDATE asks SET state = ?2, choice = ?3, settled_by = ?4, deny_reason = ?5, settled_at = ?6, answer = ?7"
        " WHERE id = ?1 AND state = 'pending' AND (?8 = 0 OR expires_at >= ?6)",
        (
            id,
            state,
            choice,
            by,
            storable(reason),
            to_text(now),
            None if answer is None else storable(answer),
            state in CONSENTING,
        ),
    )
    return cursor.rowcount == 1


def vote(conn: sqlite3.Connection, ask: str, principal: str, now: datetime) -> int:
    """Count a person's consent to a pending request, once; returns how many people have consented."""
    conn.execute(
        "INSERT INTO ask_votes (ask, principal, at)"
        " SELECT id, ?2, ?3 FROM asks WHERE id = ?1 AND state = 'pending' AND expires_at >= ?3"
        " ON CONFLICT (ask, principal) DO NOTHING",
        (ask, principal, to_text(now)),
    )
    return votes(conn, ask)


def votes(conn: sqlite3.Connection, ask: str) -> int:
    """How many people have consented."""
    (count,) = conn.execute("SELECT count(*) FROM ask_votes WHERE ask = ?1", (ask,)).fetchone()
    return int(count)


def add_shown(conn: sqlite3.Connection, id: str, ref: dict[str, Any]) -> None:
    """Remember a message that carries the card."""
    found = conn.execute("SELECT shown FROM asks WHERE id = ?1", (id,)).fetchone()
    if found is None:
        return
    shown = load_array(found[0])
    if ref not in shown:
        conn.execute("UPDATE asks SET shown = ?2 WHERE id = ?1", (id, dump([*shown, ref])))


def fresh_code(conn: sqlite3.Connection, session: str) -> str:
    """A code that no open request of the session has."""
    rows = conn.execute("SELECT code FROM asks WHERE session = ?1 AND state = 'pending'", (session,))
    taken = {code for (code,) in rows}
    while True:
        code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH))
        if code not in taken:
            return code


def _first(rows: Iterable[tuple[Any, ...]]) -> AskRow | None:
    return next((_row(values) for values in rows), None)


def _all(rows: Iterable[tuple[Any, ...]]) -> list[AskRow]:
    return [_row(values) for values in rows]


def _row(values: tuple[Any, ...]) -> AskRow:
    return AskRow(*decode(values, _DECODERS))
