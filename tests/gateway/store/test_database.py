from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.control.clock import ManualClock, SystemClock
from gateway.store import meta
from gateway.store.database import BATCH_MAX, Database
from gateway.store.exceptions import StoreUnavailable, Trouble, UnitMisused

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def note(value: str) -> Callable[[sqlite3.Connection], int]:
    """A unit that adds a row; rows show the order of the units."""

    def unit(conn: sqlite3.Connection) -> int:
        cursor = conn.execute(
            "INSERT INTO dead_letters (platform, event_key, raw, reason, received_at) VALUES ('t', ?1, x'', '', '')",
            (value,),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    return unit


def notes(conn: sqlite3.Connection) -> list[str]:
    return [key for (key,) in conn.execute("SELECT event_key FROM dead_letters ORDER BY id")]


async def test_what_is_written_is_committed_and_read_back(db: Database) -> None:
    assert await db.write(note("a")) == 1
    outside = sqlite3.connect(db.path)
    assert notes(outside) == ["a"]
    outside.close()
    assert await db.read(notes) == ["a"]
    assert (db.commits, db.units, db.failures) == (1, 1, 0)
    assert db.last_commit_s > 0


async def test_the_writer_is_set_up_to_survive_a_power_cut(db: Database) -> None:
    def settings(conn: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "trusted_schema")
        return [conn.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await db.write(settings) == ["wal", 2, 1, 5000, 0]


async def test_the_file_is_its_owners_alone(db: Database) -> None:
    await db.write(note("a"))
    for path in db.path.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


async def test_what_gathers_is_one_commit_in_order(db: Database) -> None:
    ids = await asyncio.gather(*(db.write(note(str(n))) for n in range(BATCH_MAX)))
    assert ids == list(range(1, BATCH_MAX + 1))
    assert (db.commits, db.units) == (1, BATCH_MAX)
    assert await db.read(notes) == [str(n) for n in range(BATCH_MAX)]


async def test_a_batch_is_bounded(db: Database) -> None:
    await asyncio.gather(*(db.write(note(str(n))) for n in range(BATCH_MAX + 1)))
    assert db.commits == 2


async def test_writers_that_go_on_are_gathered_again(db: Database) -> None:
    async def writer(name: int) -> None:
        for n in range(10):
            await db.write(note(f"{name}.{n}"))

    await asyncio.gather(*(writer(name) for name in range(20)))
    assert db.commits <= 20
    rows = await db.read(notes)
    for name in range(20):
        assert [row for row in rows if row.startswith(f"{name}.")] == [f"{name}.{n}" for n in range(10)]


async def test_a_failing_unit_is_undone_alone(db: Database) -> None:
    def bad(conn: sqlite3.Connection) -> None:
        note("of the bad one")(conn)
        raise ValueError("mine")

    def twice(conn: sqlite3.Connection) -> None:
        note("good 1")(conn)

    results = await asyncio.gather(
        db.write(note("good 1")), db.write(bad), db.write(twice), db.write(note("good 2")), return_exceptions=True
    )
    assert results[0] == 1
    assert isinstance(results[1], ValueError)
    assert str(results[1]) == "mine"
    assert isinstance(results[2], sqlite3.IntegrityError)
    assert not isinstance(results[3], BaseException)
    assert await db.read(notes) == ["good 1", "good 2"]
    assert (db.commits, db.units, db.failures) == (1, 2, 2)
    assert db.healthy


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, StopIteration, GeneratorExit])
async def test_no_error_of_a_unit_leaves_the_transaction_open(db: Database, error: type[BaseException]) -> None:
    def bad(conn: sqlite3.Connection) -> None:
        note("bad")(conn)
        raise error

    task = asyncio.ensure_future(db.write(note("before")))
    failing = asyncio.ensure_future(_caught(db, bad))
    await task
    assert await failing is not None
    await db.write(note("after"))
    assert await db.read(notes) == ["before", "after"]


async def _caught(db: Database, unit: Callable[[sqlite3.Connection], None]) -> BaseException | None:
    try:
        await db.write(unit)
    except BaseException as error:  # noqa: BLE001 - any at all is what the test is about
        return error
    return None


@pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK", "script"])
async def test_a_unit_that_ends_the_transaction_is_told_so(db: Database, statement: str) -> None:
    def misused(conn: sqlite3.Connection) -> None:
        if statement == "script":
            conn.executescript("SELECT 1")
        else:
            conn.execute(statement)

    with pytest.raises(UnitMisused):
        await db.write(misused)
    await db.write(note("after"))
    assert await db.read(notes) == ["after"]


