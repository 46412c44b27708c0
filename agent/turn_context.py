"""Everything one turn works with, handed over as one explicit object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent.budget import IterationBudget
from agent.control.clock import Clock
from agent.control.ports import Activity, Caller
from agent.events import EventSink
from agent.models.base import AssistantMessage, Message, Model, ToolMessage
from agent.tools.registry import Registry


class Journal(Protocol):
    """The durable record of a session's conversation; each write returns after its commit."""

    async def history(self) -> list[Message]:
        """All messages that count for this session, oldest first, the running turn's included.

        Calls of the last assistant message may be unanswered: the turn was interrupted there and goes on.
        """
        ...

    async def assistant(self, message: AssistantMessage) -> None:
        """Record a message with tool calls, before any of them runs. Call ids are unique."""
        ...

    async def tool_result(self, message: ToolMessage) -> None:
        """Record the answer to one call, before the next step."""
        ...

    async def user(self, text: str) -> None:
        """Record a user message that entered while the turn was running."""
        ...


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Numbers of one turn.

    Attributes:
        model_silence_s: longest wait for the next event of a stream.
        model_request_s: longest model request in all.
        tool_s: longest a tool may hold its lease (its own limits are below that).
    """

    model_silence_s: float = 45.0
    model_request_s: float = 600.0
    tool_s: float = 1_260.0
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TurnContext:
    """Handed to :func:`agent.loop.run_conversation`; nothing about a turn travels any other way."""

    caller: Caller
    journal: Journal
    activity: Activity
    events: EventSink
    model: Model
    tools: Registry
    budget: IterationBudget
    clock: Clock
    limits: TurnLimits
    system: str


@dataclass(frozen=True, slots=True)
class Answer:
    """How a conversation turn ended.

    Attributes:
        failed: the text explains an error instead of answering.
    """

    text: str
    failed: bool = False
