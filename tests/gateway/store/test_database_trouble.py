"""What goes wrong under a running database is said, leaves no trace, and passes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from agent.control.clock import SystemClock
from gateway.store import migrations
from gateway.store.database import Database
from gateway.store.exceptions import DatabaseDamaged, DatabaseTooNew, StoreError, StoreUnavailable, Trouble
from tests.gateway.store.test_database import note, notes

HOLD = """
import sqlite3, sys
conn = sqlite3.connect(sys.argv[1], isolation_level=None)
conn.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
conn.execute("ROLLBACK")
"""


@contextmanager
def write_lock(path: Path) -> Iterator[Callable[[], None]]:
    """Another process that holds the write lock until the yielded function is called."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process.stdin.close
        process.stdin.close()


@asynccontextmanager
async def opened(path: Path, busy_timeout_s: float = 5.0) -> AsyncIterator[Database]:
    db = await Database.open(path, clock=SystemClock(), busy_timeout_s=busy_timeout_s)
    try:
        yield db
    finally:
        await db.close()


def large(key: str, size: int = 200_000) -> Callable[[sqlite3.Connection], None]:
    def unit(conn: sqlite3.Connection) -> None:
        conn.execute(
            "INSERT INTO dead_letters (platform, event_key, raw, reason, received_at)"
            " VALUES ('large', ?1, zeroblob(?2), '', '')",
            (key, size),
        )

    return unit


async def usable_again(db: Database) -> None:
    async with asyncio.timeout(15):
        while not db.healthy:
            await asyncio.sleep(0.02)


async def test_a_lock_held_shorter_than_the_timeout_only_delays(db_path: Path) -> None:
    async with opened(db_path) as db:
        with write_lock(db_path) as release:
            writes = [asyncio.create_task(db.write(note(str(n)))) for n in range(5)]
            await asyncio.sleep(0.2)
            assert db.stalled_s() >= 0.1
            release()
            await asyncio.gather(*writes)
        assert await db.read(notes) == ["0", "1", "2", "3", "4"]
        assert db.failures == 0


async def test_a_lock_held_longer_is_said_to_every_caller(db_path: Path) -> None:
    async with opened(db_path, busy_timeout_s=0.5) as db:
        with write_lock(db_path):
            db.ride(note("rider"))
            results = await asyncio.gather(*(db.write(note(str(n))) for n in range(5)), return_exceptions=True)
            for result in results:
                assert isinstance(result, StoreUnavailable)
                assert result.trouble is Trouble.LOCKED
                assert "fuser" in str(result)
            assert len({id(result) for result in results}) == 5
            assert not db.healthy
            assert (db.commits, db.failures) == (0, 5)
            assert await db.read(notes) == []
        await db.write(note("after"))
        assert db.healthy
        assert await db.read(notes) == ["rider", "after"]


async def test_a_rider_is_given_up_in_the_end(db_path: Path) -> None:
    async with opened(db_path, busy_timeout_s=0.02) as db:
        with write_lock(db_path):
            db.ride(note("rider"))
            async with asyncio.timeout(10):
                while not db.failures:
                    await asyncio.sleep(0.02)
        await db.write(note("after"))
        assert await db.read(notes) == ["after"]


async def test_health_comes_back_by_itself(db_path: Path) -> None:
    """Nothing is accepted while the store is unhealthy, so no caller's write would ever find out."""
    async with opened(db_path, busy_timeout_s=0.02) as db:
        with write_lock(db_path):
            with pytest.raises(StoreUnavailable):
                await db.write(note("refused"))
            assert not db.healthy
        await usable_again(db)
        assert await db.read(notes) == []
        assert db.failures == 1


async def test_closing_under_a_lock_ends(db_path: Path) -> None:
    db = await Database.open(db_path, clock=SystemClock(), busy_timeout_s=0.05)
    with write_lock(db_path):
        write = asyncio.create_task(db.write(note("late")))
        await asyncio.sleep(0)
        db.ride(note("rider"))
        await db.close()
        with pytest.raises(StoreUnavailable):
            await write


async def test_opening_a_fresh_file_under_a_lock_says_so(db_path: Path) -> None:
    sqlite3.connect(db_path).close()
    with write_lock(db_path), pytest.raises(StoreUnavailable) as caught:
        await Database.open(db_path, clock=SystemClock(), busy_timeout_s=0.05)
    assert caught.value.trouble is Trouble.LOCKED


