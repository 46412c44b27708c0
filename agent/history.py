"""A history that every model accepts: each call answered once, in order, nothing malformed.

Pure functions. The journal keeps what was said as it was said; what the model is handed goes through :func:`repair`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import msgspec

from agent.models.base import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

#: Stands in for the answer that a call never got, because its turn was cancelled or the daemon died under it.
INTERRUPTED = "Interrupted: the outcome is unknown. Check what is there before you repeat this."

#: Providers refuse a whole request over one function name outside this set and length.
_NAME_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS = 64


def clean_text(text: str) -> str:
    """The text with lone surrogates, which no encoder takes, made into U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def validate(messages: Sequence[Message]) -> list[str]:
    """What is wrong with a history, one sentence each; empty when a model may see it."""
    problems: list[str] = []
    due: deque[ToolCall] = deque()
    seen: set[str] = set()
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if not due or due[0].id != message.call_id:
                problems.append(f"message {position} answers {message.call_id!r}, which is not due")
            else:
                due.popleft()
        else:
            problems += [f"call {call.id!r} is not answered before message {position}" for call in due]
            due.clear()
        if isinstance(message, AssistantMessage):
            for call in message.calls:
                if not call.id or call.id in seen:
                    problems.append(f"call id {call.id!r} of message {position} is not unique")
                seen.add(call.id)
                due.append(call)
        if _cleaned(message) != message:
            problems.append(f"message {position} is malformed")
    return problems + [f"call {call.id!r} is never answered" for call in due]


def repair(messages: Iterable[Message]) -> list[Message]:
    """The same history, valid.

    A call without an answer gets :data:`INTERRUPTED`; answers stand right behind their calls, in their order; answers
    without a call and second answers are dropped, empty messages too; ids become unique; arguments that are no JSON
    object become ``{}`` (the answer to such a call quotes what was wrong). What people said is kept in order.
    """
    history = list(messages)
    answers: dict[str, deque[tuple[int, ToolMessage]]] = {}
    for position, message in enumerate(history):
        if isinstance(message, ToolMessage):
            answers.setdefault(message.call_id, deque()).append((position, message))
    taken: set[str] = set()
    valid: list[Message] = []
    for position, message in enumerate(history):
        if isinstance(message, ToolMessage) or _is_empty(message):
            continue
        cleaned = _cleaned(message)
        if not isinstance(cleaned, AssistantMessage) or not cleaned.calls:
            valid.append(cleaned)
            continue
        found = [_answer(answers, call.id, position) for call in cleaned.calls]
        calls = tuple(ToolCall(_unique(call.id, taken), call.name, call.arguments) for call in cleaned.calls)
        valid.append(AssistantMessage(cleaned.text, calls))
        valid += [_bound(call, answer) for call, answer in zip(calls, found, strict=True)]
    return valid


def unanswered(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls at which an interrupted turn stands; empty when a person has spoken since, or all are answered."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            return tuple(call for call in message.calls if call.id not in answered)
        if isinstance(message, UserMessage):
            break
        answered.add(message.call_id)
    return ()


def running_turn(messages: Sequence[Message]) -> list[Message]:
    """What the model and the tools have said since a person last spoke, oldest first."""
    return list(takewhile(lambda message: not isinstance(message, UserMessage), reversed(messages)))[::-1]


def is_json_object(text: str) -> bool:
    """Whether ``text`` is one whole JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def _is_empty(message: UserMessage | AssistantMessage) -> bool:
    return not message.text.strip() and not (isinstance(message, AssistantMessage) and message.calls)


def _cleaned(message: Message) -> Message:
    """The message as a model may see it; the same object where nothing is wrong, for a history is long."""
    text = clean_text(message.text)
    if isinstance(message, ToolMessage):
        return ToolMessage(message.call_id, _clean_name(message.name), text, message.ok)
    if isinstance(message, AssistantMessage) and message.calls:
        return AssistantMessage(text, tuple(_cleaned_call(call) for call in message.calls))
    if text is message.text:
        return message
    return AssistantMessage(text) if isinstance(message, AssistantMessage) else UserMessage(text)


def _cleaned_call(call: ToolCall) -> ToolCall:
    arguments = call.arguments if is_json_object(call.arguments) else "{}"
    return ToolCall(call.id, _clean_name(call.name), arguments)


def _clean_name(name: str) -> str:
    return _NAME_REFUSED.sub("_", name)[:_NAME_CHARS] or "unknown"


def _answer(answers: dict[str, deque[tuple[int, ToolMessage]]], call_id: str, position: int) -> ToolMessage | None:
    """The first answer of that id behind ``position`` that no other call has taken."""
    waiting = answers.get(call_id, deque())
    while waiting:
        at, message = waiting.popleft()
        if at > position:
            return message
    return None


def _bound(call: ToolCall, answer: ToolMessage | None) -> ToolMessage:
    if answer is None:
        return ToolMessage(call.id, call.name, INTERRUPTED, ok=False)
    return ToolMessage(call.id, call.name, clean_text(answer.text), answer.ok)


def _unique(call_id: str, taken: set[str]) -> str:
    unique = call_id
    if not call_id or call_id in taken:
        unique = next(name for name in _numbered(call_id or "call") if name not in taken)
    taken.add(unique)
    return unique


def _numbered(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1
