"""The chain of records of what was decided, started and ended.

Each row's hash is an HMAC over the hash of the row before and its own columns, so that a changed, missing or inserted
row shows. It proves nothing against somebody who has the key. Two keys are derived from the one in the home, so that a
text chosen by somebody can never have the digest that a row would need.
"""

from __future__ import annotations

import hmac
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.store.codec import decode, dump, dump_sorted, load_object, storable
from gateway.store.times import from_text, to_text

#: What stands in the place of the hash before the first row.
GENESIS = "0" * 64
#: Shortest key that is taken, in bytes.
KEY_MIN_BYTES = 32


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A record; ``body`` is redacted, ``text_digest`` is the keyed digest of the full text."""

    seq: int
    at: datetime
    kind: str
    request_id: str
    body: dict[str, Any]
    text_digest: str
    hash: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What :func:`verify` found.

    Attributes:
        rows: rows that are intact, counted from the first.
        broken_seq: the first row that is not, or is missing; None when all is well.
        head: hash of the last intact row.
        reason: one plain sentence; empty when all is well.
    """

    ok: bool
    rows: int
    broken_seq: int | None
    head: str
    reason: str = ""


class Chain:
    """Appends to the chain."""

    def __init__(self, key: bytes) -> None:
        """Use the key of the home.

        Raises:
            ValueError: it is too short to be one.
        """
        self._row_key, self._text_key = _keys(key)

    def append(
        self,
        conn: sqlite3.Connection,
        *,
        kind: str,
        request_id: str,
        body: Mapping[str, Any],
        text: str,
        scope: str,
        now: datetime,
    ) -> int:
        """Add a row within the running unit of work; returns its number, from 1.

        Args:
            conn: the writer's connection.
            kind: ``decision``, ``start``, ``outcome`` or another word.
            request_id: empty where the record is about no request.
            body: redacted already; it stays for good.
            text: the full text; it goes to the side table, from which it can be erased.
            scope: whose text it is.
            now: the record's time.
        """
        last = conn.execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
        before, before_hash = (0, GENESIS) if last is None else last
        seq, moment, request_id, text = before + 1, to_text(now), storable(request_id), storable(text)
        encoded = dump_sorted(dict(body))
        text_digest = _mac(self._text_key, text)
        digest = _mac(self._row_key, _canonical(before_hash, seq, moment, kind, request_id, encoded, text_digest))
        conn.execute(
            "INSERT INTO audit (seq, at, kind, request_id, body, text_digest, hash)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (seq, moment, kind, request_id, encoded, text_digest, digest),
        )
        if text:
            conn.execute("INSERT INTO audit_texts (seq, scope, text) VALUES (?1, ?2, ?3)", (seq, scope, text))
        return seq


def verify(conn: sqlite3.Connection, key: bytes, head: str | None = None) -> Verification:
    """Walk the whole chain in constant memory.

    Full texts that are still there are compared with their digests; erased ones are no fault.

    Args:
        conn: any connection.
        key: the key of the home.
        head: a hash noted down earlier; when no row has it, the end of the chain was cut off or rewritten.

    Raises:
        ValueError: the key is too short to be one.
    """
    row_key, text_key = _keys(key)
    before, rows, met = GENESIS, 0, head is None
    for seq, at, kind, request_id, body, text_digest, digest, text in conn.execute(
        "SELECT a.seq, a.at, a.kind, a.request_id, a.body, a.text_digest, a.hash, t.text"
        " FROM audit a LEFT JOIN audit_texts t ON t.seq = a.seq ORDER BY a.seq"
    ):
        expected = rows + 1
        if seq != expected:
            return Verification(False, rows, min(seq, expected), before, f"Row {min(seq, expected)} is missing.")
        canonical = _canonical(before, seq, at, kind, request_id, body, text_digest)
        if not hmac.compare_digest(_mac(row_key, canonical), digest):
            return Verification(False, rows, seq, before, f"Row {seq} was changed, or the key is another one.")
        if text is not None and not hmac.compare_digest(_mac(text_key, text), text_digest):
            return Verification(False, rows, seq, before, f"The full text of row {seq} was changed.")
        before, rows = digest, seq
        met = met or digest == head
    (beyond,) = conn.execute("SELECT min(seq) FROM audit_texts WHERE seq > ?1", (rows,)).fetchone()
    if beyond is not None or not met:
        reason = f"The end of the chain is missing from row {rows + 1} on, or was rewritten."
        return Verification(False, rows, rows + 1, before, reason)
    return Verification(True, rows, None, before)


def tail(conn: sqlite3.Connection, n: int) -> list[AuditRow]:
    """The last ``n`` rows, oldest first; without full texts."""
    rows = conn.execute(
        "SELECT seq, at, kind, request_id, body, text_digest, hash FROM audit ORDER BY seq DESC LIMIT ?1", (n,)
    ).fetchall()
    return [AuditRow(*decode(values, {1: from_text, 4: load_object})) for values in reversed(rows)]


def of_request(conn: sqlite3.Connection, request_id: str) -> list[AuditRow]:
    """All rows of a command request, in order."""
    rows = conn.execute(
        "SELECT seq, at, kind, request_id, body, text_digest, hash FROM audit WHERE request_id = ?1 ORDER BY seq",
        (request_id,),
    )
    return [AuditRow(*decode(values, {1: from_text, 4: load_object})) for values in rows]


def erase_texts(conn: sqlite3.Connection, scope: str) -> int:
    """Erase the full texts of a scope; the chain stays whole. Returns how many there were."""
    return conn.execute("DELETE FROM audit_texts WHERE scope = ?1", (scope,)).rowcount


def _keys(key: bytes) -> tuple[bytes, bytes]:
    if len(key) < KEY_MIN_BYTES:
        raise ValueError(f"the audit key needs {KEY_MIN_BYTES} bytes, this one has {len(key)}")
    return hmac.digest(key, b"ostiary audit row", "sha256"), hmac.digest(key, b"ostiary audit text", "sha256")


def _canonical(before: str, seq: int, at: str, kind: str, request_id: str, body: str, text_digest: str) -> str:
    return dump([before, seq, at, kind, request_id, body, text_digest])


def _mac(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()