async def test_a_full_disk_fails_the_unit_that_does_not_fit(db_path: Path) -> None:
    """SQLite gives up the whole transaction then; the units beside the large one are committed all the same."""
    async with opened(db_path) as db:
        pages = await db.write(lambda conn: conn.execute("PRAGMA page_count").fetchone()[0])
        await db.write(lambda conn: conn.execute(f"PRAGMA max_page_count = {pages + 10}").fetchone())
        results = await asyncio.gather(
            db.write(note("1")), db.write(large("2")), db.write(note("3")), db.write(large("4")), return_exceptions=True
        )
        assert results[0] == 1
        assert not isinstance(results[2], BaseException)
        for result in (results[1], results[3]):
            assert isinstance(result, StoreUnavailable)
            assert result.trouble is Trouble.FULL
            assert "Free some space" in str(result)
        assert await db.read(notes) == ["1", "3"]
        await usable_again(db)
        await db.write(lambda conn: conn.execute("PRAGMA max_page_count = 1000000").fetchone())
        await db.write(large("2"))
        assert await db.read(notes) == ["1", "3", "2"]


async def test_a_full_disk_that_is_real(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    mount = tmp_path / "small"
    mount.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        async with opened(mount / "state.db") as db:
            acknowledged = []
            refused: StoreUnavailable | None = None
            for n in range(200):
                try:
                    await db.write(large(str(n), 20_000))
                except StoreUnavailable as error:
                    refused = error
                    break
                acknowledged.append(str(n))
            assert refused is not None
            assert refused.trouble is Trouble.FULL
            assert not db.healthy
            assert await db.read(notes) == acknowledged
            subprocess.run(["mount", "-o", "remount,size=16m", str(mount)], check=True)
            await usable_again(db)
            await db.write(large("more", 20_000))
            assert await db.read(notes) == [*acknowledged, "more"]
    finally:
        subprocess.run(["umount", str(mount)], check=True)


async def test_a_database_that_became_read_only(db_path: Path) -> None:
    async with opened(db_path) as db:
        await db.write(lambda conn: conn.execute("PRAGMA query_only = ON"))
        with pytest.raises(StoreUnavailable) as caught:
            await db.write(note("a"))
        assert caught.value.trouble is Trouble.READ_ONLY
        assert await db.read(notes) == []


async def test_a_folder_without_write_access(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        mount = tmp_path / "ro"
        mount.mkdir()
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(mount)], capture_output=True, check=False
        ).returncode:
            pytest.skip("mounting is not allowed here")
    else:
        mount = tmp_path / "ro"
        mount.mkdir(mode=0o500)
    try:
        with pytest.raises(StoreUnavailable) as caught:
            await Database.open(mount / "state.db", clock=SystemClock())
        assert caught.value.trouble is Trouble.READ_ONLY
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", str(mount)], check=True)


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        await Database.open(tmp_path / "none" / "state.db", clock=SystemClock())
    assert caught.value.trouble is Trouble.READ_ONLY


async def test_a_newer_database_is_left_alone(db_path: Path) -> None:
    async with opened(db_path) as db:
        await db.write(note("a"))
    with sqlite3.connect(db_path) as conn:
        conn.execute("PRAGMA user_version = 99")
    conn.close()
    before = db_path.read_bytes()
    with pytest.raises(DatabaseTooNew) as caught:
        await Database.open(db_path, clock=SystemClock())
    assert (caught.value.found, caught.value.known) == (99, len(migrations.load()))
    assert "99" in str(caught.value)
    assert db_path.read_bytes() == before


