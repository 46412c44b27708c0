from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.store import audit
from tests.gateway.store.conftest import NOW

KEY = bytes(range(32))
Tamper = Callable[[sqlite3.Connection], object]


def fill(conn: sqlite3.Connection, rows: int = 10) -> list[int]:
    chain = audit.Chain(KEY)
    return [
        chain.append(
            conn,
            kind=("decision", "start", "outcome")[n % 3],
            request_id=f"r{n // 3}",
            body={"rule": "fs.rm", "n": n, "who": "Ö"},
            text=f"rm -rf build{n}" if n % 2 else "",
            scope=f"person:p{n % 4}",
            now=NOW,
        )
        for n in range(rows)
    ]


def head_of(conn: sqlite3.Connection) -> str:
    return audit.tail(conn, 1)[0].hash


def test_a_whole_chain_is_found_whole(conn: sqlite3.Connection) -> None:
    assert audit.verify(conn, KEY) == audit.Verification(True, 0, None, audit.GENESIS)
    assert fill(conn) == list(range(1, 11))
    assert audit.verify(conn, KEY) == audit.Verification(True, 10, None, head_of(conn))
    assert audit.verify(conn, KEY, head_of(conn)).ok
    assert audit.verify(conn, KEY, audit.tail(conn, 4)[0].hash).ok


def test_rows_come_back_without_full_text(conn: sqlite3.Connection) -> None:
    fill(conn)
    rows = audit.tail(conn, 2)
    assert [(row.seq, row.kind, row.request_id, row.at) for row in rows] == [
        (9, "outcome", "r2", NOW),
        (10, "decision", "r3", NOW),
    ]
    assert rows[0].body == {"rule": "fs.rm", "n": 8, "who": "Ö"}
    assert [row.seq for row in audit.of_request(conn, "r1")] == [4, 5, 6]


@pytest.mark.parametrize(
    ("tamper", "broken"),
    [
        (lambda c: c.execute("UPDATE audit SET body = replace(body, 'fs.rm', 'fs.ls') WHERE seq = 4"), 4),
        (lambda c: c.execute("UPDATE audit SET body = body || ' ' WHERE seq = 4"), 4),
        (lambda c: c.execute("UPDATE audit SET at = '2026-03-01T12:00:00.000000Z' WHERE seq = 1"), 1),
        (lambda c: c.execute("UPDATE audit SET kind = 'start' WHERE seq = 10"), 10),
        (lambda c: c.execute("UPDATE audit SET request_id = 'r9' WHERE seq = 5"), 5),
        (lambda c: c.execute("UPDATE audit SET text_digest = hash WHERE seq = 5"), 5),
        (lambda c: c.execute("UPDATE audit SET hash = text_digest WHERE seq = 5"), 5),
        (lambda c: c.execute("UPDATE audit SET hash = upper(hash) WHERE seq = 5"), 5),
        (lambda c: c.execute("UPDATE audit SET seq = 11 WHERE seq = 10"), 10),
        (lambda c: c.execute("DELETE FROM audit WHERE seq = 6"), 6),
        (lambda c: c.execute("DELETE FROM audit WHERE seq = 1"), 1),
        (lambda c: c.execute("UPDATE audit_texts SET text = 'ls' WHERE seq = 8"), 8),
        (lambda c: c.execute("INSERT INTO audit_texts VALUES (7, 's', 'made up')"), 7),
        (lambda c: c.execute("UPDATE audit SET seq = -1 WHERE seq = 1"), -1),
        (lambda c: swap(c, 3, 4), 3),
        (lambda c: c.execute("DELETE FROM audit WHERE seq >= 8"), 8),
    ],
)
def test_each_kind_of_tampering_is_found(conn: sqlite3.Connection, tamper: Tamper, broken: int) -> None:
    fill(conn)
    tamper(conn)
    found = audit.verify(conn, KEY)
    assert not found.ok
    assert found.broken_seq == broken
    assert found.rows == max(broken - 1, 0)
    assert str(broken) in found.reason


