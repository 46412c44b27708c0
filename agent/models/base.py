"""The model protocol: messages in, a stream of events out."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

#: Most calls of one message; each may become a card that a person has to read. Of a message with more, none is run.
MAX_CALLS = 32


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it.

    Attributes:
        id: unique in the session's history; assigned by us, whatever the model called it.
        arguments: the raw JSON text; not yet parsed, may be malformed.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person (or the gateway on their behalf) said."""

    text: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What the model said and which tools it wants called, in order."""

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The answer to one call.

    Attributes:
        ok: False where the call failed, was refused or denied.
    """

    call_id: str
    name: str
    text: str
    ok: bool = True


Message = UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it.

    Attributes:
        parameters: JSON Schema of an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything a model needs for one step. The history is valid: each call answered once, in order."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None


class StopReason(enum.Enum):
    """Why the model stopped."""

    END = "end"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of visible text."""

    text: str


@dataclass(frozen=True, slots=True)
class Working:
    """The model is alive but has nothing to show (thinking, tool arguments streaming)."""


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a stream; a stream without it was cut.

    Attributes:
        message: the whole message. Call ids are the model's own; the loop replaces them.
    """

    message: AssistantMessage
    stop: StopReason
    input_tokens: int = 0
    output_tokens: int = 0


ModelEvent = TextDelta | Working | Done


class Model(Protocol):
    """A language model."""

    name: str

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Answer ``request``; the last event is :class:`Done`.

        Raises (while iterating):
            agent.exceptions.ModelError: with a sentence for the person.
        """
        ...
