from __future__ import annotations

import json

import pytest

from agent.control.request import CommandResult, CommandStatus
from agent.control.testing import RecordingActivity
from agent.exceptions import ToolArgumentsInvalid
from agent.testing import FakeGate, ran
from agent.tools.arguments import parse_arguments
from agent.tools.registry import Invocation, Tool, ToolResult
from agent.tools.terminal import MAX_SCRIPT_BYTES, terminal_tool
from tests.agent.turns import CALLER


async def at_once() -> None:
    """My turn has come."""


async def call(tool: Tool, **arguments: object) -> ToolResult:
    parsed = parse_arguments(tool, json.dumps(arguments))
    return await tool.handler(Invocation("call_1", CALLER, parsed, RecordingActivity(), at_once))


class TestRequest:
    async def test_what_the_gate_gets(self) -> None:
        gate = FakeGate()
        await call(terminal_tool(gate), script="ls", intent="see files", workdir="/workspace/a", timeout_s=7)
        (request,) = gate.asked
        assert (request.request_id, request.intent, request.command) == ("call_1", "see files", "terminal")
        assert request.args == {"script": "ls", "workdir": "/workspace/a"}
        assert request.timeout_ms == 7_000

    async def test_what_is_not_given(self) -> None:
        gate = FakeGate()
        await call(terminal_tool(gate), script="ls", workdir="")
        (request,) = gate.asked
        assert (request.args, request.timeout_ms, request.intent) == ({"script": "ls"}, 120_000, "")

    async def test_a_long_intent_is_cut_for_the_audit(self) -> None:
        gate = FakeGate()
        await call(terminal_tool(gate), script="ls", intent="x" * 1_000)
        assert len(gate.asked[0].intent) == 200

    async def test_the_default_limit_is_never_above_the_highest(self) -> None:
        gate = FakeGate()
        await call(terminal_tool(gate, default_timeout_s=120, max_timeout_s=60), script="ls")
        assert gate.asked[0].timeout_ms == 60_000


class TestBounds:
    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"script": ""},
            {"script": "x" * (MAX_SCRIPT_BYTES + 1)},
            {"script": "ls", "timeout_s": 0},
            {"script": "ls", "timeout_s": 61},
            {"script": "ls", "timeout_s": 1.5},
            {"script": "ls", "env": {}},
            {"script": ["ls"]},
        ],
    )
    async def test_what_does_not_fit(self, arguments: dict[str, object]) -> None:
        gate = FakeGate()
        with pytest.raises(ToolArgumentsInvalid):
            await call(terminal_tool(gate, max_timeout_s=60), **arguments)
        assert gate.asked == []

    async def test_the_script_is_bounded_in_bytes(self) -> None:
        gate = FakeGate()
        await call(terminal_tool(gate), script="文" * (MAX_SCRIPT_BYTES // 3))
        with pytest.raises(ToolArgumentsInvalid, match="longer than 65536 bytes"):
            await call(terminal_tool(gate), script="文" * (MAX_SCRIPT_BYTES // 3 + 1))
        assert len(gate.asked) == 1

    def test_the_schema_and_the_description_state_them(self) -> None:
        spec = terminal_tool(FakeGate(), max_timeout_s=900).spec
        assert spec.parameters["properties"]["timeout_s"]["maximum"] == 900
        assert spec.parameters["required"] == ["script"]
        for fact in ("/workspace", "no `cd`", "network", "at most 900", "person"):
            assert fact in spec.description


class TestResult:
    @pytest.mark.parametrize(
        ("result", "text"),
        [
            (ran("hi\n"), "hi"),
            (ran("hi\n", 3), "hi\nexit status 3"),
            (ran("", 3), "exit status 3"),
            (ran(""), "(no output)"),
            (CommandResult(CommandStatus.RAN, "Stopped after 120 s."), "Stopped after 120 s."),
        ],
    )
    async def test_a_command_that_ran(self, result: CommandResult, text: str) -> None:
        assert await call(terminal_tool(FakeGate(lambda _: result)), script="x") == ToolResult(text)

    @pytest.mark.parametrize("status", [status for status in CommandStatus if status is not CommandStatus.RAN])
    async def test_one_that_did_not(self, status: CommandStatus) -> None:
        tool = terminal_tool(FakeGate(judge=lambda _: status))
        assert await call(tool, script="x") == ToolResult(f"Not run: {status.value}.", ok=False)

    async def test_it_is_gated(self) -> None:
        assert terminal_tool(FakeGate()).gated
