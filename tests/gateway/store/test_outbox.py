from __future__ import annotations

import sqlite3
from datetime import timedelta

from gateway.store import outbox
from tests.gateway.store.conftest import NOW

LATER = NOW + timedelta(seconds=30)
LANE = "telegram:42"


def part(part_id: str, *, lane: str = LANE, session: str = "telegram:42") -> outbox.NewPart:
    return outbox.NewPart(
        part_id=part_id,
        adapter="telegram",
        lane=lane,
        conversation={"platform": "telegram", "chat": "42"},
        session=session,
        turn="t",
        kind="text",
        body="**hello** \ud800",
    )


def head(conn: sqlite3.Connection, lane: str = LANE) -> outbox.OutboxRow:
    row = outbox.next_due(conn, lane)
    assert row is not None
    return row


def test_a_part_comes_back_as_it_was(conn: sqlite3.Connection) -> None:
    id = outbox.add(conn, part("p1"), NOW)
    assert outbox.get(conn, id) == head(conn)
    assert head(conn) == outbox.OutboxRow(
        id=id,
        part_id="p1",
        adapter="telegram",
        lane=LANE,
        conversation={"platform": "telegram", "chat": "42"},
        session="telegram:42",
        turn="t",
        kind="text",
        body="**hello** \ufffd",
        state="pending",
        uncertain=False,
        attempts=0,
        next_at=NOW,
        sent_ref=None,
        error=None,
        created_at=NOW,
        sent_at=None,
    )


def test_a_part_is_queued_once(conn: sqlite3.Connection) -> None:
    assert outbox.add(conn, part("p1"), NOW) == outbox.add(conn, part("p1"), LATER)
    assert outbox.add(conn, part("p2"), NOW) != 1


def test_order_is_kept_within_a_lane(conn: sqlite3.Connection) -> None:
    outbox.add(conn, part("1"), NOW)
    outbox.add(conn, part("2"), NOW)
    outbox.add(conn, part("x", lane="slack:1"), NOW)
    assert outbox.lanes_with_work(conn) == [LANE, "slack:1"]
    assert outbox.mark_sending(conn, 1, NOW)
    assert not outbox.mark_sending(conn, 1, NOW)
    assert outbox.next_due(conn, LANE) is None
    assert head(conn, "slack:1").part_id == "x"
    assert outbox.mark_retry(conn, 1, LATER, False, "429")
    row = head(conn)
    assert (row.part_id, row.next_at, row.attempts, row.error, row.uncertain) == ("1", LATER, 1, "429", False)
    assert outbox.mark_sending(conn, 1, LATER)
    assert outbox.mark_sent(conn, 1, {"chat": "42", "message": "7"}, LATER)
    assert not outbox.mark_sent(conn, 1, None, LATER)
    assert head(conn).part_id == "2"
    sent = outbox.get(conn, 1)
    assert sent is not None
    assert (sent.state, sent.sent_ref, sent.sent_at, sent.error) == (
        "sent",
        {"chat": "42", "message": "7"},
        LATER,
        None,
    )
    assert not outbox.mark_dead(conn, 1, "late")
    assert not outbox.mark_retry(conn, 1, LATER, True, "late")


def test_uncertain_stays_uncertain(conn: sqlite3.Connection) -> None:
    outbox.add(conn, part("1"), NOW)
    outbox.mark_sending(conn, 1, NOW)
    outbox.mark_retry(conn, 1, LATER, True, "cut")
    outbox.mark_sending(conn, 1, LATER)
    outbox.mark_retry(conn, 1, LATER, False, "refused")
    assert head(conn).uncertain


def test_a_crash_while_sending_leaves_it_uncertain(conn: sqlite3.Connection) -> None:
    for n in (1, 2):
        outbox.add(conn, part(str(n)), NOW)
    outbox.mark_sending(conn, 1, NOW)
    assert outbox.recover(conn) == 1
    assert outbox.recover(conn) == 0
    assert (head(conn).part_id, head(conn).uncertain) == ("1", True)
    other = outbox.get(conn, 2)
    assert other is not None
    assert not other.uncertain


def test_what_is_given_up_lets_the_lane_go_on_and_can_come_back(conn: sqlite3.Connection) -> None:
    for n in (1, 2):
        outbox.add(conn, part(str(n)), NOW)
    assert outbox.mark_dead(conn, 1, "chat not found")
    assert head(conn).part_id == "2"
    assert [(row.part_id, row.error) for row in outbox.dead(conn)] == [("1", "chat not found")]
    assert outbox.revive(conn, 1)
    assert not outbox.revive(conn, 1)
    assert (head(conn).part_id, head(conn).attempts) == ("1", 0)
    assert outbox.dead(conn) == []
