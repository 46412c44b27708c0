"""The one way from a tool handler to the system."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from agent.control.ports import Activity, Caller
from agent.control.request import CommandRequest, CommandResult


class Gate(Protocol):
    """Validates, judges, asks, records and runs a request.

    Fulfilled by :class:`agent.control.pipeline.Pipeline`. Known commands: ``terminal`` (args ``script``,
    optional ``workdir``), ``files:read`` (``path``, optional ``offset`` and ``limit``, lines from 1), ``files:write``
    (``path``, ``content``) and ``files:list`` (optional ``path``).
    """

    async def run(
        self,
        request: CommandRequest,
        caller: Caller,
        activity: Activity,
        before_start: Callable[[], Awaitable[None]],
    ) -> CommandResult:
        """Take ``request`` to its end; never raises for anything that a model or a person did.

        ``before_start`` is awaited between approval and start, so that calls of one message run in order. Calling again
        with the same request id after a restart goes on where the records stand. Cancelling the awaiting task kills
        what runs, cancels what is open, records it, and raises ``CancelledError``.
        """
        ...