@pytest.mark.parametrize("damage", ["no database", "cut", "torn page", "foreign", "emptied"])
async def test_a_damaged_database_is_kept_and_said(db_path: Path, damage: str) -> None:
    async with opened(db_path) as db:
        for n in range(50):
            await db.write(large(str(n), 5_000))
    content = db_path.read_bytes()
    if damage == "no database":
        db_path.write_bytes(b"this is a text file " * 500)
    elif damage == "cut":
        db_path.write_bytes(content[: len(content) // 2])
    elif damage == "torn page":
        db_path.write_bytes(content[: 4096 * 2] + b"\xff" * 4096 * 20 + content[4096 * 22 :])
    else:
        db_path.unlink()
        with sqlite3.connect(db_path) as conn:
            conn.execute("CREATE TABLE other (a)")
            if damage == "emptied":
                conn.execute("DROP TABLE other")
                conn.execute("PRAGMA user_version = 1")
        conn.close()
    before = db_path.read_bytes()
    with pytest.raises(DatabaseDamaged, match="left as it is"):
        await Database.open(db_path, clock=SystemClock())
    assert db_path.read_bytes() == before


async def test_an_empty_file_becomes_a_database(db_path: Path) -> None:
    db_path.touch()
    async with opened(db_path) as db:
        await db.write(note("a"))
        assert await db.read(notes) == ["a"]


async def test_a_start_that_fails_after_connecting_leaves_no_thread(db_path: Path) -> None:
    db_path.write_bytes(b"no database at all, but long enough to be one" * 100)
    for _ in range(3):
        with pytest.raises(StoreError):
            await Database.open(db_path, clock=SystemClock())
    _threads_end()


async def test_a_cancelled_start_leaves_no_thread(db_path: Path) -> None:
    for rounds in range(12):
        task = asyncio.create_task(Database.open(db_path, clock=SystemClock()))
        for _ in range(rounds):
            await asyncio.sleep(0)
        if rounds > 8:
            await asyncio.sleep(0.001 * rounds)
        task.cancel()
        result = (await asyncio.gather(task, return_exceptions=True))[0]
        if isinstance(result, Database):
            await result.close()
    _threads_end()
    async with opened(db_path) as db:
        await db.write(note("a"))


def _threads_end() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("ostiary-store"):
            thread.join(10)
            assert not thread.is_alive()


@pytest.mark.parametrize("end", ["return", "raise", "exit"])
def test_an_unclosed_database_does_not_keep_the_process_alive(db_path: Path, end: str) -> None:
    script = f"""
import asyncio, pathlib, sys
from agent.control.clock import SystemClock
from gateway.store.database import Database
async def main():
    global db
    db = await Database.open(pathlib.Path(sys.argv[1]), clock=SystemClock())
    await db.write(lambda conn: conn.execute("INSERT INTO meta VALUES ('k', 'v')"))
    if {end!r} == "raise":
        raise RuntimeError("start-up failed")
    if {end!r} == "exit":
        sys.exit(3)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script, str(db_path)], timeout=30, capture_output=True, check=False)
    assert done.returncode == {"return": 0, "raise": 1, "exit": 3}[end], done.stderr
    with sqlite3.connect(db_path) as conn:
        assert conn.execute("SELECT value FROM meta WHERE key = 'k'").fetchone() == ("v",)
    conn.close()


async def test_a_reader_of_another_process_takes_nothing_away(db_path: Path) -> None:
    """Opening and closing the file elsewhere, or in this process, leaves log and locks of the daemon in place."""
    reading = (
        "import sys, pathlib; from gateway.store import readonly\n"
        "with readonly.connect(pathlib.Path(sys.argv[1])) as conn: print(conn.execute('SELECT count(*) FROM"
        " dead_letters').fetchone()[0])"
    )
    async with opened(db_path) as db:
        for n in range(3):
            await db.write(note(str(n)))
            done = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", reading, str(db_path)],
                capture_output=True,
                text=True,
                check=True,
            )
            assert done.stdout == f"{n + 1}\n"
            assert db_path.with_name("state.db-wal").exists()
        with write_lock(db_path) as release:
            blocked = asyncio.create_task(db.write(note("3")))
            await asyncio.sleep(0.1)
            assert not blocked.done()
            release()
            await blocked
    with sqlite3.connect(db_path) as conn:
        assert notes(conn) == ["0", "1", "2", "3"]
    conn.close()


async def test_many_processes_that_write_lose_nothing(db_path: Path) -> None:
    """Twenty short-lived writers beside the daemon: everybody waits for the lock, nobody fails."""
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)\n"
        "for n in range(10):\n"
        "  c.execute('BEGIN IMMEDIATE'); c.execute('INSERT INTO meta VALUES (?, ?)', (f'{sys.argv[2]}.{n}', ''))\n"
        "  c.execute('COMMIT')"
    )
    async with opened(db_path, busy_timeout_s=30) as db:
        processes = [
            await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(db_path), str(k)) for k in range(20)
        ]
        await asyncio.gather(*(db.write(note(str(n))) for n in range(50)))
        assert [await process.wait() for process in processes] == [0] * 20
        assert await db.read(lambda conn: conn.execute("SELECT count(*) FROM meta").fetchone()) == (200,)
        assert len(await db.read(notes)) == 50
        assert db.failures == 0
