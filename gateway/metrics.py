"""What the daemon counts, for Prometheus: one registry of its own, every name with the prefix ``ostiary_``.

Series with known label values exist from the start, so that a rate over them is right from the first event.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from agent.control.clock import Clock

#: Of :meth:`Metrics.render`.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

STAGES = ("validate", "policy", "guard", "grant", "engine", "confirm", "sandbox", "model", "commit")
TURN_STATUSES = ("done", "failed", "cancelled")
OUTCOMES = ("approved", "denied", "timed_out", "cancelled", "undeliverable", "answered")
REFUSALS = ("stranger", "queue_full", "unavailable", "too_large", "unauthorized")

#: Seconds. A stage takes from microseconds (guard) to minutes (a person).
_STAGE_BUCKETS = (0.0001, 0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300, 1200)
_COMMIT_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1, 5)
#: Around 50 ms, which nothing may exceed.
_LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5)


class Metrics:
    """Typed access to every series. Safe to call from any thread, never blocks."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry(auto_describe=True)
        self._accepted = Counter("ostiary_messages_accepted", "Messages made durable", ["adapter"], registry=registry)
        self._duplicate = Counter(
            "ostiary_messages_duplicate", "Messages that were known already", ["adapter"], registry=registry
        )
        self._refused = Counter(
            "ostiary_messages_refused", "Messages not taken", ["adapter", "reason"], registry=registry
        )
        self._turns = Counter("ostiary_turns", "Turns ended", ["status"], registry=registry)
        self._turns_running = Gauge("ostiary_turns_running", "Turns that work now", registry=registry)
        self._sessions = Gauge("ostiary_sessions_live", "Sessions in memory", registry=registry)
        self._approvals = Counter("ostiary_approvals", "Requests to people settled", ["outcome"], registry=registry)
        self._asks_open = Gauge("ostiary_asks_open", "Requests to people without an answer yet", registry=registry)
        self._stage = Histogram(
            "ostiary_stage_seconds", "Duration of a stage", ["stage"], buckets=_STAGE_BUCKETS, registry=registry
        )
        self._stage_timeouts = Counter(
            "ostiary_stage_timeouts", "Stages that ran into their limit", ["stage"], registry=registry
        )
        self._lag = Histogram(
            "ostiary_loop_lag_seconds", "How late the event loop woke", buckets=_LAG_BUCKETS, registry=registry
        )
        self._commits = Counter("ostiary_store_commits", "Transactions committed", registry=registry)
        self._commit = Histogram(
            "ostiary_store_commit_seconds", "Duration of a commit", buckets=_COMMIT_BUCKETS, registry=registry
        )
        self._units = Counter("ostiary_store_units", "Units of work committed", registry=registry)
        self._unit_failures = Counter("ostiary_store_unit_failures", "Units of work rolled back", registry=registry)
        self._adapter_ready = Gauge(
            "ostiary_adapter_ready", "Whether a platform is connected", ["adapter"], registry=registry
        )
        self._log_drops = Counter("ostiary_log_lines_dropped", "Lines lost to a slow target", registry=registry)
        ProcessCollector(namespace="ostiary", registry=registry)
        self._make_known_series()

    def _make_known_series(self) -> None:
        for status in TURN_STATUSES:
            self._turns.labels(status)
        for outcome in OUTCOMES:
            self._approvals.labels(outcome)
        for stage in STAGES:
            self._stage.labels(stage)
            self._stage_timeouts.labels(stage)

    def render(self) -> bytes:
        """Everything in Prometheus' text format, see :data:`CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def message_accepted(self, adapter: str) -> None:
        """A message is durable."""
        self._accepted.labels(adapter).inc()

    def message_duplicate(self, adapter: str) -> None:
        """A message came again."""
        self._duplicate.labels(adapter).inc()

    def message_refused(self, adapter: str, reason: str) -> None:
        """A message was not taken; ``reason`` is one of :data:`REFUSALS`."""
        self._refused.labels(adapter, _known(reason, REFUSALS)).inc()

    def turn_ended(self, status: str) -> None:
        """A turn is over; ``status`` is one of :data:`TURN_STATUSES`."""
        self._turns.labels(_known(status, TURN_STATUSES)).inc()

    def turns_running(self, count: int) -> None:
        """How many turns work now."""
        self._turns_running.set(count)

    def sessions_live(self, count: int) -> None:
        """How many sessions are in memory."""
        self._sessions.set(count)

    def adapter_ready(self, adapter: str, ready: bool) -> None:
        """Whether a platform is connected now."""
        self._adapter_ready.labels(adapter).set(ready)

    def ask_settled(self, outcome: str) -> None:
        """A request to a person has ended; ``outcome`` is one of :data:`OUTCOMES`."""
        self._approvals.labels(_known(outcome, OUTCOMES)).inc()

    def asks_open(self, count: int) -> None:
        """How many requests to people are open."""
        self._asks_open.set(count)

    def stage(self, stage: str, seconds: float) -> None:
        """A stage has ended after ``seconds``; ``stage`` is one of :data:`STAGES`."""
        self._stage.labels(_known(stage, STAGES)).observe(seconds)

    def stage_timed_out(self, stage: str) -> None:
        """A stage has run into its limit."""
        self._stage_timeouts.labels(_known(stage, STAGES)).inc()

    @contextmanager
    def timed(self, stage: str, clock: Clock) -> Iterator[None]:
        """Measure a stage; a ``TimeoutError`` that leaves the block counts as its time-out."""
        begun = clock.monotonic()
        try:
            yield
        except TimeoutError:
            self.stage_timed_out(stage)
            raise
        finally:
            self.stage(stage, clock.monotonic() - begun)

    def loop_lag(self, seconds: float) -> None:
        """The event loop woke ``seconds`` late."""
        self._lag.observe(seconds)

    def committed(self, units: int, seconds: float) -> None:
        """The writer committed ``units`` units of work in one transaction."""
        self._commits.inc()
        self._units.inc(units)
        self._commit.observe(seconds)
        self.stage("commit", seconds)

    def unit_failed(self) -> None:
        """A unit of work was rolled back."""
        self._unit_failures.inc()

    def log_dropped(self, lines: int) -> None:
        """A slow target has cost ``lines`` log lines."""
        self._log_drops.inc(lines)


class LoopLag:
    """Samples how late the event loop wakes.

    Attributes:
        latest: seconds of the last sample.
    """

    def __init__(self, metrics: Metrics, clock: Clock, *, interval_s: float = 0.25) -> None:
        self._metrics = metrics
        self._clock = clock
        self._interval_s = interval_s
        self.latest = 0.0

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            begun = self._clock.monotonic()
            await self._clock.sleep(self._interval_s)
            self.latest = max(0.0, self._clock.monotonic() - begun - self._interval_s)
            self._metrics.loop_lag(self.latest)


def _known(value: str, values: tuple[str, ...]) -> str:
    """``value`` where it is known; label values must not grow with what arrives."""
    return value if value in values else "other"
