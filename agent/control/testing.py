"""In-memory twins of the ports, for tests of whatever stands around the control layer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent.control.grants import Grant
from agent.control.ports import (
    AskSpec,
    Caller,
    Choice,
    Decision,
    Outcome,
    Settled,
    Settlement,
    Standing,
    StandingState,
)
from agent.control.request import CommandRequest
from agent.control.sandbox.base import Ended, EngineStatus, Finished, Job, Output, OutputListener


@dataclass
class MemoryApprover:
    """Answers requests by a function, or leaves them open until :meth:`settle` is called.

    Like the real one it returns the earlier settlement for a digest that was not approved in the same turn.
    """

    answer: Callable[[AskSpec], Settlement | None] = lambda _spec: None
    asked: list[AskSpec] = field(default_factory=list)
    cancelled: list[AskSpec] = field(default_factory=list)
    _open: dict[str, asyncio.Future[Settlement]] = field(default_factory=dict)
    _blocked: dict[tuple[str, str], Settlement] = field(default_factory=dict)

    async def ask(self, spec: AskSpec) -> Settlement:
        """See :class:`agent.control.ports.Approver`."""
        blocked = self._blocked.get((spec.caller.turn, spec.digest))
        if blocked is not None:
            return Settlement(
                blocked.outcome, blocked.choice, blocked.by, blocked.reason, blocked.ask_id, repeated=True
            )
        self.asked.append(spec)
        settlement = self.answer(spec)
        if settlement is None:
            future = self._open[spec.request.request_id] = asyncio.get_running_loop().create_future()
            try:
                settlement = await future
            except asyncio.CancelledError:
                self.cancelled.append(spec)
                raise
            finally:
                del self._open[spec.request.request_id]
        if settlement.outcome is not Settled.APPROVED:
            self._blocked[spec.caller.turn, spec.digest] = settlement
        return settlement

    def settle(self, request_id: str, settlement: Settlement) -> None:
        """Answer an open request."""
        self._open[request_id].set_result(settlement)


def approved(choice: Choice = Choice.ONCE, by: str = "test:operator") -> Settlement:
    """A person said yes."""
    return Settlement(Settled.APPROVED, choice, by)


def denied(reason: str = "", by: str = "test:operator") -> Settlement:
    """A person said no."""
    return Settlement(Settled.DENIED, Choice.DENY, by, reason)


@dataclass
class MemoryDecisions:
    """Keeps the rows in order of writing: ``(kind, request_id, value)``."""

    rows: list[tuple[str, str, Decision | Outcome | None]] = field(default_factory=list)

    async def standing(self, request_id: str) -> Standing:
        """See :class:`agent.control.ports.DecisionLog`."""
        state = Standing(StandingState.NEW)
        for kind, row_id, value in self.rows:
            if row_id != request_id:
                continue
            if kind == "start":
                state = Standing(StandingState.STARTED)
            elif kind == "outcome" and isinstance(value, Outcome):
                state = Standing(StandingState.ENDED, value.result, value.exit_code)
        return state

    async def refused(self, request: CommandRequest, caller: Caller, digest: str, decision: Decision) -> None:
        """See :class:`agent.control.ports.DecisionLog`."""
        del caller, digest
        self.rows.append(("decision", request.request_id, decision))

    async def started(self, request: CommandRequest, caller: Caller, digest: str, decision: Decision | None) -> None:
        """See :class:`agent.control.ports.DecisionLog`."""
        del caller, digest
        if decision is not None:
            self.rows.append(("decision", request.request_id, decision))
        self.rows.append(("start", request.request_id, None))

    async def ended(self, request: CommandRequest, caller: Caller, outcome: Outcome) -> None:
        """See :class:`agent.control.ports.DecisionLog`."""
        del caller
        await asyncio.sleep(0)
        self.rows.append(("outcome", request.request_id, outcome))

    def kinds(self, request_id: str) -> list[str]:
        """Kinds of the rows of one request, in order."""
        return [kind for kind, row_id, _ in self.rows if row_id == request_id]


@dataclass
class MemoryGrants:
    """A list of grants; ``spent`` records what was used."""

    grants: list[Grant] = field(default_factory=list)
    spent: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    async def candidates(self, caller: Caller) -> Sequence[Grant]:
        """See :class:`agent.control.ports.GrantStore`."""
        return [
            grant
            for grant in self.grants
            if grant.principal in {None, caller.principal} and grant.session in {None, caller.session}
        ]

    async def spend(self, grant_ids: Sequence[str]) -> bool:
        """See :class:`agent.control.ports.GrantStore`."""
        if self.gone & set(grant_ids):
            return False
        self.spent.extend(grant_ids)
        return True


@dataclass
class MemorySandbox:
    """An engine that runs nothing: keeps the jobs, and gives back what it was told to."""

    name: str = "memory"
    output: str = "ran"
    exit_code: int = 0
    jobs: list[Job] = field(default_factory=list)
    hold: asyncio.Event | None = None

    async def probe(self) -> EngineStatus:
        """It always works."""
        return EngineStatus(self.name, ok=True)

    async def run(self, job: Job, on_output: OutputListener | None = None) -> Finished:
        """Keep the job; wait while ``hold`` is set and unset."""
        self.jobs.append(job)
        if self.hold is not None:
            await self.hold.wait()
        if on_output is not None:
            on_output(self.output.encode())
        return Finished(Ended.EXITED, self.exit_code, Output(self.output, len(self.output)), 0.01, "memory")


@dataclass
class RecordingActivity:
    """Keeps touches and leases."""

    touches: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    leases: list[tuple[str, float | None]] = field(default_factory=list)

    def touch(self, reason: str) -> None:
        """See :class:`agent.control.ports.Activity`."""
        self.touches.append(reason)

    @contextmanager
    def lease(self, kind: str, limit_s: float | None) -> Iterator[None]:
        """See :class:`agent.control.ports.Activity`."""
        self.leases.append((kind, limit_s))
        self.held.append(kind)
        try:
            yield
        finally:
            self.held.remove(kind)


@dataclass
class RecordingObserver:
    """Keeps stages and time-outs."""

    stages: list[str] = field(default_factory=list)
    timeouts: list[str] = field(default_factory=list)

    def stage(self, name: str, seconds: float) -> None:
        """See :class:`agent.control.pipeline.Observer`."""
        del seconds
        self.stages.append(name)

    def stage_timed_out(self, name: str) -> None:
        """See :class:`agent.control.pipeline.Observer`."""
        self.timeouts.append(name)
