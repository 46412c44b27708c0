from __future__ import annotations

import dataclasses
import sqlite3
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.store import asks
from tests.gateway.store.conftest import NOW

HERE = "http:owner/main"
DEADLINE = NOW + timedelta(seconds=300)


def ask(id: str, *, session: str = HERE, code: str = "K7QX", turn: str = "t1", digest: str = "d1") -> asks.AskRow:
    return asks.AskRow(
        id=id,
        code=code,
        kind="approval",
        session=session,
        turn=turn,
        request_id="r1",
        digest=digest,
        digest_version=1,
        title="Delete a folder",
        command="rm -rf build",
        reason="it deletes files",
        rules=("fs.rm", "fs.recursive"),
        choices=("once", "session", "deny"),
        requester="http:owner",
        requester_role="admin",
        created_at=NOW,
        expires_at=DEADLINE,
        evidence="e",
        impact="3 files",
        grants=({"rule": "fs.rm", "shape": "rm -rf", "paths": ["/workspace/build"]},),
    )


def settle(conn: sqlite3.Connection, id: str, state: str, *, after_s: float = 1, answer: str | None = None) -> bool:
    return asks.settle(
        conn,
        id,
        state=state,
        choice="once",
        by="http:boss",
        reason="because",
        now=NOW + timedelta(seconds=after_s),
        answer=answer,
    )


def test_a_request_comes_back_as_it_was(conn: sqlite3.Connection) -> None:
    asks.open_ask(conn, ask("a1"))
    assert asks.get(conn, "a1") == ask("a1")
    assert asks.get(conn, "A1") is None
    with pytest.raises(sqlite3.IntegrityError):
        asks.open_ask(conn, ask("a1"))


def test_a_request_is_settled_once(conn: sqlite3.Connection) -> None:
    asks.open_ask(conn, ask("a1"))
    assert settle(conn, "a1", "denied")
    for state in ("approved", "timed_out", "cancelled", "denied"):
        assert not settle(conn, "a1", state)
    assert not settle(conn, "none", "approved")
    assert asks.get(conn, "a1") == dataclasses.replace(
        ask("a1"),
        state="denied",
        choice="once",
        settled_by="http:boss",
        deny_reason="because",
        settled_at=NOW + timedelta(seconds=1),
    )


def test_a_late_answer_never_approves(conn: sqlite3.Connection) -> None:
    for id in ("a1", "a2", "a3"):
        asks.open_ask(conn, ask(id))
    assert settle(conn, "a1", "approved", after_s=300)
    assert not settle(conn, "a2", "approved", after_s=300.000001)
    assert not settle(conn, "a2", "answered", after_s=301)
    assert settle(conn, "a2", "timed_out", after_s=301)
    assert settle(conn, "a3", "denied", after_s=999)


def test_pending_is_no_end(conn: sqlite3.Connection) -> None:
    asks.open_ask(conn, ask("a1"))
    with pytest.raises(ValueError, match="pending"):
        settle(conn, "a1", "pending")
    with pytest.raises(sqlite3.IntegrityError):
        settle(conn, "a1", "anything")


def test_an_answer_is_kept(conn: sqlite3.Connection) -> None:
    asks.open_ask(conn, dataclasses.replace(ask("q"), kind="question"))
    assert settle(conn, "q", "answered", answer="the blue one")
    row = asks.get(conn, "q")
    assert row is not None
    assert (row.state, row.answer) == ("answered", "the blue one")


def test_codes_are_found_among_the_open_ones_of_a_session(conn: sqlite3.Connection) -> None:
    asks.open_ask(conn, ask("a1", code="K7QX"))
    asks.open_ask(conn, ask("a2", code="K7QX", session="other"))
    found = asks.by_code(conn, HERE, "k7qx")
    assert found is not None
    assert found.id == "a1"
    assert asks.by_code(conn, HERE, "K7Q") is None
    assert asks.by_code(conn, HERE, "\ud800") is None
    settle(conn, "a1", "denied")
    assert asks.by_code(conn, HERE, "K7QX") is None
    asks.open_ask(conn, ask("a3", code="K7QX"))
    found = asks.by_code(conn, HERE, "K7QX")
    assert found is not None
    assert found.id == "a3"


def test_fresh_codes_are_not_those_in_use(conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asks, "CODE_ALPHABET", "BC")
    for n in range(16):
        code = asks.fresh_code(conn, HERE)
        assert asks.by_code(conn, HERE, code) is None
        asks.open_ask(conn, ask(f"a{n}", code=code))
    assert len({row.code for row in asks.open_in(conn, HERE)}) == 16


