"""Time as a collaborator: monotonic for limits, UTC for what must survive a restart."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Where every limit and time stamp comes from."""

    def monotonic(self) -> float:
        """Seconds that never step back; only differences mean something."""
        ...

    def now(self) -> datetime:
        """Aware UTC wall time."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait on the monotonic clock."""
        ...

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        """Raise ``TimeoutError`` out of the block after ``seconds``; None never does."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """Seconds of the system's monotonic clock."""
        return time.monotonic()

    def now(self) -> datetime:
        """Aware UTC wall time."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop."""
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """The event loop's own time-out."""
        return asyncio.timeout(seconds)


class ManualClock:
    """A clock for tests: stands still until :meth:`advance` is called.

    Sleepers and time-outs that fall due are released in the order of their deadlines, and everything that can run is
    run before the next one is.
    """

    def __init__(self, now: datetime | None = None) -> None:
        self._monotonic = 1_000.0
        self._now = now or datetime(2026, 1, 1, tzinfo=UTC)
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._timeouts: list[tuple[float, asyncio.Timeout]] = []

    def monotonic(self) -> float:
        """Seconds since an arbitrary start."""
        return self._monotonic

    def now(self) -> datetime:
        """The wall time, which moves with the monotonic one unless :meth:`step_wall` is called."""
        return self._now

    def step_wall(self, delta: timedelta) -> None:
        """Move the wall clock alone, as an administrator or NTP would."""
        self._now += delta

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been advanced by ``seconds``."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (self._monotonic + seconds, future)
        self._sleepers.append(entry)
        try:
            await future
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """A time-out that fires when the clock has been advanced past it."""
        timeout = asyncio.timeout(None)
        if seconds is not None:
            self._timeouts.append((self._monotonic + seconds, timeout))
        return timeout

    async def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass, waking whatever falls due on the way."""
        await self._settle()
        end = self._monotonic + seconds
        while (due := self._next_deadline()) is not None and due <= end:
            self._move_to(due)
            self._release()
            await self._settle()
        self._move_to(end)
        await self._settle()

    def _move_to(self, moment: float) -> None:
        if moment > self._monotonic:
            self._now += timedelta(seconds=moment - self._monotonic)
            self._monotonic = moment

    def _next_deadline(self) -> float | None:
        return min((deadline for deadline, _ in (*self._sleepers, *self._timeouts)), default=None)

    def _release(self) -> None:
        loop = asyncio.get_running_loop()
        for deadline, future in list(self._sleepers):
            if deadline <= self._monotonic:
                self._sleepers.remove((deadline, future))
                if not future.done():
                    future.set_result(None)
        for deadline, timeout in list(self._timeouts):
            if deadline <= self._monotonic:
                self._timeouts.remove((deadline, timeout))
                try:
                    timeout.reschedule(loop.time())
                except RuntimeError:  # its block has ended already
                    continue

    @staticmethod
    async def _settle() -> None:
        for _ in range(50):
            await asyncio.sleep(0)
