"""Errors of the mind.

::

    AgentError
    +-- ModelError            the model gave no usable answer
    |   +-- ModelTooSlow      a limit of its request ran out
    |   |   +-- ModelSilent   no event for longer than the limit
    |   +-- ModelCut          the stream ended before its end
    +-- ToolArgumentsInvalid  the arguments of a tool call do not fit
"""

from __future__ import annotations


class AgentError(Exception):
    """Root of this package's errors."""


class ModelError(AgentError):
    """The model gave no usable answer.

    Attributes:
        person: what the person in the chat is told; short, plain, says what to do.
    """

    def __init__(self, message: str, *, person: str) -> None:
        super().__init__(message)
        self.person = person


class ModelTooSlow(ModelError):
    """A limit of the request ran out."""


class ModelSilent(ModelTooSlow):
    """No event came for longer than the limit."""


class ModelCut(ModelError):
    """The stream ended without its closing event."""


class ToolArgumentsInvalid(AgentError):
    """The arguments of a tool call are no JSON object or do not fit the schema; the message is for the model."""
