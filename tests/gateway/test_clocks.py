"""Somebody sets the clock while a card is open: it never becomes good for longer than was said."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from adapters.base import TapVerdict
from agent.control.clock import ManualClock
from tests.gateway.joined import Joined, joined
from tests.gateway.running import settings

#: The usual deadline of a card.
TIMEOUT_S = 300


async def asked(gateway: Joined) -> None:
    await gateway.adapter.say("$ rm -rf build")
    await gateway.until(lambda: gateway.rows("SELECT 1 FROM asks WHERE shown <> '[]'"))


async def test_set_forward_the_deadline_is_over_at_once(home_path: Path) -> None:
    clock = ManualClock()
    async with joined(home_path, clock=clock) as gateway:
        await asked(gateway)
        clock.step_wall(timedelta(seconds=TIMEOUT_S + 1))
        (card,) = gateway.adapter.cards()
        assert (await gateway.adapter.tap(card, "once")).verdict is TapVerdict.EXPIRED
        await gateway.until(gateway.adapter.texts)
        assert "in time" in gateway.adapter.texts()[0]


async def test_set_forward_nobody_needs_to_tap_for_it_to_end(home_path: Path) -> None:
    clock = ManualClock()
    async with joined(home_path, clock=clock) as gateway:
        await asked(gateway)
        clock.step_wall(timedelta(hours=1))
        await gateway.advance(16, step=4)
        await gateway.until(gateway.adapter.texts)
        assert gateway.rows("SELECT state FROM asks") == [("timed_out",)]


async def test_set_back_it_ends_when_its_seconds_have_passed(home_path: Path) -> None:
    clock = ManualClock()
    async with joined(home_path, clock=clock) as gateway:
        await asked(gateway)
        clock.step_wall(-timedelta(hours=5))
        await gateway.advance(TIMEOUT_S - 20, step=20)
        assert gateway.rows("SELECT state FROM asks") == [("pending",)]
        await gateway.advance(40, step=20)
        await gateway.until(lambda: gateway.rows("SELECT state FROM asks") == [("timed_out",)])
        await gateway.until(gateway.adapter.texts)


async def test_set_back_over_a_restart_nothing_open_is_trusted(home_path: Path) -> None:
    first, second = ManualClock(), ManualClock()
    config = settings(gateway={"drain_s": 1})
    async with joined(home_path, clock=first, config=config) as gateway:
        await asked(gateway)
    second.step_wall(-timedelta(minutes=5))
    async with joined(home_path, clock=second, config=config) as gateway:
        await gateway.until(gateway.adapter.texts)
        assert gateway.rows("SELECT state FROM asks") == [("timed_out",)]


async def test_what_is_to_be_said_does_not_wait_for_a_clock_that_was_set_back(home_path: Path) -> None:
    first, second = ManualClock(), ManualClock(datetime.fromisoformat("2025-12-31T00:00:00+00:00"))
    async with joined(home_path, clock=first) as gateway:
        gateway.core.delivery.stop()
        await gateway.adapter.say("hello")
        await gateway.until(lambda: gateway.rows("SELECT 1 FROM outbox"))
    async with joined(home_path, clock=second) as gateway:
        await gateway.until(gateway.adapter.texts)
