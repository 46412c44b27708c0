"""Connections that run whole pieces of work on their own thread, one hop each."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite

from gateway.store.exceptions import StoreUnavailable, Trouble, UnitMisused, translated, trouble_of

T = TypeVar("T")

#: How long a statement waits for another process's lock.
BUSY_TIMEOUT_S = 5.0
#: The WAL file shrinks to this when it is used anew; SQLite would keep it at its largest size ever.
WAL_KEPT_BYTES = 16 * 1024 * 1024
#: Steps of SQLite's machine, some 10 million a second, between two looks at whether a query is still wanted.
STEPS_BETWEEN_LOOKS = 10_000
#: Transactions that a unit without a waiter may be part of before it is given up.
RIDE_ATTEMPTS = 3
#: Distinct statements kept compiled: the gateway has about a hundred.
CACHED_STATEMENTS = 256


class Worker(aiosqlite.Connection):
    """An aiosqlite connection whose unit of traffic is a function, not a statement.

    A hop for each statement costs 24 microseconds a time and lets a cancelled caller leave a transaction open; a
    function runs to its end on the thread whatever becomes of its caller.
    """

    def __init__(self, connector: Callable[[], sqlite3.Connection], name: str) -> None:
        super().__init__(connector, iter_chunk_size=64)
        self._thread.name = name
        # Every path closes its connections; should one be missed, the process must still be able to end. What was
        # committed is safe.
        self._thread.daemon = True

    def hop(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Run ``work`` on the connection's thread, after what was asked of it before."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._tx.put_nowait((future, partial(work, self._conn)))
        return future

    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait for the end of the thread; blocks."""
        if self._thread.ident is not None:
            self._thread.join()


async def end(workers: Sequence[Worker]) -> None:
    """Close whatever is still open and see the threads end, so that none of them meets a closed event loop."""
    for worker in workers:
        if worker.alive():
            worker.stop()
    await asyncio.to_thread(_join, workers)


