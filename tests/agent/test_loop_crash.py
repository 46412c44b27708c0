"""A turn that is cut at any point: killed and taken up again, or cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.events import ToolState
from agent.history import repair, validate
from agent.loop import run_conversation
from agent.models.base import AssistantMessage, Message, ModelRequest, ToolMessage, ToolSpec, UserMessage
from agent.testing import FakeGate, MemoryJournal, ScriptedModel, calls
from agent.tools.registry import Invocation, Tool, ToolResult
from agent.turn_context import Answer
from tests.agent.turns import ANY_OBJECT, Turn, simple_tool

#: Kinds of calls: gated, plain and repeatable, plain with an effect, and three that never reach a handler.
KINDS = {
    "shell": ("terminal", '{"script": "x"}'),
    "list": ("list_files", "{}"),
    "look": ("look", "{}"),
    "poke": ("poke", "{}"),
    "cut": ("terminal", '{"script": "x'),
    "null": ("terminal", "null"),
    "unknown": ("nothing", "{}"),
}
PLANS = st.lists(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4), min_size=1, max_size=3)


class World:
    """What survives a crash, and a copy of it from each point at which a crash could have come."""

    def __init__(
        self, plan: Sequence[Sequence[str]], messages: Iterable[Message], gate: FakeGate, poked: Iterable[str] = ()
    ) -> None:
        self.plan = plan
        self.journal = MemoryJournal(messages, on_write=self.shoot)
        self.gate = gate.survivor(on_step=self.shoot)
        self.poked = list(poked)
        self.shots: list[World] = []

    def shoot(self, *_: object) -> None:
        self.shots.append(World(self.plan, self.journal.messages, self.gate, self.poked))

    def model(self) -> ScriptedModel:
        def answer(request: ModelRequest) -> AssistantMessage | str:
            step = sum(isinstance(message, AssistantMessage) for message in request.messages)
            assert validate(request.messages) == []
            return calls(*(KINDS[kind] for kind in self.plan[step])) if step < len(self.plan) else "done"

        return ScriptedModel(answer)

    def poke(self) -> Tool:
        async def handle(invocation: Invocation) -> ToolResult:
            self.poked.append(invocation.request_id)
            self.shoot()
            await asyncio.sleep(0)
            self.shoot()
            return ToolResult("poked")

        return Tool(ToolSpec("poke", "", ANY_OBJECT), handle)

    async def run(self) -> Answer:
        tools = [self.poke(), simple_tool("look", repeatable=True)]
        return await run_conversation(Turn(self.model(), self.journal, self.gate, more_tools=tools).ctx())


def answered(messages: Sequence[Message]) -> list[str]:
    return [message.call_id for message in messages if isinstance(message, ToolMessage)]


def made(messages: Sequence[Message]) -> list[str]:
    return [call.id for message in messages if isinstance(message, AssistantMessage) for call in message.calls]


async def check_resumption(shot: World) -> None:
    kept, poked_before = list(shot.journal.messages), len(shot.poked)
    assert await shot.run() == Answer("done")
    messages = shot.journal.messages
    assert messages[: len(kept)] == kept
    assert made(messages) == answered(messages)
    assert validate(repair(messages)) == []
    assert len(set(shot.gate.starts)) == len(shot.gate.starts)
    assert len(set(shot.poked)) == len(shot.poked)
    ran_again = {request.request_id for request in shot.gate.asked} | set(shot.poked[poked_before:])
    assert ran_again.isdisjoint(answered(kept))


@given(PLANS)
@settings(max_examples=30, deadline=None)
def test_a_turn_killed_at_any_point_goes_on_to_its_end_and_runs_nothing_twice(plan: list[list[str]]) -> None:
    async def scenario() -> int:
        world = World(plan, [UserMessage("go")], FakeGate())
        world.shoot()
        assert await world.run() == Answer("done")
        for shot in world.shots:
            await check_resumption(shot)
            for second in shot.shots[::4]:
                await check_resumption(second)
        return len(world.shots)

    assert asyncio.run(scenario()) > 2 * len(plan)


async def test_a_turn_cancelled_at_any_point_leaves_nothing_behind() -> None:
    plan = ["shell", "look", "shell", "unknown", "list"]
    steps = 0
    while True:
        model = ScriptedModel(calls(*(KINDS[kind] for kind in plan), text="I try."), "done")
        turn = Turn(model, more_tools=[simple_tool("look")])
        task = asyncio.create_task(run_conversation(turn.ctx()))
        for _ in range(steps):
            await asyncio.sleep(0)
        finished = task.done()
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert turn.activity.held == []
        assert model.open_streams == 0
        assert validate(repair(turn.journal.messages)) == []
        assert turn.sink.tools[1::2] == [(name, ToolState.END) for name, _ in turn.sink.tools[::2]]
        if finished:
            assert outcome == Answer("done")
            break
        assert isinstance(outcome, asyncio.CancelledError)
        steps += 1
    assert steps > 20


async def test_a_turn_cancelled_while_cards_are_open_withdraws_them_all() -> None:
    waiting: list[asyncio.Future[None]] = []

    def judge(_: object) -> asyncio.Future[None]:
        waiting.append(asyncio.get_running_loop().create_future())
        return waiting[-1]

    turn = Turn(ScriptedModel(calls(*[KINDS["shell"]] * 3)), gate=FakeGate(judge=judge))
    task = asyncio.create_task(run_conversation(turn.ctx()))
    await turn.clock.advance(0)
    assert len(waiting) == 3
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert all(future.cancelled() for future in waiting)
    assert turn.gate.starts == []
    assert asyncio.all_tasks() == {asyncio.current_task()}
