from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent.control.clock import ManualClock
from gateway.metrics import CONTENT_TYPE, OUTCOMES, STAGES, TURN_STATUSES, LoopLag, Metrics


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    """The sample of that name and those labels, as Prometheus reads it."""
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return float(sample.value)
    return None


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


class TestMetrics:
    def test_every_name_has_the_prefix(self, metrics: Metrics) -> None:
        metrics.message_accepted("http")
        families = list(text_string_to_metric_families(metrics.render().decode()))
        assert families
        assert all(family.name.startswith("ostiary_") for family in families)

    def test_known_series_exist_from_the_start(self, metrics: Metrics) -> None:
        assert all(value(metrics, "ostiary_turns_total", status=status) == 0 for status in TURN_STATUSES)
        assert all(value(metrics, "ostiary_approvals_total", outcome=outcome) == 0 for outcome in OUTCOMES)
        assert all(value(metrics, "ostiary_stage_seconds_count", stage=stage) == 0 for stage in STAGES)
        assert all(value(metrics, "ostiary_stage_timeouts_total", stage=stage) == 0 for stage in STAGES)

    def test_messages(self, metrics: Metrics) -> None:
        metrics.message_accepted("http")
        metrics.message_duplicate("http")
        metrics.message_refused("http", "queue_full")
        assert value(metrics, "ostiary_messages_accepted_total", adapter="http") == 1
        assert value(metrics, "ostiary_messages_duplicate_total", adapter="http") == 1
        assert value(metrics, "ostiary_messages_refused_total", adapter="http", reason="queue_full") == 1

    def test_turns_and_asks(self, metrics: Metrics) -> None:
        metrics.turn_ended("done")
        metrics.turns_running(3)
        metrics.sessions_live(4)
        metrics.ask_settled("timed_out")
        metrics.asks_open(2)
        assert value(metrics, "ostiary_turns_total", status="done") == 1
        assert value(metrics, "ostiary_turns_running") == 3
        assert value(metrics, "ostiary_sessions_live") == 4
        assert value(metrics, "ostiary_approvals_total", outcome="timed_out") == 1
        assert value(metrics, "ostiary_asks_open") == 2

    def test_writer_and_log(self, metrics: Metrics) -> None:
        metrics.committed(5, 0.001)
        metrics.unit_failed()
        metrics.log_dropped(7)
        assert value(metrics, "ostiary_store_commits_total") == 1
        assert value(metrics, "ostiary_store_units_total") == 5
        assert value(metrics, "ostiary_store_unit_failures_total") == 1
        assert value(metrics, "ostiary_stage_seconds_count", stage="commit") == 1
        assert value(metrics, "ostiary_log_lines_dropped_total") == 7

    async def test_a_stage_and_its_timeout(self, metrics: Metrics) -> None:
        clock = ManualClock()
        with metrics.timed("guard", clock):
            await clock.advance(0.25)

        def run_into_the_limit() -> None:
            with metrics.timed("guard", clock):
                raise TimeoutError

        with pytest.raises(TimeoutError):
            run_into_the_limit()
        assert value(metrics, "ostiary_stage_seconds_count", stage="guard") == 2
        assert value(metrics, "ostiary_stage_seconds_sum", stage="guard") == 0.25
        assert value(metrics, "ostiary_stage_timeouts_total", stage="guard") == 1

    def test_labels_do_not_grow_with_what_arrives(self, metrics: Metrics) -> None:
        for number in range(1000):
            metrics.turn_ended(f"status-{number}")
            metrics.ask_settled(f"outcome-{number}")
            metrics.stage(f"stage-{number}", 1)
            metrics.message_refused("http", f"reason-{number}")
        assert value(metrics, "ostiary_turns_total", status="other") == 1000
        assert len(metrics.render()) < 30_000

    def test_two_registries_are_apart(self, metrics: Metrics) -> None:
        other = Metrics()
        other.turn_ended("done")
        assert value(metrics, "ostiary_turns_total", status="done") == 0

    def test_content_type(self) -> None:
        assert CONTENT_TYPE.startswith("text/plain")


class TestLoopLag:
    async def test_measures_how_late_the_loop_wakes(self, metrics: Metrics) -> None:
        clock = ManualClock()
        lag = LoopLag(metrics, clock, interval_s=1)
        task = asyncio.create_task(lag.run())
        await clock.advance(3)
        assert value(metrics, "ostiary_loop_lag_seconds_count") == 3
        assert lag.latest == 0
        task.cancel()
        await asyncio.wait([task])


def test_import_is_light() -> None:
    """Counting must not bring in a web framework."""
    program = "import sys, gateway.metrics; print([m for m in ('aiohttp', 'twisted', 'django') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
