"""In-memory twins of what surrounds a turn, for tests of the loop and of whatever is built on it.

They keep the promises of the protocols that they stand for: a journal that refuses a wrong order of writes, a gate that
remembers what it started, a model that plays a script.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from agent.control.clock import Clock, SystemClock
from agent.control.ports import Activity, Caller
from agent.control.request import CommandRequest, CommandResult, CommandStatus
from agent.events import ToolState
from agent.models.base import (
    AssistantMessage,
    Done,
    Message,
    ModelEvent,
    ModelRequest,
    StopReason,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
)

__all__ = ["HANG", "FakeGate", "MemoryJournal", "Pause", "RecordingSink", "ScriptedModel", "calls"]


class MemoryJournal:
    """The journal as a list.

    Args:
        messages: what is there already.
        on_write: called with each message after it has been kept; may raise to fail the write's caller.
    """

    def __init__(self, messages: Iterable[Message] = (), *, on_write: Callable[[Message], None] | None = None) -> None:
        self.messages = list(messages)
        self._on_write = on_write

    async def history(self) -> list[Message]:
        """All messages, as they were written."""
        await asyncio.sleep(0)
        return list(self.messages)

    async def assistant(self, message: AssistantMessage) -> None:
        """Keep a message with calls; refuses an id that was there before."""
        known = {call.id for kept in self.messages if isinstance(kept, AssistantMessage) for call in kept.calls}
        for call in message.calls:
            if call.id in known:
                raise ValueError(f"call id {call.id} is not unique")
        await self._write(message)

    async def tool_result(self, message: ToolMessage) -> None:
        """Keep an answer; refuses a second one, and one to a call that was never written."""
        calls_made = {call.id for kept in self.messages if isinstance(kept, AssistantMessage) for call in kept.calls}
        answered = {kept.call_id for kept in self.messages if isinstance(kept, ToolMessage)}
        if message.call_id not in calls_made or message.call_id in answered:
            raise ValueError(f"{message.call_id} is not a call that waits for its answer")
        await self._write(message)

    async def user(self, text: str) -> None:
        """Keep a user message."""
        await self._write(UserMessage(text))

    async def _write(self, message: Message) -> None:
        await asyncio.sleep(0)
        self.messages.append(message)
        if self._on_write is not None:
            self._on_write(message)
        await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Pause:
    """In a script: nothing comes for so long."""

    seconds: float


#: In a script: nothing comes any more.
HANG = Pause(float("inf"))

#: What a script is made of. A text is a whole answer; a message is given as it stands; a sequence is played event by
#: event and ends without :class:`Done` unless it holds one; a function sees the request first.
Step = (
    str
    | AssistantMessage
    | Sequence["ModelEvent | Pause | Exception"]
    | Callable[[ModelRequest], "str | AssistantMessage | Sequence[ModelEvent | Pause | Exception]"]
)


def calls(*wanted: tuple[str, str], text: str = "") -> AssistantMessage:
    """An assistant message with calls, each given as name and raw arguments."""
    return AssistantMessage(
        text, tuple(ToolCall(f"model_{number}", name, raw) for number, (name, raw) in enumerate(wanted))
    )


class ScriptedModel:
    """A model that plays its steps in order, the last one for ever; requests are kept in :attr:`requests`."""

    name = "scripted"

    def __init__(self, *steps: Step, clock: Clock | None = None) -> None:
        if not steps:
            raise ValueError("a script needs at least one step")
        self._steps = steps
        self._clock = clock or SystemClock()
        self.requests: list[ModelRequest] = []
        self.open_streams = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Play the next step."""
        step = self._steps[min(len(self.requests), len(self._steps) - 1)]
        self.requests.append(request)
        self.open_streams += 1
        try:
            for event in _events(step(request) if callable(step) else step):
                if isinstance(event, Exception):
                    raise event
                if event is HANG:
                    await asyncio.Event().wait()
                elif isinstance(event, Pause):
                    await self._clock.sleep(event.seconds)
                else:
                    await asyncio.sleep(0)
                    yield event
        finally:
            self.open_streams -= 1


