from __future__ import annotations

import sqlite3
from datetime import timedelta

from gateway.store import dead_letters, inbox, turns
from tests.gateway.store.conftest import NOW

HERE = "http:owner/main"


def message(key: str, *, session: str = HERE, text: str = "hello", control: bool = False) -> inbox.NewInbound:
    return inbox.NewInbound(
        event_key=key,
        session=session,
        principal="http:owner",
        role="admin",
        sender={"platform": "http", "id": "owner", "name": "Ö"},
        text=text,
        message_ref=f"ref {key}",
        reply_to="before",
        attachments=[{"ref": "f1", "name": "a.txt"}],
        mergeable=True,
        control=control,
    )


def accept(conn: sqlite3.Connection, item: inbox.NewInbound, queue_max: int = 100) -> inbox.Accepted:
    return inbox.accept(conn, item, NOW, queue_max)


def test_a_message_comes_back_as_it_was(conn: sqlite3.Connection) -> None:
    accepted = accept(conn, message("a"))
    assert accepted == inbox.Accepted("accepted", 1, HERE, 0)
    row = inbox.next_queued(conn, HERE)
    assert row == inbox.get(conn, 1)
    assert row == inbox.InboxRow(
        id=1,
        event_key="a",
        session=HERE,
        principal="http:owner",
        role="admin",
        sender={"platform": "http", "id": "owner", "name": "Ö"},
        text="hello",
        message_ref="ref a",
        reply_to="before",
        attachments=({"ref": "f1", "name": "a.txt"},),
        mergeable=True,
        control=False,
        state="queued",
        turn=None,
        reply=None,
        received_at=NOW,
    )


def test_the_same_event_again_is_a_duplicate(conn: sqlite3.Connection) -> None:
    accept(conn, message("a"))
    accept(conn, message("b"))
    assert accept(conn, message("b", text="other", session="elsewhere")) == inbox.Accepted("duplicate", 2, HERE, 1)
    inbox.take(conn, 2, "t")
    inbox.finish(conn, 2)
    assert accept(conn, message("b")) == inbox.Accepted("duplicate", 2, HERE, 0)
    assert len(inbox.queued(conn, HERE)) == 1


def test_a_full_queue_refuses_and_stores_nothing(conn: sqlite3.Connection) -> None:
    for n in range(3):
        assert accept(conn, message(str(n)), 3) == inbox.Accepted("accepted", n + 1, HERE, n)
    assert accept(conn, message("late"), 3) == inbox.Accepted("full", 0, HERE, 3)
    assert accept(conn, message("else", session="other"), 3).verdict == "accepted"
    assert accept(conn, message("0"), 3).verdict == "duplicate"
    inbox.take(conn, 1, "t")
    assert accept(conn, message("late"), 3).verdict == "accepted"


def test_control_has_a_bound_of_its_own(conn: sqlite3.Connection) -> None:
    accept(conn, message("m"), 1)
    assert accept(conn, message("/stop 1", control=True), 1) == inbox.Accepted("accepted", 2, HERE, 0)
    assert accept(conn, message("/stop 2", control=True), 1).verdict == "accepted"
    assert accept(conn, message("/stop 3", control=True), 1).verdict == "full"
    assert [row.event_key for row in inbox.queued(conn, HERE)] == ["m"]
    assert [row.event_key for row in inbox.open_control(conn)] == ["/stop 1", "/stop 2"]
    assert inbox.finish(conn, 2, "stopped")
    assert not inbox.finish(conn, 2, "again")
    done = inbox.get(conn, 2)
    assert done is not None
    assert (done.state, done.reply, done.control) == ("done", "stopped", True)
    assert accept(conn, message("/stop 3", control=True), 1).verdict == "accepted"


