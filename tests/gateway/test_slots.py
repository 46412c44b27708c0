"""Running turns are bounded, and a turn that waits for a person takes no place."""

from __future__ import annotations

import asyncio

from gateway.slots import Slots


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_waiting_turn_gives_its_place_to_another() -> None:
    slots = Slots(1)
    await slots.enter("a")
    entering = asyncio.create_task(slots.enter("b"))
    await settle()
    assert not entering.done()
    slots.waiting("a")
    await entering
    coming_back = asyncio.create_task(slots.going_on("a"))
    await settle()
    assert not coming_back.done()
    slots.leave("b")
    await coming_back
    slots.leave("a")
    await slots.enter("c")


async def test_two_calls_of_one_turn_take_one_place() -> None:
    slots = Slots(1)
    await slots.enter("a")
    slots.waiting("a")
    slots.waiting("a")
    await slots.going_on("a")
    await slots.going_on("a")
    slots.leave("a")
    await slots.enter("b")
    blocked = asyncio.create_task(slots.enter("c"))
    await settle()
    assert not blocked.done(), "one place was given back, not two"
    slots.leave("b")
    await blocked


async def test_a_turn_that_ends_while_it_asks_for_its_place_gives_none_away() -> None:
    slots = Slots(1)
    await slots.enter("a")
    slots.waiting("a")
    await slots.enter("b")
    coming_back = asyncio.create_task(slots.going_on("a"))
    await settle()
    slots.leave("a")
    coming_back.cancel()
    await asyncio.wait([coming_back])
    blocked = asyncio.create_task(slots.enter("c"))
    await settle()
    assert not blocked.done()
    slots.leave("b")
    await blocked
