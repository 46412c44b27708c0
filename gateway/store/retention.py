"""What is thrown away after its time, a little at each call so that no writer waits for long."""

from __future__ import annotations

import sqlite3
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta

from gateway.store import meta
from gateway.store.times import to_text

#: Events of a session that are kept whatever their age, and the age below which all are kept.
EVENTS_KEPT = 1_000
EVENTS_AGE = timedelta(hours=24)
#: Handled inbox rows are the memory of what was seen; sent parts, and long output of ended turns, likewise 7 days.
HANDLED_AGE = timedelta(days=7)
AUDIT_TEXT_AGE = timedelta(days=90)
#: Characters that stay of a tool's output.
OUTPUT_KEPT = 8 * 1024
#: Rows of a kind that one call looks at.
ROWS_MAX = 500
#: Rows of the inbox, the oldest first, that one call looks at; the few that are never handled do not fill them.
LOOKED_AT = 2_000
#: Sessions whose events one call looks at; for each, SQLite steps over the index entries of what is kept.
SESSIONS_MAX = 50

_SESSION_CURSOR = "retention_session"
_MESSAGE_CURSOR = "retention_message"


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows that :func:`clean` removed or shortened."""

    events: int = 0
    inbox: int = 0
    outbox: int = 0
    outputs: int = 0
    audit_texts: int = 0

    @property
    def total(self) -> int:
        """All together."""
        return sum(astuple(self))


def clean(conn: sqlite3.Connection, now: datetime) -> Counts:
    """Throw away what is past its time, bounded; call it now and then, each call goes on where the last one stopped."""
    return Counts(
        events=_events(conn, now),
        inbox=_inbox(conn, now),
        outbox=_outbox(conn, now),
        outputs=_outputs(conn, now),
        audit_texts=_audit_texts(conn, now),
    )


def _events(conn: sqlite3.Connection, now: datetime) -> int:
    cursor = meta.get(conn, _SESSION_CURSOR) or ""
    rows = conn.execute("SELECT key FROM sessions WHERE key > ?1 ORDER BY key LIMIT ?2", (cursor, SESSIONS_MAX))
    keys = [key for (key,) in rows]
    removed = 0
    for key in keys:
        old = conn.execute(
            "SELECT id FROM events WHERE session = ?1 AND at < ?2 AND id <="
            " (SELECT id FROM events WHERE session = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?3) ORDER BY id LIMIT ?4",
            (key, to_text(now - EVENTS_AGE), EVENTS_KEPT, ROWS_MAX - removed),
        ).fetchall()
        if old:
            conn.execute("UPDATE sessions SET events_purged = ?2 WHERE key = ?1", (key, old[-1][0]))
            conn.execute("DELETE FROM events WHERE session = ?1 AND id <= ?2", (key, old[-1][0]))
        removed += len(old)
        if removed >= ROWS_MAX:
            return removed
        cursor = key
    following = cursor if len(keys) == SESSIONS_MAX else ""
    if following != (meta.get(conn, _SESSION_CURSOR) or ""):
        meta.put(conn, _SESSION_CURSOR, following)
    return removed


def _inbox(conn: sqlite3.Connection, now: datetime) -> int:
    return conn.execute(
        "DELETE FROM inbox WHERE id IN (SELECT id FROM (SELECT id, received_at, state FROM inbox ORDER BY id LIMIT ?3)"
        " WHERE received_at < ?1 AND state IN ('done', 'dropped') LIMIT ?2)",
        (to_text(now - HANDLED_AGE), ROWS_MAX, LOOKED_AT),
    ).rowcount


def _outbox(conn: sqlite3.Connection, now: datetime) -> int:
    return conn.execute(
        "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE sent_at < ?1 AND state = 'sent'"
        " ORDER BY sent_at LIMIT ?2)",
        (to_text(now - HANDLED_AGE), ROWS_MAX),
    ).rowcount


def _outputs(conn: sqlite3.Connection, now: datetime) -> int:
    """Shorten tool output; ids rise with time, so a cursor over them sees each message once."""
    start = meta.get_int(conn, _MESSAGE_CURSOR)
    end, shortened = start, 0
    for id_, role, text, at, ended in conn.execute(
        "SELECT m.id, m.role, m.text, m.at, coalesce(t.state, '') <> 'running'"
        " FROM messages m LEFT JOIN turns t ON t.id = m.turn WHERE m.id > ?1 ORDER BY m.id LIMIT ?2",
        (start, ROWS_MAX),
    ).fetchall():
        if at >= to_text(now - HANDLED_AGE) or not ended:
            break
        end = id_
        if role == "tool" and len(text) > OUTPUT_KEPT:
            note = f"\n[{len(text) - OUTPUT_KEPT:,} more characters were thrown away after {HANDLED_AGE.days} days]"
            conn.execute("UPDATE messages SET text = ?2 WHERE id = ?1", (id_, text[:OUTPUT_KEPT] + note))
            shortened += 1
    if end != start:
        meta.put(conn, _MESSAGE_CURSOR, str(end))
    return shortened


def _audit_texts(conn: sqlite3.Connection, now: datetime) -> int:
    return conn.execute(
        "DELETE FROM audit_texts WHERE seq IN (SELECT t.seq FROM"
        " (SELECT seq FROM audit_texts ORDER BY seq LIMIT ?2) t JOIN audit a ON a.seq = t.seq WHERE a.at < ?1)",
        (to_text(now - AUDIT_TEXT_AGE), ROWS_MAX),
    ).rowcount