def swap(conn: sqlite3.Connection, one: int, other: int) -> None:
    for before, after in ((one, 99), (other, one), (99, other)):
        conn.execute("UPDATE audit SET seq = ?2 WHERE seq = ?1", (before, after))


def test_a_cut_tail_is_found_by_a_head_noted_down(conn: sqlite3.Connection) -> None:
    fill(conn)
    noted = head_of(conn)
    conn.execute("DELETE FROM audit WHERE seq > 7")
    conn.execute("DELETE FROM audit_texts WHERE seq > 7")
    assert audit.verify(conn, KEY).ok
    found = audit.verify(conn, KEY, noted)
    assert (found.ok, found.broken_seq, found.rows) == (False, 8, 7)
    conn.execute("DELETE FROM audit")
    conn.execute("DELETE FROM audit_texts")
    assert audit.verify(conn, KEY, noted).broken_seq == 1


def test_another_key_fits_nothing(conn: sqlite3.Connection) -> None:
    fill(conn)
    assert audit.verify(conn, b"x" * 32).broken_seq == 1


def test_a_short_key_is_refused(conn: sqlite3.Connection) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        audit.Chain(b"short")
    with pytest.raises(ValueError, match="32 bytes"):
        audit.verify(conn, b"")


def test_erasing_texts_leaves_the_chain_whole(conn: sqlite3.Connection) -> None:
    fill(conn)
    head = head_of(conn)
    assert audit.erase_texts(conn, "person:p1") == 3
    assert audit.erase_texts(conn, "person:p1") == 0
    assert conn.execute("SELECT count(*) FROM audit_texts").fetchone() == (2,)
    assert audit.verify(conn, KEY, head).ok
    fill(conn, 1)
    assert audit.verify(conn, KEY, head).rows == 11


def test_a_chosen_text_cannot_get_the_digest_that_a_row_needs(conn: sqlite3.Connection) -> None:
    """The digest of a text is visible beside it; were rows digested alike, anybody could have rows made."""
    chain = audit.Chain(KEY)
    chain.append(conn, kind="decision", request_id="r", body={}, text="x", scope="s", now=NOW)
    first = audit.tail(conn, 1)[0]
    forged = ["2", "2026-03-01T12:00:01.000000Z", "decision", "r2", '{"source":"person"}', first.text_digest]
    canonical = audit._canonical(first.hash, 2, *forged[1:])
    chain.append(conn, kind="decision", request_id="r", body={}, text=canonical, scope="s", now=NOW)
    digest = audit.tail(conn, 1)[0].text_digest
    conn.execute("DELETE FROM audit WHERE seq = 2")
    conn.execute("DELETE FROM audit_texts WHERE seq = 2")
    conn.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", (*forged, digest))
    assert audit.verify(conn, KEY).broken_seq == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(
    kind=st.text(st.characters(codec="utf-8")),
    request_id=st.text(),
    body=st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=3),
    text=st.text(st.characters()),
)
def test_any_content_makes_a_whole_chain(
    conn: sqlite3.Connection, kind: str, request_id: str, body: dict[str, object], text: str
) -> None:
    audit.Chain(KEY).append(conn, kind=kind, request_id=request_id, body=body, text=text, scope="s", now=NOW)
    assert audit.verify(conn, KEY).ok
    assert audit.tail(conn, 1)[0].body == body


def test_a_row_undone_is_no_gap(conn: sqlite3.Connection) -> None:
    fill(conn, 3)
    conn.execute("BEGIN")
    fill(conn, 2)
    conn.execute("ROLLBACK")
    assert fill(conn, 1) == [4]
    assert audit.verify(conn, KEY).rows == 4


def test_verifying_takes_no_memory_that_grows(conn: sqlite3.Connection) -> None:
    conn.execute("BEGIN")
    fill(conn, 5_000)
    conn.execute("COMMIT")
    tracemalloc.start()
    assert audit.verify(conn, KEY).rows == 5_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000
