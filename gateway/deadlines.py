"""Deadlines that hold on two clocks: whichever says first that the time is over."""

from __future__ import annotations

import asyncio
from datetime import datetime

from agent.control.clock import Clock

#: The wall clock may be set forward while we sleep on the monotonic one; looked at this often while anything is open.
LOOK_EVERY_S = 15.0


class Deadlines:
    """Open deadlines by id; one task waits for all of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, tuple[float, datetime]] = {}
        self._changed = asyncio.Event()

    def add(self, key: str, at: datetime) -> None:
        """Arm ``key``: it ends at the UTC time ``at``, or when the time left until then has passed monotonically."""
        left = (at - self._clock.now()).total_seconds()
        self._open.setdefault(key, (self._clock.monotonic() + left, at))
        self._changed.set()

    def drop(self, key: str) -> None:
        """Disarm ``key``; unknown ones are ignored."""
        self._open.pop(key, None)

    async def due(self) -> list[str]:
        """Wait until something is due, take it out and return it, the earliest first."""
        while True:
            self._changed.clear()
            monotonic, now = self._clock.monotonic(), self._clock.now()
            over = sorted(
                (deadline, key) for key, (deadline, at) in self._open.items() if deadline <= monotonic or at <= now
            )
            if over:
                for _, key in over:
                    del self._open[key]
                return [key for _, key in over]
            await self._until_next(monotonic)

    async def _until_next(self, monotonic: float) -> None:
        if not self._open:
            await self._changed.wait()
            return
        left = min(deadline for deadline, _ in self._open.values()) - monotonic
        try:
            async with self._clock.timeout(min(max(left, 0.0), LOOK_EVERY_S)):
                await self._changed.wait()
        except TimeoutError:
            return
