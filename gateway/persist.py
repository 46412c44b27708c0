"""Writing down what has happened already: a store that is locked or full for a while must not make it unknown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from agent.control.clock import Clock
from gateway.store.exceptions import StoreUnavailable, Trouble

T = TypeVar("T")

log = structlog.get_logger(__name__)

#: First and longest pause between two tries, in seconds.
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0


async def until_stored(
    clock: Clock, write: Callable[[], Awaitable[T]], *, what: str, give_up: Callable[[], bool] = lambda: False
) -> T:
    """Await ``write()`` again and again until the store takes it; what it returned.

    Args:
        clock: for the pauses.
        write: makes one try.
        what: for the log.
        give_up: asked after a try that failed; by default the only end is that the caller is cancelled.

    Raises:
        StoreUnavailable: it was given up, or the database is closed.
    """
    pause = FIRST_PAUSE_S
    while True:
        try:
            return await write()
        except StoreUnavailable as error:
            log.error("not_stored_yet", what=what, error=str(error))
            if error.trouble is Trouble.CLOSED or give_up():
                raise
        await clock.sleep(pause)
        pause = min(LONGEST_PAUSE_S, pause * 2)
