"""Sessions, turns, messages and tool calls together, as a turn uses them."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import pytest

from gateway.store import asks, audit, events, grants, inbox, messages, outbox, sessions, tool_calls, turns
from gateway.store.messages import CallRow
from tests.gateway.store.conftest import NOW
from tests.gateway.store.test_asks import ask
from tests.gateway.store.test_grants import grant
from tests.gateway.store.test_inbox import accept, message
from tests.gateway.store.test_outbox import part

HERE = "http:owner/main"
LATER = NOW + timedelta(minutes=1)


def session(conn: sqlite3.Connection, key: str = HERE, owner: str | None = "http:owner") -> sessions.SessionRow:
    return sessions.ensure(
        conn,
        key=key,
        name=key.partition("/")[2] or key,
        adapter="http",
        owner=owner,
        scope="person:http:owner",
        conversation={"platform": "http", "chat": "main"},
        now=NOW,
    )


def begin(conn: sqlite3.Connection, id: str = "t1", key: str = HERE) -> str:
    turns.start(conn, id=id, session=key, principal="http:owner", role="admin", now=NOW)
    return id


def test_a_session_is_made_once(conn: sqlite3.Connection) -> None:
    row = session(conn)
    assert row == sessions.get(conn, HERE)
    assert row == sessions.SessionRow(
        key=HERE,
        name="main",
        adapter="http",
        owner="http:owner",
        scope="person:http:owner",
        conversation={"platform": "http", "chat": "main"},
        title="",
        history_from=0,
        created_at=NOW,
        last_at=NOW,
    )
    sessions.set_title(conn, HERE, "a title")
    sessions.touch(conn, HERE, LATER)
    again = session(conn)
    assert (again.title, again.created_at, again.last_at) == ("a title", NOW, NOW)
    assert sessions.get(conn, "none") is None


def test_lists_of_sessions(conn: sqlite3.Connection) -> None:
    session(conn, "http:owner/a")
    session(conn, "http:owner/b")
    session(conn, "http:eve/a", "http:eve")
    session(conn, "telegram:-1", None)
    sessions.touch(conn, "http:owner/a", LATER)
    assert [row.key for row in sessions.by_owner(conn, "http:owner", 10)] == ["http:owner/a", "http:owner/b"]
    assert [row.key for row in sessions.by_owner(conn, "http:owner", 1)] == ["http:owner/a"]
    assert [row.key for row in sessions.recent(conn, 2)] == ["http:owner/a", "http:eve/a"]
    assert [row.key for row in sessions.named(conn, "a")] == ["http:eve/a", "http:owner/a"]
    assert [row.key for row in sessions.named(conn, "http:eve/a")] == ["http:eve/a"]


def test_one_turn_runs_in_a_session(conn: sqlite3.Connection) -> None:
    begin(conn)
    with pytest.raises(sqlite3.IntegrityError):
        begin(conn, "t2")
    begin(conn, "t3", "other")
    assert turns.finish(conn, "t1", "done", LATER)
    assert not turns.finish(conn, "t1", "failed", LATER)
    begin(conn, "t2")
    running = turns.running(conn, HERE)
    assert running is not None
    assert running.id == "t2"
    ended = turns.get(conn, "t1")
    assert ended is not None
    assert (ended.state, ended.ended_at, ended.started_at) == ("done", LATER, NOW)
    with pytest.raises(sqlite3.IntegrityError):
        turns.finish(conn, "t2", "no such state", LATER)


def test_what_a_turn_remembers(conn: sqlite3.Connection) -> None:
    begin(conn)
    assert turns.count_iteration(conn, "t1") == 1
    assert turns.count_iteration(conn, "t1") == 2
    assert turns.count_iteration(conn, "none") == 0
    turns.set_live_message(conn, "t1", {"chat": "1", "message": "2"})
    begin(conn, "t2", "other")
    turns.finish(conn, "t2", "done", NOW)
    assert turns.count_crashes(conn) == 1
    row = turns.get(conn, "t1")
    assert row is not None
    assert (row.iterations, row.crash_count, row.live_message) == (2, 1, {"chat": "1", "message": "2"})
    turns.set_live_message(conn, "t1", None)
    row = turns.get(conn, "t1")
    assert row is not None
    assert row.live_message is None


def test_the_history_of_a_turn_with_calls(conn: sqlite3.Connection) -> None:
    session(conn)
    begin(conn)
    calls = [CallRow("c1", "terminal", '{"script": "ls"}'), CallRow("c2", "read_file", "not even JSON")]
    messages.add_user(conn, HERE, "t1", "do it", NOW)
    messages.add_assistant(conn, HERE, "t1", "I will", calls, NOW)
    assert [call.id for call in messages.unanswered(conn, "t1")] == ["c1", "c2"]
    assert tool_calls.mark_started(conn, "c1", NOW)
    assert not tool_calls.mark_started(conn, "c1", NOW)
    assert tool_calls.mark_ended(conn, "c1", "the result", 3, LATER)
    assert not tool_calls.mark_ended(conn, "c1", "another", 0, LATER)
    kept = tool_calls.get(conn, "c1")
    assert kept is not None
    assert (kept.state, kept.result, kept.exit_code, kept.started_at, kept.ended_at) == (
        "ended",
        "the result",
        3,
        NOW,
        LATER,
    )
    first = messages.add_tool(conn, HERE, "t1", "c1", "the result", True, LATER)
    assert messages.add_tool(conn, HERE, "t1", "c1", "other", False, LATER) == first
    answered = tool_calls.get(conn, "c1")
    assert answered is not None
    assert (answered.state, answered.result, answered.exit_code) == ("answered", None, 3)
    assert not tool_calls.mark_started(conn, "c1", NOW)
    assert [call.id for call in messages.unanswered(conn, "t1")] == ["c2"]
    messages.add_tool(conn, HERE, "t1", "c2", "no such file", False, LATER)
    final = messages.add_final(conn, HERE, "t1", "done", "done", LATER)
    history = messages.history(conn, HERE)
    assert [(m.role, m.text, m.ok, m.call_id, m.name) for m in history] == [
        ("user", "do it", True, None, ""),
        ("assistant", "I will", True, None, ""),
        ("tool", "the result", True, "c1", "terminal"),
        ("tool", "no such file", False, "c2", "read_file"),
        ("assistant", "done", True, None, ""),
    ]
    assert [list(m.calls) for m in history] == [[], calls, [], [], []]
    page = messages.page(conn, HERE, 10)
    assert [(m.id, m.final, m.status) for m in page if m.final] == [(final, True, "done")]
    assert messages.turn_texts(conn, "t1") == ["I will", "done"]


def test_ids_of_calls_are_unique(conn: sqlite3.Connection) -> None:
    messages.add_assistant(conn, HERE, "t1", "", [CallRow("c1", "terminal", "{}")], NOW)
    with pytest.raises(sqlite3.IntegrityError):
        messages.add_assistant(conn, HERE, "t1", "", [CallRow("c1", "terminal", "{}")], NOW)


def test_a_new_beginning_hides_what_was_said(conn: sqlite3.Connection) -> None:
    session(conn)
    session(conn, "other")
    messages.add_user(conn, HERE, "t1", "before", NOW)
    messages.add_user(conn, "other", "t9", "elsewhere", NOW)
    sessions.reset(conn, HERE)
    assert messages.history(conn, HERE) == []
    messages.add_user(conn, HERE, "t2", "after", NOW)
    assert [m.text for m in messages.history(conn, HERE)] == ["after"]
    assert [m.text for m in messages.history(conn, "other")] == ["elsewhere"]
    assert [m.text for m in messages.page(conn, HERE, 10)] == ["before", "after"]
    sessions.reset(conn, HERE)
    sessions.reset(conn, HERE)
    assert messages.history(conn, HERE) == []


def test_pages_go_backwards_oldest_first(conn: sqlite3.Connection) -> None:
    for n in range(10):
        messages.add_user(conn, HERE, f"t{n}", f"question {n}", NOW)
        messages.add_assistant(conn, HERE, f"t{n}", "", [CallRow(f"c{n}", "terminal", "{}")], NOW)
        messages.add_tool(conn, HERE, f"t{n}", f"c{n}", "output", True, NOW)
        messages.add_final(conn, HERE, f"t{n}", f"answer {n}", "failed" if n == 9 else "done", NOW)
    newest = messages.page(conn, HERE, 3)
    assert [m.text for m in newest] == ["answer 8", "question 9", "answer 9"]
    assert newest[-1].status == "failed"
    older = messages.page(conn, HERE, 3, newest[0].id)
    assert [m.text for m in older] == ["question 7", "answer 7", "question 8"]
    everything = messages.page(conn, HERE, 100)
    assert len(everything) == 20
    assert [m.id for m in everything] == sorted(m.id for m in everything)
    assert messages.page(conn, HERE, 100, everything[0].id) == []


def test_what_a_session_is_doing(conn: sqlite3.Connection) -> None:
    session(conn)
    assert sessions.state_of(conn, HERE) == "idle"
    begin(conn)
    assert sessions.state_of(conn, HERE) == "running"
    asks.open_ask(conn, ask("a1", session=HERE))
    assert sessions.state_of(conn, HERE) == "waiting"


def test_deleting_forgets_everything_but_what_was_seen_and_decided(conn: sqlite3.Connection) -> None:
    ids = events.EventIds(1)
    chain = audit.Chain(b"k" * 32)
    for key in (HERE, "other"):
        session(conn, key)
        begin(conn, f"turn {key}", key)
        accept(conn, message(f"event {key}", session=key, text="a secret"))
        inbox.take(conn, 1, f"turn {key}")
        messages.add_user(conn, key, f"turn {key}", "a secret", NOW)
        messages.add_assistant(conn, key, f"turn {key}", "", [CallRow(f"call {key}", "terminal", "{}")], NOW)
        asks.open_ask(conn, ask(f"ask {key}", session=key))
        asks.vote(conn, f"ask {key}", "p", NOW)
        grants.add(conn, grant(f"grant {key}", session=key))
        outbox.add(conn, part(f"part {key}", session=key), NOW)
        events.append(conn, ids, session=key, turn=None, type="notice", data={}, now=NOW)
        chain.append(conn, kind="decision", request_id="r", body={}, text="", scope="s", now=NOW)
    assert sessions.delete(conn, HERE)
    assert not sessions.delete(conn, HERE)
    for table in ("sessions", "turns", "messages", "tool_calls", "asks", "ask_votes", "grants", "outbox", "events"):
        rows = conn.execute(f"SELECT * FROM {table}").fetchall()
        assert len(rows) == (2 if table == "messages" else 1), table
        assert HERE not in str(rows), table
    assert audit.verify(conn, b"k" * 32).rows == 2
    tombstone = inbox.get(conn, 1)
    assert tombstone is not None
    assert (tombstone.text, tombstone.sender, tombstone.principal, tombstone.attachments) == ("", {}, "", ())
    assert (tombstone.state, tombstone.turn) == ("dropped", None)
    assert accept(conn, message(f"event {HERE}")).verdict == "duplicate"
    assert inbox.sessions_with_work(conn) == ["other"]


def test_event_ids_rise_over_a_deletion_and_a_clock_set_back(conn: sqlite3.Connection) -> None:
    session(conn)
    ids = events.EventIds.begin(conn, NOW)
    last = [events.append(conn, ids, session=HERE, turn=None, type="notice", data={}, now=NOW) for _ in range(5)][-1]
    sessions.delete(conn, HERE)
    assert events.EventIds.begin(conn, NOW - timedelta(days=400)).next() > last
