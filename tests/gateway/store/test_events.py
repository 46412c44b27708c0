from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta

from gateway.store import events, turns
from tests.gateway.store.conftest import NOW


def test_events_come_back_in_order(conn: sqlite3.Connection) -> None:
    ids = events.EventIds.begin(conn, NOW)
    turns.start(conn, id="t", session="s", principal="p", role="user", now=NOW)
    made = [
        events.append(conn, ids, session=name, turn=turn, type="notice", data={"n": n}, now=NOW)
        for n, (name, turn) in enumerate((("s", None), ("s", "t"), ("other", None), ("s", "t")))
    ]
    assert made == sorted(set(made))
    assert [row.data["n"] for row in events.after(conn, "s", 0, 10)] == [0, 1, 3]
    assert [row.data["n"] for row in events.after(conn, "s", made[0], 1)] == [1]
    assert events.of_turn(conn, "t") == [
        events.EventRow(made[1], "s", "t", "notice", {"n": 1}, NOW),
        events.EventRow(made[3], "s", "t", "notice", {"n": 3}, NOW),
    ]
    assert (events.oldest(conn, "s"), events.latest(conn, "s")) == (made[0], made[3])
    assert (events.oldest(conn, "none"), events.latest(conn, "none")) == (None, 0)


def test_ids_rise_over_restarts(conn: sqlite3.Connection) -> None:
    ids = events.EventIds.begin(conn, NOW)
    assert ids.next() == int(NOW.timestamp() * 1_000_000)
    last = [events.append(conn, ids, session="s", turn=None, type="x", data={}, now=NOW) for _ in range(3)][-1]
    assert events.EventIds.begin(conn, NOW).next() == last + 1
    assert events.EventIds.begin(conn, NOW - timedelta(days=1)).next() == last + 1
    later = NOW + timedelta(seconds=1)
    assert events.EventIds.begin(conn, later).next() == int(later.timestamp() * 1_000_000) > last


def test_ids_fit_into_a_javascript_number(conn: sqlite3.Connection) -> None:
    assert events.EventIds.begin(conn, datetime(2255, 1, 1, tzinfo=UTC)).next() < 2**53