async def test_riders_go_with_the_next_write_in_order(db: Database) -> None:
    db.ride(note("1"))
    db.ride(note("2"))
    await db.write(note("3"))
    assert await db.read(notes) == ["1", "2", "3"]
    assert db.commits == 1


async def test_riders_go_alone_after_a_moment(db: Database) -> None:
    db.ride(note("1"))
    assert db.commits == 0
    async with asyncio.timeout(10):
        while not db.commits:
            await asyncio.sleep(0.01)
    assert await db.read(notes) == ["1"]
    assert db.stalled_s() == 0


async def test_a_failing_rider_is_counted_and_others_go_on(db: Database) -> None:
    def bad(_: sqlite3.Connection) -> None:
        raise ValueError

    db.ride(note("1"))
    db.ride(bad)
    await db.write(note("2"))
    assert await db.read(notes) == ["1", "2"]
    assert (db.units, db.failures) == (2, 1)


async def test_closing_commits_what_is_queued(db_path: Path) -> None:
    db = await Database.open(db_path, clock=SystemClock())
    writes = [asyncio.create_task(db.write(note(str(n)))) for n in range(300)]
    await asyncio.sleep(0)
    db.ride(note("rider"))
    await db.close()
    assert sorted(await asyncio.gather(*writes)) == list(range(1, 301))
    with sqlite3.connect(db_path) as conn:
        assert notes(conn) == [*(str(n) for n in range(300)), "rider"]
    conn.close()
    assert not db_path.with_name("state.db-wal").exists()


async def test_a_closed_database_says_so(db_path: Path) -> None:
    db = await Database.open(db_path, clock=SystemClock())
    await db.close()
    await db.close()
    for attempt in (db.write(note("a")), db.read(notes)):
        with pytest.raises(StoreUnavailable) as caught:
            await attempt
        assert caught.value.trouble is Trouble.CLOSED
    with pytest.raises(StoreUnavailable):
        db.ride(note("a"))
    assert not db.healthy


async def test_a_cancelled_close_still_closes(db_path: Path) -> None:
    db = await Database.open(db_path, clock=SystemClock())
    gate = threading.Event()
    write = asyncio.create_task(db.write(lambda _: gate.wait(10)))
    await asyncio.sleep(0.01)
    closing = asyncio.create_task(db.close())
    await asyncio.sleep(0.01)
    for _ in range(3):
        closing.cancel()
        await asyncio.sleep(0.01)
    assert not closing.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert await write
    assert not db_path.with_name("state.db-wal").exists()


