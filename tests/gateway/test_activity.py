"""What counts as a sign of life."""

from __future__ import annotations

import pytest

from agent.control.clock import ManualClock
from agent.control.testing import RecordingObserver
from agent.exceptions import ModelSilent
from gateway.activity import Pulse, TurnActivity


async def test_silence_grows_and_a_touch_ends_it() -> None:
    clock = ManualClock()
    pulse = Pulse(clock)
    await clock.advance(100)
    assert pulse.idle_s() == 100
    pulse.touch("model")
    assert pulse.idle_s() == 0
    assert pulse.reason == "model"


async def test_an_open_lease_counts_as_activity_up_to_its_limit() -> None:
    """A slow answer or a long command is no hang, until its own limit has passed."""
    clock = ManualClock()
    pulse = Pulse(clock)
    activity = TurnActivity(pulse)
    with activity.lease("tool", 400):
        await clock.advance(399)
        assert pulse.idle_s() == 0
        await clock.advance(101)
        assert pulse.idle_s() == 500
    assert pulse.idle_s() == 100, "the time inside the limit counted, the overrun did not"


async def test_the_end_of_a_lease_counts_as_activity() -> None:
    clock = ManualClock()
    pulse = Pulse(clock)
    with TurnActivity(pulse).lease("model", 600):
        await clock.advance(480)
    assert pulse.idle_s() == 0


async def test_one_expired_lease_does_not_hide_behind_another_inside_its_limit() -> None:
    clock = ManualClock()
    pulse = Pulse(clock)
    activity = TurnActivity(pulse)
    with activity.lease("model", 10), activity.lease("approval", None):
        await clock.advance(10_000)
        assert pulse.idle_s() == 0, "an open approval has its own deadline"


async def test_what_a_turn_leaves_behind_keeps_nothing_alive() -> None:
    clock = ManualClock()
    pulse = Pulse(clock)
    activity = TurnActivity(pulse)
    activity.end()
    await clock.advance(50)
    activity.touch("late output")
    with activity.lease("tool", 1_000):
        assert pulse.idle_s() == 50


async def test_the_models_time_and_its_limits_are_counted() -> None:
    clock, observer = ManualClock(), RecordingObserver()
    activity = TurnActivity(Pulse(clock), observer)
    with activity.lease("model", 10):
        await clock.advance(3)
    with pytest.raises(ModelSilent), activity.lease("model", 10):
        raise ModelSilent("silent", person="It is slow.")
    with activity.lease("tool", 10):
        pass
    assert observer.stages == ["model", "model"]
    assert observer.timeouts == ["model"]


async def test_only_the_end_of_work_leaves_a_turn_that_only_waits() -> None:
    told: list[str] = []
    activity = TurnActivity(Pulse(ManualClock()), waits_only=lambda: told.append("waits"))
    with activity.lease("approval", None):
        with activity.lease("approval", None):
            pass
        assert not told, "an answer has come: what it lets run begins now"
        with activity.lease("tool", 60):
            pass
        assert told == ["waits"]
        activity.end()
    assert told == ["waits"]
