"""Holds the sums that no single process limit can: memory, tasks and workspace bytes of one sandbox.

Every 100 ms the namespace of a running job is sampled, and the job is killed when it is over. All reading happens in a
few worker threads that the sandboxes share; the event loop only waits for results.

What no process has mapped and no file system holds is not seen: memfds, detached System V segments, socket buffers.
Only a memory cgroup counts those; in a service unit with MemoryMax= they are bounded together with the daemon.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from agent.control.clock import Clock
from agent.control.sandbox.base import Ended, Limits
from agent.control.sandbox.process import outlast

#: How often a sandbox is looked at. What it can do between two looks is bounded by its processes' own limits.
INTERVAL_S = 0.1

#: A walk over the workspace rests for this many times its own duration, so that a large one costs a tenth of a core.
_REST = 9.0

#: Bytes charged for an entry without blocks of its own (an empty file, a link): it takes an inode and a name.
_ENTRY_BYTES = 1024

#: Deeper trees are taken for an attempt to hide from the count; each level holds one descriptor open.
_MAX_DEPTH = 200

_MIB = 1024 * 1024
_PAGE = os.sysconf("SC_PAGE_SIZE")

#: Temporary file systems inside; what lies in them is memory that no process need have mapped.
_TEMPORARY = ("root/tmp", "root/dev/shm")


#: How often a sum over the limit is counted again at once before a job is killed for it.
CONFIRMATIONS = 2


@dataclass(frozen=True, slots=True)
class Usage:
    """What one sandbox uses.

    Attributes:
        tasks: processes and threads, without the namespace's first process.
        memory: bytes, as the sum of proportional set sizes and of the temporary file systems.
    """

    tasks: int
    memory: int


class Namespace:
    """Reads the use of the pid namespace whose first process has the host pid ``pid``.

    The sandbox's own ``/proc`` lists its processes completely and nobody else's. Where the daemon may not look through
    it (another user's, without CAP_SYS_PTRACE), the tree of children is walked instead.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        # Opened once: a folder of /proc stays that process's, even when its number is given to another.
        self._first = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Release the descriptor."""
        os.close(self._first)

    def usage(self, enough: int) -> Usage | None:
        """The present use; None while the sandbox is being set up or when it is gone. Blocks for a moment.

        Args:
            enough: bytes of memory up to which the cheap upper bound (resident set sizes) is good enough an answer.
        """
        try:
            with self._processes() as (folder, pids):
                if folder is None:
                    return None
                usage = self._sum(folder, pids, enough)
            return usage if usage.memory <= enough else self._confirmed(usage, enough)
        except (FileNotFoundError, ProcessLookupError):
            return None

    def _confirmed(self, usage: Usage, enough: int) -> Usage:
        """Count again before too much is believed, and take the least.

        Shares are read one process after the other: when one ends in between, what it shared is in its own share, which
        has been read, and then again in the others', which have grown.
        """
        for _ in range(CONFIRMATIONS):
            with self._processes() as (folder, pids):
                if folder is None:
                    return usage
                again = self._sum(folder, pids, enough)
            usage = Usage(again.tasks, min(usage.memory, again.memory))
            if usage.memory <= enough:
                break
        return usage

    @contextlib.contextmanager
    def _processes(self) -> Iterator[tuple[int | None, list[str]]]:
        try:
            folder = os.open("root/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._first)
        except PermissionError:
            folder = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                yield folder, _descendants(self._pid)
            finally:
                os.close(folder)
            return
        try:
            if os.fstat(folder).st_dev == os.fstat(self._first).st_dev:
                yield None, []  # bubblewrap has not changed the root yet
            else:
                yield folder, [name for name in _names(folder) if name.isdigit() and name != "1"]
        finally:
            os.close(folder)

    def _sum(self, folder: int, pids: list[str], enough: int) -> Usage:
        tasks = resident = 0
        for pid in pids:
            threads, bytes_resident = _stat(folder, pid)
            tasks += threads
            resident += bytes_resident
        temporary = self._temporary()
        if resident + temporary <= enough:
            return Usage(tasks, resident + temporary)
        private, shared = _proportions(folder, pids)
        # A file in /tmp or /dev/shm that is mapped is the same memory seen twice.
        return Usage(tasks, private + max(shared, temporary))

    def _temporary(self) -> int:
        total = 0
        for place in _TEMPORARY:
            try:
                folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._first)
            except PermissionError:
                continue
            try:
                space = os.fstatvfs(folder)
            finally:
                os.close(folder)
            total += (space.f_blocks - space.f_bfree) * space.f_frsize + (space.f_files - space.f_ffree) * _ENTRY_BYTES
        return total


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _read(folder: int, name: str) -> bytes:
    """A small file of /proc; empty when its process is gone."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except (FileNotFoundError, ProcessLookupError):
        return b""
    try:
        return os.read(descriptor, 16_384)
    except ProcessLookupError:
        return b""
    finally:
        os.close(descriptor)


def _stat(folder: int, pid: str) -> tuple[int, int]:
    """Threads and resident bytes of a process (fields 20 and 24 of proc(5) stat); zeros when it is gone or a zombie."""
    fields = _read(folder, f"{pid}/stat").rpartition(b")")[2].split()
    return (int(fields[17]), int(fields[21]) * _PAGE) if fields else (0, 0)


def _proportions(folder: int, pids: list[str]) -> tuple[int, int]:
    """The sums of :func:`_proportional` over several processes."""
    private = shared = 0
    for pid in pids:
        own, common = _proportional(folder, pid)
        private += own
        shared += common
    return private, shared


def _proportional(folder: int, pid: str) -> tuple[int, int]:
    """Bytes of memory that are the process's own share, apart from shared memory, and its share of shared memory."""
    try:
        values = _kilobytes(_read(folder, f"{pid}/smaps_rollup"))
        total, shared = values.get(b"Pss", 0), values.get(b"Pss_Shmem", 0)
        return (total - shared) * 1024, shared * 1024
    except PermissionError:
        # Readable for everybody: counts what a fork shares twice, and leaves out mapped program files.
        values = _kilobytes(_read(folder, f"{pid}/status"))
        return values.get(b"RssAnon", 0) * 1024, values.get(b"RssShmem", 0) * 1024


def _kilobytes(text: bytes) -> dict[bytes, int]:
    values: dict[bytes, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(b":")
        amount, _, unit = rest.strip().partition(b" ")
        if unit == b"kB" and amount.isdigit():
            values[name] = int(amount)
    return values


def _descendants(pid: int) -> list[str]:
    found: list[str] = []
    waiting = [str(pid)]
    while waiting:
        process = waiting.pop()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for task in Path(f"/proc/{process}/task").iterdir():
                children = (task / "children").read_text().split()
                found += children
                waiting += children
    return found


class TooDeep(Exception):
    """A tree is nested deeper than anybody nests one in good faith."""


def tree_bytes(root: Path, stop: threading.Event) -> int:
    """Bytes on disk below ``root``, links not followed, hard links counted once. Blocks; ``stop`` ends it early.

    Raises:
        TooDeep: nested more than 200 levels.
    """
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return _folder_bytes(folder, stop, set(), 0)
    finally:
        os.close(folder)


def _folder_bytes(folder: int, stop: threading.Event, seen: set[tuple[int, int]], depth: int) -> int:
    if depth > _MAX_DEPTH:
        raise TooDeep
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if stop.is_set():
                break
            # What vanishes or closes itself while it is counted is counted the next time.
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    total += _below(folder, entry.name, stop, seen, depth)
                elif status.st_nlink > 1:
                    if (status.st_dev, status.st_ino) in seen:
                        continue
                    seen.add((status.st_dev, status.st_ino))
                total += max(status.st_blocks * 512, _ENTRY_BYTES)
    return total


def _below(parent: int, name: str, stop: threading.Event, seen: set[tuple[int, int]], depth: int) -> int:
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        return _folder_bytes(folder, stop, seen, depth + 1)
    finally:
        os.close(folder)


class DiskMeter:
    """Counts a workspace again and again, and says when a job has made it grow beyond its limit.

    A workspace that is over its limit already may still be read and cleaned: only growth is held against a job.
    """

    def __init__(self, workspace: Path, limit: int, pool: ThreadPoolExecutor, clock: Clock) -> None:
        self._workspace = workspace
        self._limit = limit
        self._pool = pool
        self._clock = clock
        self._stop = threading.Event()
        self._allowed: int | None = None
        self._begun = 0.0
        self._next = 0.0
        self._walk: asyncio.Future[int] | None = None
        self._begin()

    def _begin(self) -> None:
        self._begun = self._clock.monotonic()
        loop = asyncio.get_running_loop()
        self._walk = loop.run_in_executor(self._pool, tree_bytes, self._workspace, self._stop)

    def over(self) -> bool:
        """Whether the last finished count is over; begins the next one when it is due. Never waits."""
        now = self._clock.monotonic()
        if self._walk is None:
            if now >= self._next:
                self._begin()
            return False
        if not self._walk.done():
            return False
        walk, self._walk = self._walk, None
        self._next = now + (now - self._begun) * _REST
        try:
            counted = walk.result()
        except TooDeep:
            return True
        if self._allowed is None:
            self._allowed = max(self._limit, counted)
        return counted > self._allowed

    def stop(self) -> None:
        """End the count that is running."""
        self._stop.set()
        if self._walk is not None:
            self._walk.cancel()


class Supervisor:
    """Watches sandboxes for as long as they run; one for all of an engine."""

    def __init__(self, clock: Clock, interval_s: float = INTERVAL_S) -> None:
        self._clock = clock
        self._interval_s = interval_s
        # Counting files may take long, so that it gets threads of its own.
        self._samples = ThreadPoolExecutor(1, thread_name_prefix="sandbox-usage")
        self._walks = ThreadPoolExecutor(2, thread_name_prefix="sandbox-disk")

    def close(self) -> None:
        """Let the worker threads end."""
        self._samples.shutdown(wait=False, cancel_futures=True)
        self._walks.shutdown(wait=False, cancel_futures=True)

    def meter(self, workspace: Path, limits: Limits) -> DiskMeter:
        """Begin to count ``workspace``: before the job starts, so that what was there before is told apart."""
        return DiskMeter(workspace, limits.disk_mb * _MIB, self._walks, self._clock)

    async def watch(self, pid: asyncio.Future[int], limits: Limits, disk: DiskMeter | None) -> Ended:
        """Return as soon as the sandbox is over one of its sums. Ends by cancellation otherwise.

        Args:
            pid: resolves to the host pid of the namespace's first process.
            limits: the sums.
            disk: the running count of the workspace; None when the job cannot write there.
        """
        loop = asyncio.get_running_loop()
        try:
            # On the loop because a cancelled thread would leave its descriptor behind; /proc does not block.
            namespace = Namespace(await asyncio.shield(pid))
        except (FileNotFoundError, ProcessLookupError):
            await asyncio.Event().wait()  # over already: the cancellation is on its way
            raise
        memory = limits.memory_mb * _MIB
        pending: asyncio.Future[Usage | None] | None = None
        try:
            while True:
                pending = loop.run_in_executor(self._samples, namespace.usage, memory)
                usage = await asyncio.shield(pending)
                if usage is not None and usage.memory > memory:
                    return Ended.OVER_MEMORY
                if usage is not None and usage.tasks > limits.pids:
                    return Ended.OVER_PIDS
                if disk is not None and disk.over():
                    return Ended.OVER_DISK
                await self._clock.sleep(self._interval_s)
        finally:
            # The thread may still be reading through the descriptor.
            try:
                if pending is not None:
                    await outlast(pending)
            finally:
                namespace.close()
