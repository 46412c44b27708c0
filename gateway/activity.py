"""Signs of life of one session: what the watchdog judges by."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from agent.control.clock import Clock
from agent.exceptions import ModelTooSlow

#: Leases that are no work: a turn that holds nothing else takes no place and is not waited for at a stop.
WAITS = frozenset({"approval", "question", "slot", "backoff"})


@dataclass(frozen=True, slots=True)
class OpenLease:
    """A wait with a limit of its own.

    Attributes:
        until: monotonic time after which it no longer protects; None where the wait's own record has the deadline.
    """

    kind: str
    since: float
    until: float | None


class Pulse:
    """Last activity and open leases of a session's running turn."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_activity_ts = clock.monotonic()
        self._reason = "created"
        self._leases: dict[int, OpenLease] = {}
        self._numbers = itertools.count()

    @property
    def reason(self) -> str:
        """What the last sign of life was."""
        return self._reason

    def touch(self, reason: str) -> None:
        """Real progress happened now."""
        self._last_activity_ts = self._clock.monotonic()
        self._reason = reason

    def idle_s(self) -> float:
        """Seconds without a sign of life; 0 while a lease is open and inside its limit."""
        now = self._clock.monotonic()
        if any(lease.until is None or now <= lease.until for lease in self._leases.values()):
            return 0.0
        return now - self._last_activity_ts

    def only_waits(self) -> bool:
        """Whether everything that goes on now is waiting for people or for a place."""
        return bool(self._leases) and all(lease.kind in WAITS for lease in self._leases.values())

    def open(self, kind: str, limit_s: float | None) -> int:
        """Open a lease; give its number to :meth:`close`."""
        now = self._clock.monotonic()
        number = next(self._numbers)
        self._leases[number] = OpenLease(kind, now, None if limit_s is None else now + limit_s)
        return number

    def close(self, number: int) -> float:
        """Close a lease; how long it was open, in seconds.

        If it was inside its limit the wait counts as activity until now; an overrun one only until its limit.
        """
        lease = self._leases.pop(number)
        now = self._clock.monotonic()
        end = now if lease.until is None else min(now, lease.until)
        if end > self._last_activity_ts:
            self._last_activity_ts = end
            self._reason = f"{lease.kind} ended"
        return now - lease.since


class StageObserver(Protocol):
    """Told how long the model took, and when it ran into a limit."""

    def stage(self, stage: str, seconds: float) -> None:
        """A stage has ended."""
        ...

    def stage_timed_out(self, stage: str) -> None:
        """A stage has run into its limit."""
        ...


class TurnActivity:
    """A turn's handle on its session's pulse; void once :meth:`end` was called.

    Args:
        pulse: of the session.
        observer: told about the model's stages.
        waits_only: called when work ends while other calls of the turn go on waiting.
    """

    def __init__(
        self, pulse: Pulse, observer: StageObserver | None = None, waits_only: Callable[[], None] = lambda: None
    ) -> None:
        self._pulse: Pulse | None = pulse
        self._observer = observer
        self._waits_only = waits_only

    def touch(self, reason: str) -> None:
        """See :class:`agent.control.ports.Activity`."""
        if self._pulse is not None:
            self._pulse.touch(reason)

    @contextmanager
    def lease(self, kind: str, limit_s: float | None) -> Iterator[None]:
        """See :class:`agent.control.ports.Activity`."""
        pulse = self._pulse
        if pulse is None:
            yield
            return
        number = pulse.open(kind, limit_s)
        try:
            yield
        except ModelTooSlow:
            if self._observer is not None:
                self._observer.stage_timed_out(kind)
            raise
        finally:
            seconds = pulse.close(number)
            if kind not in WAITS and pulse.only_waits():
                self._waits_only()
            if self._observer is not None and kind == "model":
                self._observer.stage(kind, seconds)

    def end(self) -> None:
        """The turn is over; nothing that it left behind keeps the session alive."""
        self._pulse = None
