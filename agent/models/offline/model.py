"""The interpreter as a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import takewhile

import msgspec

from agent.models.base import (
    MAX_CALLS,
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
from agent.models.offline import phrases
from agent.models.offline.reading import read_message
from agent.models.offline.words import WORDS, Word


class OfflineModel:
    """Reads the person's last message by its table of words; after tools have run, shows what they gave."""

    name = "offline"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Answer ``request`` as :class:`agent.models.base.Model` says; never fails."""
        message = self._answer(request)
        for piece in phrases.pieces(message.text):
            yield TextDelta(piece)
        yield Done(message, StopReason.TOOL_CALLS if message.calls else StopReason.END)

    def _answer(self, request: ModelRequest) -> AssistantMessage:
        results = _trailing_results(request.messages)
        if results:
            return AssistantMessage(phrases.results_text(_last_calls(request.messages), results))
        shown = {tool.name for tool in request.tools}
        return _interpret(_last_said(request.messages), [word for word in WORDS if word.tool in shown])


def _interpret(text: str, words: Sequence[Word]) -> AssistantMessage:
    chinese = phrases.is_chinese(text)
    reading = read_message(text, words)
    if reading.strange:
        return AssistantMessage(phrases.strange_line(reading.strange, words, chinese=chinese))
    if len(reading.calls) > MAX_CALLS:
        return AssistantMessage(phrases.too_many(MAX_CALLS, chinese=chinese))
    if not reading.calls:
        return AssistantMessage(phrases.help_text(words, chinese=chinese))
    calls = tuple(
        ToolCall(f"offline_{number}", tool, msgspec.json.encode(arguments).decode())
        for number, (tool, arguments) in enumerate(reading.calls, 1)
    )
    return AssistantMessage("", calls)


def _trailing_results(messages: Sequence[Message]) -> list[ToolMessage]:
    tail = takewhile(lambda message: isinstance(message, ToolMessage), reversed(messages))
    return [message for message in tail if isinstance(message, ToolMessage)][::-1]


def _last_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    return next((message.calls for message in reversed(messages) if isinstance(message, AssistantMessage)), ())


def _last_said(messages: Sequence[Message]) -> str:
    return next((message.text for message in reversed(messages) if isinstance(message, UserMessage)), "")