def _join(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.join()


async def outlast(task: asyncio.Future[T]) -> T:
    """The result of ``task``; cancelling the caller neither cancels it nor is forgotten."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    result = task.result()
    if cancelled:
        raise asyncio.CancelledError
    return result


def writer(path: Path, *, busy_timeout_s: float) -> Worker:
    """The one connection that writes; nothing is opened before it is awaited."""

    def connect() -> sqlite3.Connection:
        _create(path)
        return sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, cached_statements=CACHED_STATEMENTS)

    return Worker(connect, "ostiary-store-writer")


def _create(path: Path) -> None:
    """Make an empty file that only its owner can read; SQLite gives its side files the same rights.

    Only where there is none: closing a descriptor of a database in use would drop the process's locks on it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreUnavailable(Trouble.FULL if error.errno == errno.ENOSPC else Trouble.READ_ONLY) from error


def reader(path: Path, number: int, *, busy_timeout_s: float) -> Worker:
    """A connection that cannot write."""
    return Worker(partial(connect_read_only, path, busy_timeout_s), f"ostiary-store-reader-{number}")


def connect_read_only(path: Path, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """A plain connection that cannot write, with or without a daemon at work on the file.

    Raises:
        sqlite3.OperationalError: there is no such file, or it may not be read.
    """
    uri = path.absolute().as_uri() + "?mode=ro"
    conn = sqlite3.connect(
        uri, uri=True, timeout=busy_timeout_s, isolation_level=None, cached_statements=CACHED_STATEMENTS
    )
    try:
        conn.execute("PRAGMA query_only = ON")
        conn.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        conn.close()
        raise
    return conn


def configure(conn: sqlite3.Connection, synchronous: str) -> None:
    """Set up the writer.

    Raises:
        StoreUnavailable: the file system cannot carry a write-ahead log (some network file systems).
    """
    (mode,) = conn.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreUnavailable(Trouble.IO)
    conn.execute(f"PRAGMA synchronous = {synchronous}")
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA trusted_schema = OFF")
    conn.execute("PRAGMA temp_store = MEMORY")
    conn.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}")


def truncate_wal(conn: sqlite3.Connection) -> None:
    """Bring the write-ahead log into the file and empty it, as far as readers let it."""
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


@dataclass(slots=True, eq=False)
class Read:
    """A query on its way.

    Attributes:
        given_up: nobody wants its result any more. It is looked at while statements run: ``interrupt()`` would be lost
            on a thread that has not come to its first statement yet.
    """

    given_up: bool = False

    def run(self, query: Callable[[sqlite3.Connection], T], conn: sqlite3.Connection) -> T:
        """Run ``query`` over one unchanging state of the database.

        Raises:
            sqlite3.OperationalError: it was given up, with ``SQLITE_INTERRUPT``.
        """
        conn.set_progress_handler(self._is_given_up, STEPS_BETWEEN_LOOKS)
        conn.execute("BEGIN")
        try:
            return query(conn)
        finally:
            conn.set_progress_handler(None, 0)
            if conn.in_transaction:
                conn.execute("ROLLBACK")

    def _is_given_up(self) -> bool:
        return self.given_up


@dataclass(slots=True, eq=False)
class Entry:
    """A unit of work on its way.

    Attributes:
        at: monotonic seconds when it was handed in.
        future: None where nobody waits.
        attempts: transactions that it was part of.
        probe: a write that only asks whether the database is usable; it is not counted.
    """

    unit: Callable[[sqlite3.Connection], Any]
    at: float
    future: asyncio.Future[Any] | None
    value: Any = None
    error: BaseException | None = None
    attempts: int = 0
    probe: bool = False

    @property
    def may_go_again(self) -> bool:
        """Whether it is tried again after the database was unusable: who waits decides for themselves."""
        return self.future is None and not self.probe and self.attempts < RIDE_ATTEMPTS


def commit(batch: Sequence[Entry], conn: sqlite3.Connection) -> bool:
    """Run ``batch`` in one transaction, each unit by itself; sets ``value`` or ``error`` of every entry.

    A full disk makes SQLite give up the whole transaction in the middle of a statement; then each unit gets a
    transaction of its own, so that the one that was too big does not take the others with it.

    Returns:
        Whether the database took the transaction. False: each entry that did not fail by itself has
        :class:`StoreUnavailable` as its error.
    """
    for entry in batch:
        entry.attempts += 1
        entry.value = entry.error = None
    try:
        conn.execute("BEGIN IMMEDIATE")
        lost = _run(batch, conn)
        if lost is None:
            conn.execute("COMMIT")
            return True
    except sqlite3.Error as error:
        _fail(batch, error)
        return False
    finally:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
    if len(batch) == 1 or isinstance(lost, UnitMisused):
        _fail(batch, lost)
        return False
    taken = [commit((entry,), conn) for entry in batch]
    return all(taken)


def _run(batch: Sequence[Entry], conn: sqlite3.Connection) -> BaseException | None:
    """Run each unit in a savepoint of the open transaction; what ended the transaction, None while it stands."""
    for entry in batch:
        conn.execute("SAVEPOINT unit")
        try:
            entry.value = entry.unit(conn)
        except BaseException as error:  # noqa: BLE001 - it goes to the caller; this thread has nobody else to tell
            entry.error = error
            if not conn.in_transaction:
                return error if trouble_of(error) is not None else UnitMisused()
            conn.execute("ROLLBACK TO unit")
        if not conn.in_transaction:
            return UnitMisused()
        conn.execute("RELEASE unit")
    return None


def _fail(batch: Sequence[Entry], cause: BaseException) -> None:
    for entry in batch:
        if entry.error is None or entry.error is cause:
            # An exception of its own for each: they are raised in different tasks.
            entry.error = UnitMisused() if isinstance(cause, UnitMisused) else translated(cause)
