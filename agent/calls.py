"""Runs the calls of one assistant message: all begin together, they run and are recorded in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

import structlog

from agent.control.exceptions import ControlError
from agent.events import ToolState
from agent.exceptions import AgentError, ToolArgumentsInvalid
from agent.history import INTERRUPTED
from agent.models.base import ToolCall
from agent.tools.arguments import parse_arguments
from agent.tools.registry import Invocation, Tool, ToolResult
from agent.turn_context import TurnContext

_log = structlog.get_logger(__name__)

#: Longest result handed to the model, in characters; every tool of ours bounds its own below that.
MAX_RESULT_CHARS = 262_144
_LIST_CHARS = 1_000

#: Records one answer; returns after its commit.
Record = Callable[[ToolCall, ToolResult], Awaitable[None]]


async def run_calls(ctx: TurnContext, calls: Iterable[ToolCall], record: Record, *, resumed: bool = False) -> None:
    """Take all ``calls`` to their end and ``record`` each result, in order, before the next call starts.

    A handler that is gated starts at once, so that its card goes out with the others, and waits for its turn itself;
    the others are called one after the other. What goes wrong in a handler becomes a result for the model.

    Args:
        ctx: the turn.
        calls: of one assistant message, in its order.
        record: makes one answer durable.
        resumed: the first of these calls may have been running when the daemon died.

    Raises:
        Exception: what ``record`` raised; the calls that have not ended are cancelled then.
    """
    try:
        async with asyncio.TaskGroup() as group:
            before: asyncio.Event | None = None
            for call in calls:
                running = _Running(ctx, call, record, before, in_doubt=resumed and before is None)
                group.create_task(running.run(), name=f"call {call.name[:64]} {call.id}")
                before = running.ended
    except ExceptionGroup as group_error:
        # One record failed and the rest were cancelled for it: the caller wants that error, not its wrapping.
        raise _first(group_error) from group_error


@dataclass(slots=True)
class _Running:
    """One call and its place in the line.

    Attributes:
        before: set when the call before this one is recorded; None for the first.
        in_doubt: it may have been running when the daemon died.
    """

    ctx: TurnContext
    call: ToolCall
    record: Record
    before: asyncio.Event | None
    in_doubt: bool
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    started: bool = False

    async def run(self) -> None:
        try:
            result = await self._result()
        finally:
            if self.started:
                self.ctx.activity.touch("tool end")
                self.ctx.events.tool(self.call.name, ToolState.END)
        await self._place()
        await self.record(self.call, _bounded(result))
        self.ended.set()

    async def my_turn(self) -> None:
        await self._place()
        if not self.started:
            self.started = True
            self.ctx.activity.touch("tool start")
            self.ctx.events.tool(self.call.name, ToolState.START)

    async def _place(self) -> None:
        if self.before is not None:
            await self.before.wait()

    async def _result(self) -> ToolResult:
        tool = self.ctx.tools.get(self.call.name)
        if tool is None:
            return self._unknown()
        if self.in_doubt and not (tool.gated or tool.repeatable):
            return ToolResult(INTERRUPTED, ok=False)
        try:
            return await self._handle(tool)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Something that the handler awaited was cancelled, not this call: a failure like any other.
            return ToolResult(f"{self.call.name} was stopped before it was done.", ok=False)
        except ToolArgumentsInvalid as error:
            return ToolResult(str(error), ok=False)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is told to the model and logged
            _log.warning("tool_failed", tool=self.call.name, request_id=self.call.id, exc_info=True)
            return ToolResult(_failure(self.call.name, error), ok=False)

    async def _handle(self, tool: Tool) -> ToolResult:
        invocation = Invocation(
            request_id=self.call.id,
            caller=self.ctx.caller,
            arguments=parse_arguments(tool, self.call.arguments),
            activity=self.ctx.activity,
            my_turn=self.my_turn,
        )
        if tool.gated:
            return await tool.handler(invocation)
        await self.my_turn()
        limit = self.ctx.limits.tool_s
        with self.ctx.activity.lease("tool", limit):
            async with self.ctx.clock.timeout(limit):
                return await tool.handler(invocation)

    def _unknown(self) -> ToolResult:
        names = ", ".join(tool.spec.name for tool in self.ctx.tools) or "none"
        return ToolResult(f"There is no tool {self.call.name[:64]!r}. The tools are: {names[:_LIST_CHARS]}.", ok=False)


def _failure(name: str, error: Exception) -> str:
    """What the model is told: our own errors are written for reading, others may hold anything and stay in the log."""
    if isinstance(error, AgentError | ControlError):
        return f"{name} failed: {error}"
    if isinstance(error, TimeoutError):
        return f"{name} took too long and was stopped. Check what is there before you repeat this."
    return f"{name} failed with an internal error ({type(error).__name__}). The details are in the log."


def _bounded(result: ToolResult) -> ToolResult:
    if len(result.text) <= MAX_RESULT_CHARS:
        return result
    half = MAX_RESULT_CHARS // 2
    left_out = len(result.text) - 2 * half
    return ToolResult(
        f"{result.text[:half]}\n[... {left_out} characters left out ...]\n{result.text[-half:]}", result.ok
    )


def _first(group: ExceptionGroup[Exception]) -> Exception:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first
