"""Standing permissions of a session. Permanent ones are in ``allowlist.json``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.control.grants import Grant
from gateway.store.codec import Decoders, decode, dump, load_array, storable
from gateway.store.times import from_text, maybe_text, to_text

_SELECT = (
    "SELECT id, session, boot, principal, rule, shape, paths, given_by, at, expires, uses_left, revoked_at FROM grants"
)
_DECODERS: Decoders = {6: load_array, 8: from_text, 9: from_text, 11: from_text}
#: What makes a grant count at the time that is the first parameter.
_LIVE = "revoked_at IS NULL AND expires > ?1 AND (uses_left IS NULL OR uses_left > 0)"


@dataclass(frozen=True, slots=True)
class GrantRow:
    """A permission.

    Attributes:
        boot: the run of the daemon that it was given in, and ends with.
        uses_left: None for unlimited.
    """

    id: str
    session: str
    boot: str
    principal: str
    rule: str
    shape: str
    paths: tuple[str, ...]
    given_by: str
    at: datetime
    expires: datetime
    uses_left: int | None = None
    revoked_at: datetime | None = None


def as_grant(row: GrantRow) -> Grant:
    """The grant as it is matched."""
    return Grant(
        id=row.id,
        rule=row.rule,
        shape=row.shape,
        paths=row.paths,
        principal=row.principal,
        session=row.session,
        by=row.given_by,
        at=row.at,
        expires=row.expires,
        uses_left=row.uses_left,
    )


def add(conn: sqlite3.Connection, row: GrantRow) -> None:
    """Store a permission.

    Raises:
        sqlite3.IntegrityError: its id is taken.
    """
    conn.execute(
        "INSERT INTO grants (id, session, boot, principal, rule, shape, paths, given_by, at, expires, uses_left,"
        " revoked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        (
            row.id,
            row.session,
            row.boot,
            row.principal,
            row.rule,
            storable(row.shape),
            dump(list(row.paths)),
            row.given_by,
            to_text(row.at),
            to_text(row.expires),
            row.uses_left,
            maybe_text(row.revoked_at),
        ),
    )


def get(conn: sqlite3.Connection, id: str) -> GrantRow | None:
    """The permission of that id, live or not."""
    return next(iter(_all(conn.execute(f"{_SELECT} WHERE id = ?1", (id,)))), None)


def of_session(conn: sqlite3.Connection, session: str, boot: str, principal: str, now: datetime) -> list[GrantRow]:
    """The permissions that count for a principal in a session, oldest first."""
    return _all(
        conn.execute(
            f"{_SELECT} WHERE session = ?2 AND boot = ?3 AND principal = ?4 AND {_LIVE} ORDER BY at, id",
            (to_text(now), session, boot, principal),
        )
    )


def all_live(conn: sqlite3.Connection, boot: str, now: datetime) -> list[GrantRow]:
    """All permissions that count, oldest first."""
    return _all(conn.execute(f"{_SELECT} WHERE boot = ?2 AND {_LIVE} ORDER BY at, id", (to_text(now), boot)))


def spend(conn: sqlite3.Connection, ids: Sequence[str], now: datetime) -> bool:
    """Use each of the permissions once, or none of them; False when one does not count any more."""
    moment = to_text(now)
    wanted = tuple(dict.fromkeys(ids))
    for id_ in wanted:
        if conn.execute(f"{_SELECT} WHERE id = ?2 AND {_LIVE}", (moment, id_)).fetchone() is None:
            return False
    conn.executemany(
        "UPDATE grants SET uses_left = uses_left - 1 WHERE id = ?1 AND uses_left IS NOT NULL",
        [(id_,) for id_ in wanted],
    )
    return True


def revoke(conn: sqlite3.Connection, id: str, now: datetime) -> bool:
    """End a permission; False when there is none of that id, or it had been revoked."""
    cursor = conn.execute("UPDATE grants SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL", (id, to_text(now)))
    return cursor.rowcount == 1


def end_session(conn: sqlite3.Connection, session: str, now: datetime) -> int:
    """Revoke all permissions of a session; returns how many there were."""
    cursor = conn.execute(
        "UPDATE grants SET revoked_at = ?2 WHERE session = ?1 AND revoked_at IS NULL", (session, to_text(now))
    )
    return cursor.rowcount


def _all(rows: Iterable[tuple[Any, ...]]) -> list[GrantRow]:
    return [GrantRow(*decode(values, _DECODERS)) for values in rows]