async def test_cancelled_callers_leave_nothing_open(db: Database) -> None:
    """At whatever instant the caller goes, its unit runs as a whole or not at all, and the next one works."""

    def pair(n: int) -> Callable[[sqlite3.Connection], None]:
        def unit(conn: sqlite3.Connection) -> None:
            note(f"{n} first")(conn)
            note(f"{n} second")(conn)

        return unit

    for n in range(60):
        task = asyncio.create_task(db.write(pair(n)))
        for _ in range(n % 6):
            await asyncio.sleep(0)
        if n % 10 == 9:
            await asyncio.sleep(0.0002 * (n // 10))
        task.cancel()
        outcome = (await asyncio.gather(task, return_exceptions=True))[0]
        await db.write(note(f"{n} after"))
        rows = await db.read(notes)
        assert (f"{n} first" in rows) == (f"{n} second" in rows)
        assert f"{n} after" in rows
        if not isinstance(outcome, asyncio.CancelledError):
            assert f"{n} first" in rows


async def test_a_caller_cancelled_in_the_queue_takes_its_unit_along(db: Database) -> None:
    gate = threading.Event()
    first = asyncio.create_task(db.write(lambda _: gate.wait(10)))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(db.write(note("second")))
    third = asyncio.create_task(db.write(note("third")))
    await asyncio.sleep(0)
    second.cancel()
    gate.set()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert await db.read(notes) == ["third"]


async def test_cancelling_during_a_long_native_call_waits_for_nobody_and_mixes_nothing(db: Database) -> None:
    entered = threading.Event()

    def many(conn: sqlite3.Connection) -> None:
        entered.set()
        conn.executemany(
            "INSERT INTO dead_letters (platform, event_key, raw, reason, received_at) VALUES ('m', ?1, x'', '', '')",
            [(n,) for n in range(10_000)],
        )

    task = asyncio.create_task(db.write(many))
    while not entered.is_set():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await db.write(note("next"))
    assert len(await db.read(notes)) == 10_001


async def test_reads_go_on_while_a_write_is_under_way(db: Database) -> None:
    await db.write(note("a"))
    gate = threading.Event()

    def slow(conn: sqlite3.Connection) -> None:
        note("b")(conn)
        gate.wait(10)

    write = asyncio.create_task(db.write(slow))
    await asyncio.sleep(0.01)
    assert await db.read(notes) == ["a"]
    gate.set()
    await write
    assert await db.read(notes) == ["a", "b"]


async def test_a_read_sees_one_state(db: Database) -> None:
    await db.write(note("a"))
    entered, gate = threading.Event(), threading.Event()

    def twice(conn: sqlite3.Connection) -> tuple[list[str], list[str]]:
        before = notes(conn)
        entered.set()
        gate.wait(10)
        return before, notes(conn)

    read = asyncio.create_task(db.read(twice))
    while not entered.is_set():
        await asyncio.sleep(0)
    await db.write(note("b"))
    gate.set()
    assert await read == (["a"], ["a"])


async def test_readers_cannot_write(db: Database) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        await db.read(note("a"))
    assert caught.value.trouble is Trouble.READ_ONLY
    assert await db.read(notes) == []


async def test_a_failing_read_gives_its_reader_back(db: Database) -> None:
    def bad(_: sqlite3.Connection) -> None:
        raise ValueError("mine")

    for _ in range(5):
        with pytest.raises(ValueError, match="mine"):
            await db.read(bad)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await db.read(lambda conn: conn.execute("SELECT * FROM nowhere"))
    assert await db.read(notes) == []


async def test_a_cancelled_read_is_cut_short_and_gives_its_reader_back(db: Database) -> None:
    for instant in range(12):
        task = asyncio.create_task(db.read(lambda conn: conn.execute(ENDLESS).fetchone()))
        for _ in range(instant):
            await asyncio.sleep(0)
        if instant > 8:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with asyncio.timeout(10):
        assert await db.read(notes) == []


async def test_a_query_given_up_before_its_first_statement_does_not_run(db: Database) -> None:
    """The caller may go before the thread comes to the statement, which must not run for ever then."""
    entered, gate = threading.Event(), threading.Event()

    def late(conn: sqlite3.Connection) -> object:
        entered.set()
        gate.wait(10)
        return conn.execute(ENDLESS).fetchone()

    for _ in range(3):
        task = asyncio.create_task(db.read(late))
        while not entered.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        entered.clear()
    assert await db.read(notes) == []


async def test_closing_cuts_queries_short(db_path: Path) -> None:
    db = await Database.open(db_path, clock=SystemClock())
    reads = [asyncio.create_task(db.read(lambda conn: conn.execute(ENDLESS).fetchone())) for _ in range(5)]
    await asyncio.sleep(0.01)
    await db.close()
    for result in await asyncio.gather(*reads, return_exceptions=True):
        assert isinstance(result, StoreUnavailable)
        assert result.trouble is Trouble.CLOSED


async def test_more_reads_than_readers(db: Database) -> None:
    await db.write(note("a"))
    assert await asyncio.gather(*(db.read(notes) for _ in range(50))) == [["a"]] * 50


async def test_a_stalled_writer_is_not_healthy(db_path: Path) -> None:
    clock = ManualClock()
    db = await Database.open(db_path, clock=clock)
    assert db.healthy
    gate = threading.Event()
    write = asyncio.create_task(db.write(lambda _: gate.wait(10)))
    await asyncio.sleep(0.01)
    await clock.advance(3.0)
    later = asyncio.create_task(db.write(note("later")))
    await clock.advance(2.0)
    assert db.stalled_s() == 5.0
    assert db.healthy
    await clock.advance(0.5)
    assert not db.healthy
    gate.set()
    await asyncio.gather(write, later)
    assert db.stalled_s() == 0
    assert db.healthy
    await db.close()


async def test_synchronous_is_one_of_those_that_keep_a_commit(db_path: Path) -> None:
    with pytest.raises(ValueError, match="synchronous"):
        await Database.open(db_path, clock=SystemClock(), synchronous="off")
    db = await Database.open(db_path, clock=SystemClock(), synchronous="NORMAL")
    assert await db.write(lambda conn: conn.execute("PRAGMA synchronous").fetchone()) == (1,)
    await db.close()


async def test_meta_values_are_replaced(db: Database) -> None:
    await db.write(lambda conn: meta.put(conn, "k", "1"))
    await db.write(lambda conn: meta.put(conn, "k", "2"))
    assert await db.read(lambda conn: (meta.get(conn, "k"), meta.get_int(conn, "k"), meta.get(conn, "none"))) == (
        "2",
        2,
        None,
    )
