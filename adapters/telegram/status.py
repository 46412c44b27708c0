"""Whether the platform can be reached, by what was last heard from it."""

from __future__ import annotations

import structlog

from adapters.base import Health
from adapters.telegram.settings import Clock

log = structlog.get_logger(__name__)


class Status:
    """The truth about the connection.

    Args:
        clock: time of the stamps.
        stale_s: without a completed poll for so long the connection counts as dead, whatever it says of itself.
    """

    def __init__(self, clock: Clock, *, stale_s: float) -> None:
        self._clock = clock
        self._stale_s = stale_s
        self._reason = "Telegram was not reached yet."
        self._stamp = clock.monotonic()
        self._watched = False

    def progress(self, *, watched: bool = True) -> None:
        """Something came back; ``watched`` says that more must follow within the limit."""
        if self._reason:
            log.info("telegram_connected")
        self._reason = ""
        self._stamp = self._clock.monotonic()
        self._watched = watched

    def failed(self, reason: str) -> None:
        """The last attempt failed; told once in the log until the reason changes."""
        if reason != self._reason:
            log.warning("telegram_not_ready", reason=reason)
        self._reason = reason

    def stopped(self) -> None:
        """Nothing more is expected."""
        self._reason = "stopped"

    def health(self) -> Health:
        """For ``/readyz``."""
        if self._reason:
            return Health(False, self._reason)
        silent = self._clock.monotonic() - self._stamp
        if self._watched and silent > self._stale_s:
            return Health(False, f"Telegram has not answered a poll for {silent:.0f} s.")
        return Health(True)
