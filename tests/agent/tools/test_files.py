from __future__ import annotations

import json

import pytest

from agent.control.request import CommandResult, CommandStatus
from agent.control.testing import RecordingActivity
from agent.exceptions import ToolArgumentsInvalid
from agent.testing import FakeGate, ran
from agent.tools.arguments import parse_arguments
from agent.tools.files import file_tools
from agent.tools.registry import Invocation, ToolResult
from tests.agent.turns import CALLER


async def at_once() -> None:
    """My turn has come."""


async def call(gate: FakeGate, name: str, **arguments: object) -> ToolResult:
    tool = next(tool for tool in file_tools(gate) if tool.spec.name == name)
    parsed = parse_arguments(tool, json.dumps(arguments))
    return await tool.handler(Invocation("call_1", CALLER, parsed, RecordingActivity(), at_once))


@pytest.mark.parametrize(
    ("name", "arguments", "command", "timeout_ms"),
    [
        ("read_file", {"path": "a.txt"}, "files:read", 10_000),
        ("read_file", {"path": "a.txt", "offset": 3, "limit": 5}, "files:read", 10_000),
        ("write_file", {"path": "a.txt", "content": ""}, "files:write", 60_000),
        ("list_files", {}, "files:list", 10_000),
        ("list_files", {"path": "/workspace/b"}, "files:list", 10_000),
    ],
)
async def test_what_the_gate_gets(name: str, arguments: dict[str, object], command: str, timeout_ms: int) -> None:
    gate = FakeGate()
    assert await call(gate, name, **arguments) == ToolResult(f"did {command}")
    (request,) = gate.asked
    assert (request.command, request.args, request.timeout_ms) == (command, arguments, timeout_ms)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {}),
        ("read_file", {"path": ""}),
        ("read_file", {"path": "a", "offset": 0}),
        ("read_file", {"path": "a", "limit": 0}),
        ("read_file", {"path": "x" * 5_000}),
        ("write_file", {"path": "a"}),
        ("write_file", {"path": "a", "content": "x" * 300_000}),
        ("write_file", {"path": "a", "content": None}),
        ("list_files", {"path": 1}),
        ("list_files", {"folder": "a"}),
    ],
)
async def test_what_does_not_fit(name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ToolArgumentsInvalid, match=f"{name} was not run"):
        await call(FakeGate(), name, **arguments)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ran("text\n"), ToolResult("text\n")),
        (ran(""), ToolResult("(empty)")),
        (ran("no such file", 1), ToolResult("no such file", ok=False)),
        (ran("", 2), ToolResult("It did not work: exit status 2.", ok=False)),
        (CommandResult(CommandStatus.REFUSED, "outside"), ToolResult("outside", ok=False)),
        (CommandResult(CommandStatus.UNAVAILABLE, ""), ToolResult("It did not work: unavailable.", ok=False)),
    ],
)
async def test_what_the_model_is_told(result: CommandResult, expected: ToolResult) -> None:
    assert await call(FakeGate(lambda _: result), "read_file", path="a") == expected


def test_the_gate_keeps_their_order_and_records() -> None:
    assert all(tool.gated for tool in file_tools(FakeGate()))
