"""The tools ``read_file``, ``write_file`` and ``list_files``: the workspace's files, through the gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from agent.control.gate import Gate
from agent.control.request import CommandRequest
from agent.tools.arguments import Arguments, tool_of
from agent.tools.outcomes import file_result
from agent.tools.registry import Handler, Invocation, Tool, ToolResult

#: Longest content of one write, in characters.
MAX_CONTENT_CHARS = 262_144

_Path = Annotated[
    str,
    msgspec.Meta(
        min_length=1, max_length=4_096, description="Path in the workspace; relative ones start at /workspace."
    ),
]


class ReadArguments(Arguments, frozen=True):
    """What ``read_file`` takes."""

    path: _Path
    offset: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000, description="First line, counted from 1.")] | None = (
        None
    )
    limit: Annotated[int, msgspec.Meta(ge=1, le=100_000, description="Number of lines.")] | None = None


class WriteArguments(Arguments, frozen=True):
    """What ``write_file`` takes."""

    path: _Path
    content: Annotated[str, msgspec.Meta(max_length=MAX_CONTENT_CHARS, description="The whole new content.")]


class ListArguments(Arguments, frozen=True):
    """What ``list_files`` takes."""

    path: _Path | None = None


def file_tools(gate: Gate, *, read_s: float = 10, write_s: float = 60) -> tuple[Tool, ...]:
    """The three tools.

    They show no card, but the gate keeps their records and their order, so that a write after an approved command waits
    for it, and a restart does not write twice.

    Args:
        gate: the way to the system.
        read_s: limit of reading and listing.
        write_s: limit of writing.
    """
    return (
        tool_of(
            "read_file",
            "Read a text file of the workspace, or some of its lines. Long content is cut in the middle: read on with "
            "offset and limit.",
            ReadArguments,
            _handler(gate, "files:read", read_s),
            gated=True,
        ),
        tool_of(
            "write_file",
            "Write a text file in the workspace; what was there is replaced, missing folders are made.",
            WriteArguments,
            _handler(gate, "files:write", write_s),
            gated=True,
        ),
        tool_of(
            "list_files",
            "List a folder of the workspace (default: the workspace itself).",
            ListArguments,
            _handler(gate, "files:list", read_s),
            gated=True,
        ),
    )


def _handler(gate: Gate, command: str, limit_s: float) -> Handler:
    async def handle(invocation: Invocation) -> ToolResult:
        request = CommandRequest(
            request_id=invocation.request_id,
            intent="",
            command=command,
            args=_given(invocation.arguments),
            timeout_ms=round(limit_s * 1_000),
        )
        return file_result(await gate.run(request, invocation.caller, invocation.activity, invocation.my_turn))

    return handle


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}
