"""What the tests of the mind share: a turn made of in-memory twins, and tools to call in it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agent.budget import IterationBudget
from agent.control.clock import ManualClock
from agent.control.ports import Caller, Role
from agent.control.testing import RecordingActivity
from agent.models.base import Message, Model, ToolSpec, UserMessage
from agent.testing import FakeGate, MemoryJournal, RecordingSink, ScriptedModel
from agent.tools.files import file_tools
from agent.tools.registry import Invocation, Registry, Tool, ToolResult
from agent.tools.terminal import terminal_tool
from agent.turn_context import TurnContext, TurnLimits

CALLER = Caller(
    principal="http:owner",
    role=Role.ADMIN,
    scope="person:http:owner",
    session="http:owner/main",
    turn="t1",
    workspace=Path("/nowhere"),
)

ANY_OBJECT = {"type": "object", "properties": {}}


@dataclass
class Turn:
    """A context and the twins inside it, typed as such."""

    model: Model = field(default_factory=lambda: ScriptedModel("done"))
    journal: MemoryJournal = field(default_factory=lambda: MemoryJournal([UserMessage("do it")]))
    gate: FakeGate = field(default_factory=FakeGate)
    sink: RecordingSink = field(default_factory=RecordingSink)
    activity: RecordingActivity = field(default_factory=RecordingActivity)
    clock: ManualClock = field(default_factory=ManualClock)
    more_tools: Iterable[Tool] = ()
    budget: IterationBudget = field(default_factory=lambda: IterationBudget(90))
    limits: TurnLimits = field(default_factory=TurnLimits)

    def ctx(self) -> TurnContext:
        registry = Registry([terminal_tool(self.gate), *file_tools(self.gate), *self.more_tools])
        return TurnContext(
            caller=CALLER,
            journal=self.journal,
            activity=self.activity,
            events=self.sink,
            model=self.model,
            tools=registry,
            budget=self.budget,
            clock=self.clock,
            limits=self.limits,
            system="You are a test.",
        )


def journal_of(*messages: Message) -> MemoryJournal:
    return MemoryJournal(messages)


def simple_tool(name: str, result: str | Exception = "fine", *, repeatable: bool = False) -> Tool:
    """A tool that is not gated and gives or raises the same thing each time."""

    async def handle(invocation: Invocation) -> ToolResult:
        await asyncio.sleep(0)
        if isinstance(result, Exception):
            raise result
        return ToolResult(result)

    return Tool(ToolSpec(name, f"the tool {name}", ANY_OBJECT), handle, repeatable=repeatable)
