"""The daemon's own end: what was started by it goes first, then the platforms, then the database, each with a limit."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.base import Conversation, Intake, Part, Sent
from adapters.testing import MemoryAdapter
from agent.control.clock import SystemClock
from gateway import daemon as daemon_module
from gateway import delivery
from tests.chaos.test_lifecycle import processes_with, until_process
from tests.gateway.running import PATIENCE_S, running, settings
from tests.gateway.test_push import PEOPLE


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_module, "ADAPTER_STOP_S", 0.3)
    monkeypatch.setattr(delivery, "CLOSE_S", 0.3)


class Closing(MemoryAdapter):
    """Does something of its own when it is stopped, sends or starts."""

    def __init__(self, name: str, at_stop: Callable[[], object] = lambda: None) -> None:
        super().__init__(name)
        self.at_stop = at_stop
        self.seen: list[object] = []

    async def stop(self) -> None:
        self.seen.append(self.at_stop())
        await super().stop()


class Hanging(MemoryAdapter):
    """Never lets go: neither of a send nor of its own end."""

    async def send(self, conversation: Conversation, part: Part) -> Sent:
        self.calls.append("send")
        await self._tell()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def stop(self) -> None:
        await asyncio.Event().wait()


class Failing(MemoryAdapter):
    """Raises what an adapter should not."""

    async def send(self, conversation: Conversation, part: Part) -> Sent:
        self.calls.append("send")
        await self._tell()
        if self.calls.count("send") == 1:
            raise ZeroDivisionError("a mistake in the adapter")
        return await super().send(conversation, part)

    async def stop(self) -> None:
        raise ZeroDivisionError("a mistake in the adapter")


class Late(MemoryAdapter):
    """Can be started the second time only."""

    starts = 0

    async def start(self, intake: Intake) -> None:
        self.starts += 1
        if self.starts == 1:
            raise ConnectionRefusedError("the platform is away")
        await super().start(intake)


async def calls(adapter: MemoryAdapter, wanted: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await adapter.until(lambda shown: len(shown.calls) >= wanted)


@pytest.mark.may_block
async def test_children_end_before_the_platforms_and_the_database_last(home_path: Path) -> None:
    mark = f"sleep 63{os.getpid()}"

    def at_stop() -> tuple[list[int], int]:
        conn = sqlite3.connect(f"file:{home_path}/state.db?mode=ro", uri=True)
        try:
            (running_,) = conn.execute("SELECT value FROM meta WHERE key = 'running'").fetchone()
        finally:
            conn.close()
        return processes_with(mark), int(running_)

    adapter = Closing("memory", at_stop)
    people = {"memory": PEOPLE["memory"]}
    config = settings(gateway={"drain_s": 0.3}, limits={"terminal_s": 600})
    async with running(home_path, config, adapters=[adapter], people=people) as daemon:
        await adapter.say(f"$ setsid {mark} & {mark}")
        await until_process(mark)
        assert await daemon.stop() == 0
    assert adapter.seen == [([], 1)], "no child was left, and the database was still open"


@pytest.mark.may_block
async def test_a_stopped_turn_is_listed_until_its_processes_are_gone(home_path: Path) -> None:
    """Whatever of it is still there when the turn is told to be over would go on unseen."""
    mark = f"sleep 64{os.getpid()}"
    async with running(home_path) as daemon, daemon.owner.events_after_first() as stream:
        await daemon.owner.say(f"$ trap '' TERM HUP INT; nohup setsid {mark} & {mark}\n$ touch second", wait=None)
        await until_process(mark)
        assert (await daemon.owner.call("POST", "/v1/sessions/main/stop"))[1] == {"stopped": True}
        assert (await stream.until_type("turn.finished"))["status"] == "cancelled"
        assert processes_with(mark) == []
        assert "second" not in (await daemon.owner.say("$ ls"))["reply"], "no tool runs after the stop"


async def test_a_platform_that_hangs_or_fails_holds_neither_the_stop_nor_the_others(home_path: Path) -> None:
    good, hanging, failing = Closing("good"), Hanging("hanging"), Failing("failing")
    people = {adapter.name: PEOPLE["memory"] for adapter in (good, hanging, failing)}
    async with running(home_path, adapters=[hanging, failing, good], people=people) as daemon:
        await hanging.say("$ echo hi")
        await calls(hanging, 1)
        assert await daemon.stop() == 0
    assert good.seen == [None]
    conn = sqlite3.connect(home_path / "state.db")
    assert conn.execute("SELECT value FROM meta WHERE key = 'running'").fetchone() == ("0",)
    assert conn.execute("SELECT state FROM outbox").fetchall() == [("sending",)]
    conn.close()
    again = MemoryAdapter("hanging")
    async with running(home_path, adapters=[again], people=people):
        await calls(again, 1)
        async with asyncio.timeout(PATIENCE_S):
            await again.until(lambda shown: len(shown.texts()) == 1)
    assert [shown.part.repeated for shown in again.shown if shown.part] == [True]


async def test_a_mistake_in_an_adapter_costs_one_part_a_mark_and_nobody_the_daemon(
    home_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "FIRST_PAUSE_S", 0.01)
    failing = Failing("memory")
    async with running(home_path, adapters=[failing], people=PEOPLE) as daemon:
        await failing.say("$ echo hi")
        async with asyncio.timeout(PATIENCE_S):
            await failing.until(lambda shown: len(shown.texts()) == 1)
        assert (await daemon.owner.say("$ echo alive"))["status"] == "done"
    assert [shown.part.repeated for shown in failing.shown if shown.part] == [True]


async def test_a_send_without_an_end_is_uncertain_after_its_limit(
    home_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "SEND_S", 0.2)
    monkeypatch.setattr(delivery, "FIRST_PAUSE_S", 0.01)
    hanging = Hanging("memory")
    async with running(home_path, adapters=[hanging], people=PEOPLE, clock=SystemClock()):
        await hanging.say("$ echo hi")
        await calls(hanging, 2)
    conn = sqlite3.connect(home_path / "state.db")
    ((uncertain,),) = conn.execute("SELECT uncertain FROM outbox").fetchall()
    conn.close()
    assert uncertain == 1


async def test_a_platform_that_cannot_be_started_is_not_ready_and_is_started_again(home_path: Path) -> None:
    late = Late("memory")
    async with running(home_path, adapters=[late], people=PEOPLE) as daemon:
        async with daemon.web.get(f"{daemon.base}/readyz") as response:
            assert response.status == 503
            assert "memory" in await response.text()
        assert (await daemon.owner.say("$ echo alive"))["status"] == "done"
        async with asyncio.timeout(PATIENCE_S):
            while not late.health().ready:
                await asyncio.sleep(0.02)
        await late.say("$ echo hi")
        await calls(late, 1)
