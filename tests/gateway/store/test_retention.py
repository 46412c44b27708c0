from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta

from gateway.store import audit, events, inbox, messages, outbox, retention, sessions, turns
from gateway.store.messages import CallRow
from tests.gateway.store.conftest import NOW
from tests.gateway.store.test_inbox import message
from tests.gateway.store.test_outbox import part

DAY = timedelta(days=1)


def make_session(conn: sqlite3.Connection, key: str) -> None:
    sessions.ensure(conn, key=key, name=key, adapter="http", owner=None, scope="s", conversation={}, now=NOW)


def add_events(conn: sqlite3.Connection, ids: events.EventIds, session: str, count: int, at: datetime) -> None:
    for _ in range(count):
        events.append(conn, ids, session=session, turn=None, type="x", data={}, now=at)


def kept(conn: sqlite3.Connection, session: str) -> int:
    return len(events.after(conn, session, 0, 10_000))


def clean_all(conn: sqlite3.Connection, now: datetime = NOW) -> int:
    """Call until a whole round has found nothing."""
    total = quiet = 0
    while quiet < 3:
        removed = retention.clean(conn, now).total
        total += removed
        quiet = 0 if removed else quiet + 1
    return total


def test_events_are_kept_while_recent_or_among_the_last(conn: sqlite3.Connection) -> None:
    conn.execute("BEGIN")
    ids = events.EventIds(1)
    for key in ("few old", "many old", "many new"):
        make_session(conn, key)
    add_events(conn, ids, "few old", 900, NOW - 3 * DAY)
    add_events(conn, ids, "many old", 2_300, NOW - 3 * DAY)
    add_events(conn, ids, "many new", 2_300, NOW - DAY / 2)
    newest = events.latest(conn, "many old")
    assert retention.clean(conn, NOW).events == retention.ROWS_MAX
    assert clean_all(conn) == 800
    assert [kept(conn, key) for key in ("few old", "many old", "many new")] == [900, 1_000, 2_300]
    assert events.latest(conn, "many old") == newest
    assert clean_all(conn, NOW + DAY) == 1_300
    assert kept(conn, "many new") == 1_000


def test_all_sessions_have_their_turn(conn: sqlite3.Connection) -> None:
    conn.execute("BEGIN")
    ids = events.EventIds(1)
    many = retention.SESSIONS_MAX * 2 + 3
    for n in range(many):
        make_session(conn, f"s{n:04}")
    for key in ("s0000", f"s{many - 1:04}"):
        add_events(conn, ids, key, 1_010, NOW - 3 * DAY)
    assert clean_all(conn) == 20
    add_events(conn, ids, "s0000", 5, NOW - 2 * DAY)
    assert clean_all(conn) == 5


def test_handled_messages_go_after_a_week(conn: sqlite3.Connection) -> None:
    for n, age in enumerate((8, 8, 8, 6)):
        inbox.accept(conn, message(str(n)), NOW - age * DAY, 100)
    for id in (1, 4):
        inbox.finish(conn, id)
    inbox.drop_one(conn, 2)
    assert retention.clean(conn, NOW) == retention.Counts(inbox=2)
    assert [inbox.get(conn, id) is not None for id in (1, 2, 3, 4)] == [False, False, True, True]


def test_sent_parts_go_after_a_week(conn: sqlite3.Connection) -> None:
    for n in range(4):
        outbox.add(conn, part(str(n)), NOW - 9 * DAY)
    outbox.mark_sent(conn, 1, None, NOW - 8 * DAY)
    outbox.mark_sent(conn, 2, None, NOW - 6 * DAY)
    outbox.mark_dead(conn, 3, "gone")
    assert retention.clean(conn, NOW) == retention.Counts(outbox=1)
    assert [outbox.get(conn, id) is not None for id in (1, 2, 3, 4)] == [False, True, True, True]


def test_long_output_of_ended_turns_keeps_its_head(conn: sqlite3.Connection) -> None:
    long = "ä" * 20_000
    ids = []
    for n, (age, state) in enumerate(((9, "done"), (8, "running"), (6, "done"))):
        at = NOW - age * DAY
        turns.start(conn, id=f"t{n}", session=f"s{n}", principal="p", role="user", now=at)
        messages.add_assistant(conn, f"s{n}", f"t{n}", long, [CallRow(f"c{n}", "terminal", "{}")], at)
        ids.append(messages.add_tool(conn, f"s{n}", f"t{n}", f"c{n}", long, True, at))
        messages.add_final(conn, f"s{n}", f"t{n}", long, "done", at)
        if state != "running":
            turns.finish(conn, f"t{n}", state, at)
    assert retention.clean(conn, NOW) == retention.Counts(outputs=1)

    def texts() -> list[str]:
        rows = [conn.execute("SELECT text FROM messages WHERE id = ?1", (id,)).fetchone() for id in ids]
        return [text for (text,) in rows]

    shortened, running, recent = texts()
    assert shortened == "ä" * 8192 + "\n[11,808 more characters were thrown away after 7 days]"
    assert running == recent == long
    assert retention.clean(conn, NOW).total == 0
    assert texts()[0] == shortened
    turns.finish(conn, "t1", "failed", NOW)
    assert clean_all(conn, NOW + 2 * DAY) == 2
    assert {len(text) for text in texts()} == {len(shortened)}
    (assistant,) = conn.execute("SELECT min(length(text)) FROM messages WHERE role = 'assistant'").fetchone()
    assert assistant == 20_000


def test_full_texts_of_the_record_go_after_90_days(conn: sqlite3.Connection) -> None:
    chain = audit.Chain(b"k" * 32)
    for age in (91, 90.5, 89):
        chain.append(conn, kind="x", request_id="", body={}, text="t", scope="s", now=NOW - age * DAY)
    assert retention.clean(conn, NOW) == retention.Counts(audit_texts=2)
    assert audit.verify(conn, b"k" * 32).rows == 3


def test_a_call_is_bounded(conn: sqlite3.Connection) -> None:
    conn.execute("BEGIN")
    for n in range(1_200):
        inbox.accept(conn, message(str(n)), NOW - 8 * DAY, 10_000)
        inbox.finish(conn, n + 1)
    assert [retention.clean(conn, NOW).inbox for _ in range(4)] == [500, 500, 200, 0]


def test_no_call_scans_what_grows(conn: sqlite3.Connection) -> None:
    make_session(conn, "s")
    add_events(conn, events.EventIds(1), "s", 3, NOW - 9 * DAY)
    seen: list[str] = []
    conn.set_trace_callback(seen.append)
    retention.clean(conn, NOW)
    conn.set_trace_callback(None)
    for statement in (sql for sql in seen if sql.startswith(("SELECT", "DELETE"))):
        plan = [row[3] for row in conn.execute(f"EXPLAIN QUERY PLAN {statement}")]
        scans = [step for step in plan if step.startswith("SCAN") and "LIMIT" not in statement]
        assert not scans, (statement, plan)
        assert not any("TEMP B-TREE" in step for step in plan), (statement, plan)
