"""The registry: what can be called, with which arguments, by which handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from agent.control.ports import Activity, Caller
from agent.models.base import ToolSpec


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a handler gives back; ``text`` goes to the model."""

    text: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call on its way to a handler.

    Attributes:
        request_id: the call's id; unique and stable over restarts.
        arguments: the parsed JSON object, already checked against the schema.
        my_turn: returns when every earlier call of the same assistant message has ended. A gated handler awaits it
            after the approval and before the start; for all others the loop has done so already.
    """

    request_id: str
    caller: Caller
    arguments: Mapping[str, Any]
    activity: Activity
    my_turn: Callable[[], Awaitable[None]]


Handler = Callable[[Invocation], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and its handler.

    Attributes:
        gated: the handler asks people first and waits for its place in the order itself, so that the cards of all calls
            of one message go out at once.
        arguments: the type that arguments must decode into, see :mod:`agent.tools.arguments`. None: only that they are
            an object is checked, and whoever the handler passes them to judges the rest.
        repeatable: after a restart the handler of a call that may have been running is called again, because it only
            reads or keeps a record of its own by request id. Else such a call is answered "outcome unknown". A gated
            one is always called again: the gate keeps the record.
    """

    spec: ToolSpec
    handler: Handler
    gated: bool = False
    arguments: type[msgspec.Struct] | None = None
    repeatable: bool = False


class Registry:
    """Tools by name; a child gets a narrowed copy, never a wider one."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.spec.name in self._tools:
                raise ValueError(f"tool {tool.spec.name!r} is registered twice")
            self._tools[tool.spec.name] = tool

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is shown, in order of registration."""
        return tuple(tool.spec for tool in self)

    def without(self, names: Iterable[str]) -> Registry:
        """A copy that lacks ``names``."""
        blocked = frozenset(names)
        return Registry(tool for tool in self if tool.spec.name not in blocked)
