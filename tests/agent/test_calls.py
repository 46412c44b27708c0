from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from agent.calls import run_calls
from agent.control.request import CommandRequest, CommandStatus
from agent.exceptions import ToolArgumentsInvalid
from agent.models.base import ToolCall, ToolSpec
from agent.testing import FakeGate, ran
from agent.tools.registry import Invocation, Tool, ToolResult
from tests.agent.turns import ANY_OBJECT, Turn, simple_tool


class Records:
    """Keeps what was recorded, and in which order."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.texts: list[str] = []

    async def __call__(self, call: ToolCall, result: ToolResult) -> None:
        await asyncio.sleep(0)
        self.ids.append(call.id)
        self.texts.append(result.text)


def shells(*ids: str) -> list[ToolCall]:
    return [ToolCall(call_id, "terminal", f'{{"script": "{call_id}"}}') for call_id in ids]


class Cards:
    """A judge whose cards wait until they are answered by request id."""

    def __init__(self) -> None:
        self.open: dict[str, asyncio.Future[CommandStatus | None]] = {}

    def __call__(self, request: CommandRequest) -> Awaitable[CommandStatus | None]:
        future: asyncio.Future[CommandStatus | None] = asyncio.get_running_loop().create_future()
        self.open[request.request_id] = future
        return future


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class TestOrder:
    async def test_all_cards_go_out_together_and_a_later_approval_waits_for_its_turn(self) -> None:
        cards, records = Cards(), Records()
        turn = Turn(gate=FakeGate(judge=cards))
        task = asyncio.create_task(run_calls(turn.ctx(), shells("a", "b", "c"), records))
        await settle()
        assert list(cards.open) == ["a", "b", "c"]
        cards.open["c"].set_result(None)
        cards.open["b"].set_result(CommandStatus.DENIED)
        await settle()
        assert turn.gate.starts == []
        assert records.ids == []
        cards.open["a"].set_result(None)
        await task
        assert turn.gate.starts == ["a", "c"]
        assert records.ids == ["a", "b", "c"]

    async def test_an_earlier_result_is_recorded_before_a_later_call_starts(self) -> None:
        records = Records()
        seen: list[tuple[str, list[str]]] = []
        gate = FakeGate(on_step=lambda name, call_id: seen.append((f"{name} {call_id}", list(records.ids))))
        await run_calls(Turn(gate=gate).ctx(), shells("a", "b"), records)
        assert seen == [("started a", []), ("ended a", []), ("started b", ["a"]), ("ended b", ["a"])]

    async def test_plain_tools_wait_for_gated_ones_before_them(self) -> None:
        cards, records = Cards(), Records()
        looked: list[str] = []

        async def look(invocation: Invocation) -> ToolResult:
            looked.append(invocation.request_id)
            return ToolResult("seen")

        tool = Tool(ToolSpec("look", "", ANY_OBJECT), look)
        turn = Turn(gate=FakeGate(judge=cards), more_tools=[tool])
        both = [*shells("a"), ToolCall("b", "look", "{}"), *shells("c")]
        task = asyncio.create_task(run_calls(turn.ctx(), both, records))
        await settle()
        assert list(cards.open) == ["a", "c"]
        assert looked == []
        cards.open["c"].set_result(None)
        cards.open["a"].set_result(None)
        await task
        assert looked == ["b"]
        assert records.ids == ["a", "b", "c"]

    async def test_errors_keep_their_place(self) -> None:
        records = Records()
        wrong = ToolCall("b", "nothing", "{}")
        await run_calls(Turn(gate=FakeGate(lambda _: ran("ok"))).ctx(), [*shells("a"), wrong, *shells("c")], records)
        assert records.ids == ["a", "b", "c"]


class TestFailures:
    async def run_one(self, tool: Tool) -> str:
        records = Records()
        await run_calls(Turn(more_tools=[tool]).ctx(), [ToolCall("x", tool.spec.name, "{}"), *shells("y")], records)
        assert records.ids == ["x", "y"]
        return records.texts[0]

    async def test_a_cancelled_future_inside_a_handler_does_not_hold_up_the_line(self) -> None:
        async def wait(invocation: Invocation) -> ToolResult:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.cancel()
            await future
            return ToolResult("never")

        text = await self.run_one(Tool(ToolSpec("wait", "", ANY_OBJECT), wait))
        assert text == "wait was stopped before it was done."

    async def test_our_own_errors_are_told_in_full(self) -> None:
        assert await self.run_one(simple_tool("own", ToolArgumentsInvalid("no such day"))) == "no such day"

    async def test_a_group_of_errors_is_a_failure_like_any_other(self) -> None:
        text = await self.run_one(simple_tool("many", ExceptionGroup("x", [ValueError("secret")])))
        assert text == "many failed with an internal error (ExceptionGroup). The details are in the log."

    async def test_a_tool_that_never_ends_is_stopped_at_its_limit(self) -> None:
        async def hang(invocation: Invocation) -> ToolResult:
            await asyncio.Event().wait()
            return ToolResult("never")

        records = Records()
        turn = Turn(more_tools=[Tool(ToolSpec("hang", "", ANY_OBJECT), hang)])
        task = asyncio.create_task(run_calls(turn.ctx(), [ToolCall("x", "hang", "{}")], records))
        await turn.clock.advance(1_259)
        assert (turn.activity.held, records.ids) == (["tool"], [])
        await turn.clock.advance(2)
        await task
        assert (turn.activity.held, records.ids) == ([], ["x"])
        assert records.texts[0].startswith("hang took too long and was stopped.")


class TestActivity:
    async def test_a_plain_tool_runs_under_a_lease_and_its_start_and_end_are_progress(self) -> None:
        turn = Turn(more_tools=[simple_tool("look")])
        await run_calls(turn.ctx(), [ToolCall("x", "look", "{}")], Records())
        assert turn.activity.leases == [("tool", 1_260.0)]
        assert turn.activity.touches == ["tool start", "tool end"]

    async def test_a_gated_tool_brings_its_own_leases_and_is_not_shown_as_running_while_it_waits(self) -> None:
        cards = Cards()
        turn = Turn(gate=FakeGate(judge=cards))
        task = asyncio.create_task(run_calls(turn.ctx(), shells("a"), Records()))
        await settle()
        assert turn.activity.held == ["approval"]
        assert turn.sink.tools == []
        cards.open["a"].set_result(None)
        await task
        assert len(turn.sink.tools) == 2
        assert turn.activity.leases == [("approval", None), ("tool", 120.0)]