def test_messages_are_taken_in_order_and_once(conn: sqlite3.Connection) -> None:
    for key in "abc":
        accept(conn, message(key))
    first = inbox.next_queued(conn, HERE)
    assert first is not None
    assert inbox.take(conn, first.id, "turn 1")
    assert not inbox.take(conn, first.id, "turn 2")
    assert [row.event_key for row in inbox.of_turn(conn, "turn 1")] == ["a"]
    assert [row.event_key for row in inbox.queued(conn, HERE)] == ["b", "c"]
    assert inbox.finish(conn, first.id)
    assert [row.state for row in inbox.of_turn(conn, "turn 1")] == ["done"]


def test_dropped_messages_are_not_taken(conn: sqlite3.Connection) -> None:
    for key in "abc":
        accept(conn, message(key))
    accept(conn, message("c1", control=True))
    inbox.take(conn, 1, "t")
    assert inbox.drop_one(conn, 2)
    assert not inbox.drop_one(conn, 1)
    assert inbox.drop(conn, HERE) == 1
    assert inbox.next_queued(conn, HERE) is None
    assert len(inbox.open_control(conn)) == 1
    assert not inbox.take(conn, 2, "t")


def test_an_edit_reaches_only_what_still_waits(conn: sqlite3.Connection) -> None:
    accept(conn, message("a"))
    assert inbox.amend(conn, "a", "edited \ud800")
    row = inbox.next_queued(conn, HERE)
    assert row is not None
    assert row.text == "edited \ufffd"
    inbox.take(conn, row.id, "t")
    assert not inbox.amend(conn, "a", "too late")
    assert not inbox.amend(conn, "unknown", "x")


def test_finding_by_reference_gives_the_newest(conn: sqlite3.Connection) -> None:
    accept(conn, message("a"))
    assert inbox.find_by_ref(conn, HERE, "ref a") == inbox.get(conn, 1)
    assert inbox.find_by_ref(conn, "other", "ref a") is None


def test_sessions_with_work_in_order_of_need(conn: sqlite3.Connection) -> None:
    for n, session in enumerate(("z", "b", "z", "a")):
        accept(conn, message(str(n), session=session))
    accept(conn, message("c", session="control only", control=True))
    turns.start(conn, id="t", session="running", principal="p", role="user", now=NOW)
    assert inbox.sessions_with_work(conn) == ["running", "z", "b", "a"]
    inbox.drop(conn, "z")
    turns.finish(conn, "t", "done", NOW)
    assert inbox.sessions_with_work(conn) == ["b", "a"]


def test_odd_characters_are_taken(conn: sqlite3.Connection) -> None:
    text = "null \x00, surrogate \udc80, \U0001f600, \u202e bidi"
    accept(conn, message("odd \ud800", text=text))
    row = inbox.next_queued(conn, HERE)
    assert row is not None
    assert row.text == text.replace("\udc80", "\ufffd")
    assert accept(conn, message("odd \ud800")).verdict == "duplicate"


def test_the_queue_is_found_by_its_index(conn: sqlite3.Connection) -> None:
    seen: list[str] = []
    conn.set_trace_callback(seen.append)
    accept(conn, message("a"))
    inbox.next_queued(conn, HERE)
    inbox.of_turn(conn, "t")
    inbox.find_by_ref(conn, HERE, "r")
    conn.set_trace_callback(None)
    for statement in (sql for sql in seen if sql.startswith("SELECT")):
        plan = " ".join(row[3] for row in conn.execute(f"EXPLAIN QUERY PLAN {statement}"))
        assert "SCAN" not in plan, (statement, plan)


def test_dead_letters_are_kept_once(conn: sqlite3.Connection) -> None:
    raw = b'{"broken": \xff'
    assert dead_letters.add(conn, platform="t", event_key="1", raw=raw, reason="no JSON", now=NOW)
    assert not dead_letters.add(conn, platform="t", event_key="1", raw=b"", reason="", now=NOW)
    later = NOW + timedelta(seconds=1)
    assert dead_letters.add(conn, platform="s", event_key="1", raw=b"x" * 2_000_000, reason="long", now=later)
    newest, oldest = dead_letters.list(conn)
    assert oldest == dead_letters.DeadLetter(1, "t", "1", raw, "no JSON", NOW)
    assert len(newest.raw) == dead_letters.RAW_MAX_BYTES
