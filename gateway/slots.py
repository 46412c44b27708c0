"""Places for running turns: a turn that only waits for people gives its place to another."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass
class _Place:
    """What one turn holds; the lock lets only one of its calls ask for the place again."""

    held: bool = True
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Slots:
    """At most ``limit`` turns work at the same time; fulfils :class:`gateway.approvals.Slots`.

    The limit is about turns, not about processes (sandboxes have their own): a turn of which one call runs while
    another waits for a person may be without a place for that time.
    """

    def __init__(self, limit: int) -> None:
        self._free = asyncio.Semaphore(limit)
        self._places: dict[str, _Place] = {}

    @property
    def turns(self) -> int:
        """Turns under way, waiting ones included."""
        return len(self._places)

    async def enter(self, turn: str) -> None:
        """Wait for a place and take it."""
        await self._free.acquire()
        self._places[turn] = _Place()

    def leave(self, turn: str) -> None:
        """Give the place back for good; harmless when none is held."""
        place = self._places.pop(turn, None)
        if place is not None and place.held:
            self._free.release()

    def waiting(self, turn: str) -> None:
        """A call of the turn waits for a person, or only such calls are left: the place goes to somebody else."""
        place = self._places.get(turn)
        if place is not None and place.held:
            place.held = False
            self._free.release()

    async def going_on(self, turn: str) -> None:
        """A wait of the turn is over; return when it has a place again."""
        place = self._places.get(turn)
        if place is None:
            return
        async with place.lock:
            if place.held:
                return
            await self._free.acquire()
            if self._places.get(turn) is place:
                place.held = True
            else:
                self._free.release()
