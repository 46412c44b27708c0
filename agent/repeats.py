"""Notices a model that turns in a circle: the same call with the same result, step after step."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agent.models.base import AssistantMessage, Message, ToolCall, ToolMessage

#: From this step in a row on, the answer to the call tells the model.
TELL_AT = 3
#: At this step in a row the turn ends.
END_AT = 5

NOTE = (
    "\n\n[This call has given this same result several times in a row. Repeating it will not change that: do something "
    "else, or tell the person what stands in the way.]"
)


class Repeats:
    """Counts, for each call of a step, in how many steps in a row it came with the same arguments and result.

    Equal calls within one message count once: the model had not seen their results when it wrote them.
    """

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], tuple[str, int]] = {}
        self._now: dict[tuple[str, str], tuple[str, int]] = {}

    def replay(self, turn: Iterable[Message]) -> None:
        """Take up what the running turn has done before a restart."""
        calls: dict[str, ToolCall] = {}
        for message in turn:
            if isinstance(message, AssistantMessage):
                self.next_step()
                calls = {call.id: call for call in message.calls}
            elif isinstance(message, ToolMessage) and message.call_id in calls:
                self.noted(calls[message.call_id], message.text.removesuffix(NOTE))

    def next_step(self) -> None:
        """Another assistant message with calls begins."""
        self._before, self._now = self._now, {}

    def noted(self, call: ToolCall, result: str) -> str:
        """Count one result; gives it back, with :data:`NOTE` where the model must be told."""
        key = (call.name, _canonical(call.arguments))
        known = self._now.get(key)
        if known is None or known[0] != result:
            same = self._before.get(key)
            known = (result, same[1] + 1 if same is not None and same[0] == result else 1)
            self._now[key] = known
        return result + NOTE if known[1] >= TELL_AT else result

    @property
    def count(self) -> int:
        """In how many steps in a row the calls of this one have come at least."""
        return min((count for _, count in self._now.values()), default=0)

    @property
    def stuck(self) -> bool:
        """Whether every call of this step has come :data:`END_AT` times in a row with the same result."""
        return self.count >= END_AT


def _canonical(arguments: str) -> str:
    """Equal for equal JSON, whatever its spaces and the order of its keys."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted").decode()
    except (ValueError, RecursionError):
        return arguments