def test_the_form_of_a_code(conn: sqlite3.Connection) -> None:
    for _ in range(50):
        code = asks.fresh_code(conn, HERE)
        assert len(code) == 4
        assert set(code) <= set("ABCDEFGHJKLMNPQRSTUVWXYZ23456789")


def test_lists_of_open_requests(conn: sqlite3.Connection) -> None:
    for n, session in enumerate((HERE, "other", HERE)):
        row = dataclasses.replace(ask(f"a{n}", session=session), created_at=NOW + timedelta(seconds=n))
        asks.open_ask(conn, row)
    assert [row.id for row in asks.open_in(conn, HERE)] == ["a0", "a2"]
    settle(conn, "a0", "approved")
    assert [row.id for row in asks.all_open(conn)] == ["a1", "a2"]


def test_the_latest_request_for_a_command(conn: sqlite3.Connection) -> None:
    asks.open_ask(conn, ask("a1"))
    asks.open_ask(conn, dataclasses.replace(ask("a2"), created_at=NOW + timedelta(seconds=1)))
    asks.open_ask(conn, dataclasses.replace(ask("a3", digest="d2"), created_at=NOW + timedelta(seconds=2)))
    found = asks.latest(conn, "r1", "d1")
    assert found is not None
    assert found.id == "a2"
    assert asks.latest(conn, "r2", "d1") is None
    assert [row.id for row in asks.of_request(conn, "r1")] == ["a1", "a2", "a3"]


@pytest.mark.parametrize("state", ["denied", "timed_out", "undeliverable"])
def test_what_was_not_allowed_is_blocked_for_the_turn(conn: sqlite3.Connection, state: str) -> None:
    asks.open_ask(conn, ask("a1"))
    assert asks.blocked(conn, "t1", "d1") is None
    settle(conn, "a1", state)
    found = asks.blocked(conn, "t1", "d1")
    assert found is not None
    assert (found.id, found.state) == ("a1", state)
    assert asks.blocked(conn, "t2", "d1") is None
    assert asks.blocked(conn, "t1", "d2") is None


@pytest.mark.parametrize("state", ["approved", "answered", "cancelled"])
def test_other_ends_do_not_block(conn: sqlite3.Connection, state: str) -> None:
    asks.open_ask(conn, ask("a1"))
    settle(conn, "a1", state)
    assert asks.blocked(conn, "t1", "d1") is None


def test_each_person_is_counted_once(conn: sqlite3.Connection) -> None:
    asks.open_ask(conn, ask("a1"))
    assert asks.vote(conn, "a1", "p", NOW) == 1
    assert asks.vote(conn, "a1", "p", NOW) == 1
    assert asks.vote(conn, "a1", "q", DEADLINE + timedelta(seconds=1)) == 1
    assert asks.vote(conn, "a1", "q", NOW) == 2
    settle(conn, "a1", "denied")
    assert asks.vote(conn, "a1", "r", NOW) == 2
    assert asks.vote(conn, "none", "p", NOW) == 0


def test_where_a_card_stands_is_kept_once(conn: sqlite3.Connection) -> None:
    asks.open_ask(conn, ask("a1"))
    for ref in ({"chat": "1", "message": "2"}, {"chat": "1", "message": "3"}, {"chat": "1", "message": "2"}):
        asks.add_shown(conn, "a1", ref)
    asks.add_shown(conn, "none", {})
    row = asks.get(conn, "a1")
    assert row is not None
    assert row.shown == ({"chat": "1", "message": "2"}, {"chat": "1", "message": "3"})


def test_of_two_taps_at_once_one_wins(conn: sqlite3.Connection, db_path: Path) -> None:
    """Even on connections of their own, as two processes would have."""
    outcomes: list[bool] = []

    def tap(n: int, start: threading.Barrier) -> None:
        own = sqlite3.connect(db_path, isolation_level=None, timeout=10)
        start.wait()
        outcomes.append(settle(own, f"a{n}", "approved"))
        own.close()

    for n in range(10):
        asks.open_ask(conn, ask(f"a{n}"))
        start = threading.Barrier(2)
        threads = [threading.Thread(target=tap, args=(n, start)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert outcomes.count(True) == 10
    assert outcomes.count(False) == 10
