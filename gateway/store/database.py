"""The database: one writer that commits what has gathered in one transaction, readers on their own connections."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import structlog

from agent.control.clock import Clock
from gateway.store import connections, meta, migrations
from gateway.store.connections import BUSY_TIMEOUT_S, Entry, Read, Worker
from gateway.store.exceptions import StoreUnavailable, Trouble, translated, translating, trouble_of
from gateway.store.migrations import Migration
from gateway.store.times import to_text

T = TypeVar("T")

#: Units of one transaction at most, so that the first of them does not wait for a long queue.
BATCH_MAX = 256
#: Longest that a unit without a waiter is held back for a commit to ride along with.
RIDE_DELAY_S = 0.2
#: Age of the oldest uncommitted unit above which new work must be turned away.
STALLED_S = 5.0
#: While the last commit has failed, a small write tries this often whether the database is usable again.
PROBE_S = 1.0

_SYNCHRONOUS = ("normal", "full", "extra")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class StoreObserver(Protocol):
    """Told what the writer did."""

    def committed(self, units: int, seconds: float) -> None:
        """``units`` units of work were committed in one transaction."""
        ...

    def unit_failed(self) -> None:
        """A unit of work was rolled back, or could not be begun."""
        ...


class Database:
    """SQLite behind one writing thread and some reading ones.

    A *unit of work* is a function over the connection. It runs in a savepoint of a transaction that it shares with
    whatever else has gathered, on the writer's thread, in one piece: it does not begin, commit or await anything, and
    touches nothing of the event loop's.

    Attributes:
        commits: transactions that the database took.
        units: units that were committed.
        failures: units that were not: by their own error, or because the database could not be used.
        last_commit_s: seconds from the start of the last transaction to the end of its commit.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        writer: Worker,
        readers: Sequence[Worker],
        observer: StoreObserver | None = None,
    ) -> None:
        """Use :meth:`open`."""
        self.path = path
        self.commits = 0
        self.units = 0
        self.failures = 0
        self.last_commit_s = 0.0
        self._clock = clock
        self._observer = observer
        self._loop = asyncio.get_running_loop()
        self._writer = writer
        self._readers = tuple(readers)
        self._free = list(readers)
        self._reads: dict[Read, Worker] = {}
        self._slots = asyncio.Semaphore(len(self._readers))
        self._queue: deque[Entry] = deque()
        self._awaited = 0
        self._batch: list[Entry] = []
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._probe_timer: asyncio.TimerHandle | None = None
        self._failed = False
        self._closing: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        synchronous: str = "full",
        readers: int = 2,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        schema: Sequence[Migration] | None = None,
        observer: StoreObserver | None = None,
    ) -> Database:
        """Open the file, which is made and migrated as needed.

        Args:
            path: the file; it is only ever opened through SQLite.
            clock: for ages and durations.
            synchronous: ``full`` (what is committed survives a power cut), ``normal`` or ``extra``.
            readers: reading connections, a thread each.
            busy_timeout_s: how long a statement waits for another process's lock.
            schema: the migrations; None for the shipped ones.
            observer: told about commits and failures.

        Raises:
            DatabaseTooNew: a newer version of the program has made the file.
            DatabaseDamaged: it is no usable database.
            StoreUnavailable: it cannot be used right now.
        """
        if synchronous.lower() not in _SYNCHRONOUS:
            raise ValueError(f"synchronous must be one of {', '.join(_SYNCHRONOUS)}")
        writer = connections.writer(path, busy_timeout_s=busy_timeout_s)
        pool = [
            connections.reader(path, number, busy_timeout_s=busy_timeout_s) for number in range(1, max(readers, 1) + 1)
        ]
        prepare = partial(_prepare, path=path, schema=schema, synchronous=synchronous.lower())
        opening = asyncio.create_task(_open(writer, pool, prepare), name="store-open")
        try:
            await connections.outlast(opening)
        except asyncio.CancelledError:
            await connections.outlast(asyncio.ensure_future(connections.end((writer, *pool))))
            raise
        return cls(path, clock, writer, pool, observer)

    async def write(self, unit: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``unit`` and return what it returned, once it is committed.

        Units run in the order in which they were handed in. One that raises is undone alone. A cancelled caller's unit
        either does not run or runs and is committed as a whole.

        Raises:
            StoreUnavailable: the database could not take it; it left no trace.
            Exception: what the unit itself raised.
        """
        self._check_open()
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(Entry(unit, self._clock.monotonic(), future))
        self._awaited += 1
        self._idle.clear()
        self._schedule()
        return await future

    def ride(self, unit: Callable[[sqlite3.Connection], object]) -> None:
        """Queue ``unit`` with nobody waiting: it goes with the next commit, at the latest one made for it soon.

        Its order with :meth:`write` is kept. Its failure is logged and counted.

        Raises:
            StoreUnavailable: the database is closed.
        """
        self._check_open()
        self._queue.append(Entry(unit, self._clock.monotonic(), None))
        self._idle.clear()
        self._arm()

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``query`` over one state of the database: everything committed when it starts, nothing after.

        Raises:
            StoreUnavailable: the database cannot be read right now.
            Exception: what the query itself raised.
        """
        self._check_open()
        await self._slots.acquire()
        read = Read()
        try:
            self._check_open()
            reader = self._free.pop()
            future = reader.hop(partial(read.run, query))
        except BaseException:
            self._slots.release()
            raise
        self._reads[read] = reader
        # The reader is free again when the native call has ended, which a cancelled caller does not wait for.
        future.add_done_callback(lambda _: self._give_back(read))
        try:
            with translating():
                return await asyncio.shield(future)
        except asyncio.CancelledError:
            read.given_up = True
            raise
        except sqlite3.OperationalError:
            if read.given_up:
                raise StoreUnavailable(Trouble.CLOSED) from None
            raise

    def stalled_s(self) -> float:
        """Seconds that the oldest unit has been waiting for its commit; 0 where none waits."""
        oldest = self._batch[0] if self._batch else self._queue[0] if self._queue else None
        return 0.0 if oldest is None else max(0.0, self._clock.monotonic() - oldest.at)

    @property
    def healthy(self) -> bool:
        """Whether new work may be taken: the last commit went well and none has waited too long."""
        return self._closing is None and not self._failed and self.stalled_s() <= STALLED_S

    async def close(self) -> None:
        """Commit what is queued, cut queries short, empty the write-ahead log, close all and end the threads.

        Cancelling the caller does not stop it half-way: the cancellation is raised when it is done.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="store-close")
        await connections.outlast(self._closing)

    async def _close(self) -> None:
        try:
            for read in self._reads:
                read.given_up = True
            self._schedule()
            await self._idle.wait()
            for reader in self._readers:
                await reader.close()
            try:
                await self._writer.hop(connections.truncate_wal)
            except sqlite3.Error as error:
                log.warning("wal_not_truncated", error=str(error))
            await self._writer.close()
        finally:
            self._disarm()
            if self._probe_timer is not None:
                self._probe_timer.cancel()
            await connections.end((*self._readers, self._writer))

    def _check_open(self) -> None:
        if self._closing is not None:
            raise StoreUnavailable(Trouble.CLOSED)

    def _give_back(self, read: Read) -> None:
        self._free.append(self._reads.pop(read))
        self._slots.release()

    # The writer's side: at most one batch is under way, and its end starts the next. It is driven by callbacks of the
    # loop, not by a task, so that no cancellation can reach it.

    def _arm(self) -> None:
        if self._timer is None and not self._batch and not self._scheduled:
            self._timer = self._loop.call_later(RIDE_DELAY_S, self._schedule)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self) -> None:
        self._disarm()
        if not self._batch and not self._scheduled:
            self._scheduled = True
            # Not at once: whatever else is handed in during this round of the loop shares the transaction.
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        self._scheduled = False
        batch: list[Entry] = []
        while self._queue and len(batch) < BATCH_MAX:
            entry = self._queue.popleft()
            if entry.future is not None:
                self._awaited -= 1
                if entry.future.done():  # its caller was cancelled before it began
                    continue
            batch.append(entry)
        if not batch:
            self._idle.set()
            return
        self._batch = batch
        try:
            self._writer.hop(partial(self._timed, batch)).add_done_callback(self._finish)
        except ValueError:  # the connection is gone
            self._settle(batch, StoreUnavailable(Trouble.CLOSED))

    def _timed(self, batch: Sequence[Entry], conn: sqlite3.Connection) -> tuple[bool, float]:
        started = self._clock.monotonic()
        taken = connections.commit(batch, conn)
        return taken, self._clock.monotonic() - started

    def _finish(self, hop: asyncio.Future[tuple[bool, float]]) -> None:
        batch = self._batch
        error = hop.exception() if not hop.cancelled() else asyncio.CancelledError()
        if error is not None:  # not even undoing went well
            self._settle(batch, error)
            return
        taken, self.last_commit_s = hop.result()
        self._settle(batch, None, taken=taken)

    def _settle(self, batch: Sequence[Entry], broken: BaseException | None, *, taken: bool = False) -> None:
        self._batch = []
        units, failures = self.units, self.failures
        again: list[Entry] = []
        trouble: Trouble | None = None
        for entry in batch:
            if broken is not None:
                entry.error = StoreUnavailable(trouble_of(broken) or Trouble.IO)
            error = None if entry.error is None else translated(entry.error)
            if isinstance(error, StoreUnavailable):
                trouble = error.trouble
                if entry.may_go_again and trouble is not Trouble.CLOSED:
                    again.append(entry)
                    continue
            self._resolve(entry, error)
        self.commits += taken
        if self._observer is not None:
            if taken:
                self._observer.committed(self.units - units, self.last_commit_s)
            for _ in range(self.failures - failures):
                self._observer.unit_failed()
        self._note_health(taken, trouble)
        self._queue.extendleft(reversed(again))
        if self._awaited or (self._queue and self._closing is not None):
            self._schedule()
        elif self._queue:
            self._arm()
        else:
            self._idle.set()

    def _resolve(self, entry: Entry, error: BaseException | None) -> None:
        if entry.probe:
            return
        if error is None:
            self.units += 1
        else:
            self.failures += 1
        future = entry.future
        if future is None:
            if error is not None:
                log.error("rider_lost", error=repr(error), attempts=entry.attempts)
        elif not future.done():
            if error is None:
                future.set_result(entry.value)
            elif isinstance(error, StopIteration):  # no future takes one
                future.set_exception(RuntimeError("the unit of work raised StopIteration"))
            else:
                future.set_exception(error)

    def _note_health(self, taken: bool, trouble: Trouble | None) -> None:
        if taken:
            if self._failed:
                log.info("store_usable_again")
            self._failed = False
            return
        if not self._failed:
            log.error("store_unusable", trouble=trouble.value if trouble else "unknown")
        self._failed = True
        if self._closing is None and self._probe_timer is None:
            # Nothing is accepted while the store is not healthy, so nothing else would ever find out that it is again.
            self._probe_timer = self._loop.call_later(PROBE_S, self._probe)

    def _probe(self) -> None:
        self._probe_timer = None
        if self._closing is not None or not self._failed:
            return
        moment = to_text(self._clock.now())
        entry = Entry(lambda conn: meta.put(conn, "probe", moment), self._clock.monotonic(), None, probe=True)
        self._queue.append(entry)
        self._idle.clear()
        self._schedule()


async def _open(writer: Worker, readers: Sequence[Worker], prepare: Callable[[sqlite3.Connection], None]) -> None:
    try:
        with translating():
            await writer
            await writer.hop(prepare)
            for reader in readers:
                await reader
    except BaseException:
        await connections.end((writer, *readers))
        raise


def _prepare(conn: sqlite3.Connection, *, path: Path, schema: Sequence[Migration] | None, synchronous: str) -> None:
    steps = migrations.load() if schema is None else schema
    version = migrations.check(conn, path, len(steps))
    connections.configure(conn, synchronous)
    migrations.apply(conn, path, steps, version)
    if 0 < version < len(steps):
        log.info("database_migrated", found=version, version=len(steps))