def _events(
    step: str | AssistantMessage | Sequence[ModelEvent | Pause | Exception],
) -> Sequence[ModelEvent | Pause | Exception]:
    if isinstance(step, str):
        step = AssistantMessage(step)
    if not isinstance(step, AssistantMessage):
        return step
    deltas = [TextDelta(word) for word in step.text.splitlines(keepends=True)]
    return [*deltas, Done(step, StopReason.TOOL_CALLS if step.calls else StopReason.END)]


@dataclass(slots=True)
class RecordingSink:
    """Keeps what a turn tells its surroundings."""

    deltas: list[str] = field(default_factory=list)
    tools: list[tuple[str, ToolState]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def delta(self, text: str) -> None:
        """Keep a piece of the answer."""
        self.deltas.append(text)

    def tool(self, name: str, state: ToolState) -> None:
        """Keep the start or end of a call."""
        self.tools.append((name, state))

    def progress(self, text: str) -> None:
        """Keep a line of progress."""
        self.lines.append(text)


def ran(text: str = "", exit_code: int = 0) -> CommandResult:
    """The result of a command that ran to its end."""
    return CommandResult(CommandStatus.RAN, text, exit_code)


class FakeGate:
    """A gate with the memory of the real one and nothing behind it.

    Args:
        answer: what a command gives when it runs.
        judge: None lets a request run; a status ends it unrun; a future is a card that waits for one of the two.
        on_step: called after each durable step with its name (``started`` or ``ended``) and the request id.

    Attributes:
        asked: every request that came, in order.
        starts: ids in the order in which they started; an id can be here only once.
    """

    def __init__(
        self,
        answer: Callable[[CommandRequest], CommandResult] = lambda request: ran(f"did {request.command}"),
        *,
        judge: Callable[[CommandRequest], CommandStatus | Awaitable[CommandStatus | None] | None] = lambda _: None,
        on_step: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self._answer = answer
        self._judge = judge
        self._on_step = on_step
        self.asked: list[CommandRequest] = []
        self.starts: list[str] = []
        self.results: dict[str, CommandResult] = {}

    def survivor(self, *, on_step: Callable[[str, str], None] = lambda *_: None) -> FakeGate:
        """A gate with the same records, as after a restart."""
        gate = FakeGate(self._answer, judge=self._judge, on_step=on_step)
        gate.starts = list(self.starts)
        gate.results = dict(self.results)
        return gate

    async def run(
        self,
        request: CommandRequest,
        caller: Caller,  # noqa: ARG002 - part of the protocol
        activity: Activity,
        before_start: Callable[[], Awaitable[None]],
    ) -> CommandResult:
        """Take the request to its end, as :class:`agent.control.gate.Gate` says."""
        self.asked.append(request)
        if request.request_id in self.results:
            return self.results[request.request_id]
        if request.request_id in self.starts:
            return self._end(request, CommandResult(CommandStatus.UNKNOWN, "Outcome unknown, check before repeating."))
        try:
            verdict = self._judge(request)
            if verdict is not None and not isinstance(verdict, CommandStatus):
                with activity.lease("approval", None):
                    verdict = await verdict
            if verdict is not None:
                return self._end(request, CommandResult(verdict, f"Not run: {verdict.value}."))
            await before_start()
            self.starts.append(request.request_id)
            self._on_step("started", request.request_id)
            with activity.lease("tool", request.timeout_ms / 1_000):
                await asyncio.sleep(0)
            return self._end(request, self._answer(request))
        except asyncio.CancelledError:
            self.results.setdefault(request.request_id, CommandResult(CommandStatus.CANCELLED, "Cancelled."))
            raise

    def _end(self, request: CommandRequest, result: CommandResult) -> CommandResult:
        self.results[request.request_id] = result
        self._on_step("ended", request.request_id)
        return result
