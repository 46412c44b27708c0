"""The clock for tests does what the machine's would, in no time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agent.control.clock import ManualClock


async def test_sleepers_wake_in_the_order_of_their_deadlines() -> None:
    clock = ManualClock()
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sleeper("late", 20))
        tasks.create_task(sleeper("early", 10))
        await clock.advance(9.9)
        assert woken == []
        await clock.advance(0.1)
        assert woken == ["early"]
        await clock.advance(10)
    assert woken == ["early", "late"]


async def test_a_timeout_ends_its_block_when_the_time_has_passed() -> None:
    clock = ManualClock()

    async def limited() -> str:
        try:
            async with clock.timeout(5):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "ended"

    task = asyncio.create_task(limited())
    await clock.advance(4.9)
    assert not task.done()
    await clock.advance(0.2)
    assert task.done()
    assert task.result() == "timed out"


async def test_a_timeout_whose_block_ended_earlier_does_nothing() -> None:
    clock = ManualClock()
    before = clock.monotonic()
    async with clock.timeout(5):
        pass
    await clock.advance(10)
    assert clock.monotonic() == pytest.approx(before + 10)


async def test_the_wall_moves_alone_when_it_is_stepped() -> None:
    clock = ManualClock()
    before, monotonic = clock.now(), clock.monotonic()
    clock.step_wall(timedelta(hours=-1))
    assert clock.now() == before - timedelta(hours=1)
    assert clock.monotonic() == monotonic
    await clock.advance(60)
    assert clock.monotonic() == pytest.approx(monotonic + 60)
