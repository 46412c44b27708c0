"""Finishing what must be finished although the awaiting task is being cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T], *, name: str) -> T:
    """Run ``work`` to its end whatever happens to the awaiting task, then let a cancellation through.

    The last record of a run is written this way: a process that was killed because its turn was cancelled must not be
    missing from the audit because of that very cancellation.
    """
    task = asyncio.create_task(work, name=name)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except BaseException:
            if cancelled is None:
                raise
    if cancelled is not None:
        if task.exception() is not None:
            raise cancelled from task.exception()
        raise cancelled
    return task.result()
