"""Warns about silent turns, then ends them; only :meth:`gateway.session.Session.idle_s` is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from agent.control.clock import Clock
from gateway.session import Session, StopReason
from gateway.sessions import Sessions
from gateway.store.exceptions import StoreError

log = structlog.get_logger(__name__)

#: Tells a chat something outside of any answer.
Notice = Callable[[str, str], Awaitable[None]]


class Watchdog:
    """One task for all sessions."""

    def __init__(self, *, sessions: Sessions, clock: Clock, notice: Notice, warn_s: float, cancel_s: float) -> None:
        self._sessions = sessions
        self._clock = clock
        self._notice = notice
        self._warn_s = warn_s
        self._cancel_s = cancel_s
        self._every_s = max(0.05, min(15.0, warn_s / 10))
        self._warned: set[str] = set()

    async def run(self) -> None:
        """Watch for as long as the daemon lives."""
        last = self._clock.monotonic()
        while True:
            await self._clock.sleep(self._every_s)
            now = self._clock.monotonic()
            stalled = now - last > self._every_s + self._cancel_s / 2
            last = now
            if stalled:
                # The loop itself stood still: that silence is not the turns' fault. They get a round to show life.
                log.warning("watchdog_skipped_a_stalled_round")
                continue
            await self.look()

    async def look(self) -> None:
        """Judge every running turn once."""
        running: set[str] = set()
        for session in self._sessions.live():
            turn = session.turn
            if turn is None:
                continue
            running.add(turn)
            idle = session.idle_s()
            if idle >= self._cancel_s:
                self._cancel(session, idle)
            elif idle >= self._warn_s and turn not in self._warned and await self._warn(session, idle):
                self._warned.add(turn)
            elif idle < self._warn_s:
                self._warned.discard(turn)
        self._warned &= running

    def _cancel(self, session: Session, idle: float) -> None:
        log.warning("turn_cancelled_for_silence", session=session.key, idle_s=round(idle), last=session.doing())
        session.stop(
            StopReason.WATCHDOG,
            f"I stopped this: nothing happened for {_minutes(idle)} (last: {session.doing()}). "
            "What you said is kept; send it again to retry.",
        )

    async def _warn(self, session: Session, idle: float) -> bool:
        """Tell the chat; False when the store did not take it, so that the next round tries again."""
        log.warning("turn_silent", session=session.key, idle_s=round(idle), last=session.doing())
        left = _minutes(self._cancel_s - idle)
        try:
            await self._notice(
                session.key,
                f"Nothing has happened for {_minutes(idle)} (last: {session.doing()}). "
                f"I will stop in {left}; /stop ends it now.",
            )
        except StoreError as error:
            log.error("warning_not_stored", session=session.key, error=str(error))
            return False
        return True


def _minutes(seconds: float) -> str:
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"
