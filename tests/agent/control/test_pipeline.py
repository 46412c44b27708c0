"""The pipeline's order and promises, with the real guard, and twins for people, records and the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.control.clock import ManualClock
from agent.control.commands import Terminal
from agent.control.grants import Grant, GrantDraft, drafts_of
from agent.control.guard.guard import Guard
from agent.control.guard.verdict import Assumptions
from agent.control.pipeline import Pipeline
from agent.control.policy import BuiltinPolicy
from agent.control.ports import Caller, Choice, DecisionSource, Role, Settled, Settlement
from agent.control.request import CommandRequest, CommandResult, CommandStatus
from agent.control.sandbox.base import Profile, Sandbox, SandboxUnavailable
from agent.control.testing import (
    MemoryApprover,
    MemoryDecisions,
    MemoryGrants,
    MemorySandbox,
    RecordingActivity,
    RecordingObserver,
    approved,
    denied,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Bench:
    """A pipeline over twins."""

    workspace: Path
    approver: MemoryApprover = field(default_factory=MemoryApprover)
    decisions: MemoryDecisions = field(default_factory=MemoryDecisions)
    grants: MemoryGrants = field(default_factory=MemoryGrants)
    sandbox: MemorySandbox = field(default_factory=MemorySandbox)
    activity: RecordingActivity = field(default_factory=RecordingActivity)
    observer: RecordingObserver = field(default_factory=RecordingObserver)
    role: Role = Role.ADMIN
    broken: SandboxUnavailable | None = None
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.guard = Guard(Assumptions())
        self.pipeline = Pipeline(
            commands={"terminal": Terminal(Profile(), default_s=120, max_s=1200)},
            policy=BuiltinPolicy(),
            guard=self.guard,
            approver=self.approver,
            decisions=self.decisions,
            grants=self.grants,
            sandbox=self.engine,
            prepare=lambda path: path.mkdir(exist_ok=True),
            clock=ManualClock(),
            observer=self.observer,
            redact=lambda text: text.replace("hunter2", "***"),
        )

    async def engine(self) -> Sandbox:
        if self.broken is not None:
            raise self.broken
        return self.sandbox

    def caller(self) -> Caller:
        return Caller("test:a", self.role, "person:test:a", "s", "turn1", self.workspace)

    async def run(self, script: str, request_id: str = "r1", **args: object) -> CommandResult:
        request = CommandRequest(request_id, "", "terminal", {"script": script, **args}, 0)
        return await self.pipeline.run(request, self.caller(), self.activity, self.before_start)

    async def before_start(self) -> None:
        self.steps.append("before_start")


def grant_of(number: int, draft: GrantDraft) -> Grant:
    return Grant(f"g{number}", draft.rule, draft.shape, draft.paths, "test:a", "s", "test:a", AT)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def answering(settlement: Settlement) -> Callable[[object], Settlement]:
    return lambda _spec: settlement


async def test_a_safe_command_leaves_decision_start_and_outcome(bench: Bench) -> None:
    result = await bench.run("echo hi")
    assert (result.status, result.text) == (CommandStatus.RAN, "ran")
    assert bench.decisions.kinds("r1") == ["decision", "start", "outcome"]
    assert bench.approver.asked == []
    assert bench.steps == ["before_start"]


async def test_what_needs_a_person_runs_after_the_answer_and_exactly_as_shown(bench: Bench) -> None:
    script = "rm -rf build\u202e  # \u200b"
    bench.approver.answer = answering(approved())
    result = await bench.run(script)
    assert result.status is CommandStatus.RAN
    (spec,) = bench.approver.asked
    (job,) = bench.sandbox.jobs
    assert spec.command == script
    assert job.argv == ("/bin/bash", "-c", script)
    assert bench.decisions.kinds("r1") == ["start", "outcome"], "the settlement has written the decision"


@pytest.mark.parametrize(
    ("settlement", "status", "words"),
    [
        (denied("wrong folder"), CommandStatus.DENIED, "wrong folder"),
        (Settlement(Settled.TIMED_OUT), CommandStatus.TIMED_OUT, "Nobody answered"),
        (Settlement(Settled.UNDELIVERABLE), CommandStatus.UNDELIVERABLE, "Nobody could be asked"),
    ],
)
async def test_every_end_but_approval_runs_nothing_and_reads_differently(
    bench: Bench, settlement: Settlement, status: CommandStatus, words: str
) -> None:
    bench.approver.answer = answering(settlement)
    result = await bench.run("rm -rf build")
    assert result.status is status
    assert words in result.text
    assert "Do not try it again" in result.text
    assert bench.sandbox.jobs == []


async def test_the_same_request_is_not_shown_again_in_the_turn_after_a_denial(bench: Bench) -> None:
    bench.approver.answer = answering(denied())
    await bench.run("rm -rf build", "r1")
    again = await bench.run("rm -rf build", "r2")
    assert again.status is CommandStatus.DENIED
    assert len(bench.approver.asked) == 1
    assert bench.decisions.kinds("r2") == ["decision"]


async def test_refusals_come_before_any_card(bench: Bench) -> None:
    result = await bench.run("rm -rf /")
    assert result.status is CommandStatus.REFUSED
    assert "No approval can lift this" in result.text
    assert bench.approver.asked == []
    assert bench.decisions.kinds("r1") == ["decision"]


async def test_without_an_engine_nobody_is_asked(bench: Bench) -> None:
    bench.broken = SandboxUnavailable("No sandbox works.", fix="Install bubblewrap.")
    result = await bench.run("rm -rf build")
    assert result.status is CommandStatus.UNAVAILABLE
    assert "Install bubblewrap" in result.text
    assert bench.approver.asked == []


async def test_viewers_act_on_nothing(bench: Bench) -> None:
    bench.role = Role.VIEWER
    result = await bench.run("echo hi")
    assert result.status is CommandStatus.REFUSED
    assert bench.sandbox.jobs == []


@pytest.mark.parametrize(
    "args",
    [
        {"workdir": "/etc"},
        {"workdir": "../.."},
        {"workdir": "a\0b"},
        {"workdir": 7},
        {"unknown": "x"},
        {"script": ""},
        {"script": "echo \0"},
        {"script": "echo \udc80"},
        {"script": "x" * 65_537},
        {"script": 5},
    ],
)
async def test_invalid_arguments_are_named_and_nothing_runs(bench: Bench, args: dict[str, object]) -> None:
    script = str(args.pop("script", "echo hi")) if not isinstance(args.get("script"), int) else args.pop("script")
    result = await bench.run(script, **args)  # type: ignore[arg-type]
    assert result.status is CommandStatus.INVALID
    assert result.text.startswith("Not run:")
    assert bench.sandbox.jobs == []


async def test_grants_run_without_asking_and_are_spent(bench: Bench) -> None:
    judgement = bench.guard.judge("rm -rf build")
    drafts = drafts_of(judgement)
    assert drafts
    bench.grants.grants = [
        Grant(f"g{n}", draft.rule, draft.shape, draft.paths, "test:a", "s", "test:a", AT)
        for n, draft in enumerate(drafts)
    ]
    assert (await bench.run("rm -rf build")).status is CommandStatus.RAN
    assert bench.approver.asked == []
    assert bench.grants.spent == [grant.id for grant in bench.grants.grants]
    decision = bench.decisions.rows[0][2]
    assert getattr(decision, "source", None) is DecisionSource.GRANT


async def test_a_grant_that_ended_meanwhile_asks(bench: Bench) -> None:
    drafts = drafts_of(bench.guard.judge("rm -rf build")) or ()
    bench.grants.grants = [
        Grant(f"g{n}", draft.rule, draft.shape, draft.paths, "test:a", "s", "test:a", AT)
        for n, draft in enumerate(drafts)
    ]
    bench.grants.gone = {grant.id for grant in bench.grants.grants}
    bench.approver.answer = answering(denied())
    assert (await bench.run("rm -rf build")).status is CommandStatus.DENIED


async def test_always_is_only_offered_to_admins(bench: Bench) -> None:
    bench.approver.answer = answering(denied())
    await bench.run("rm -rf build")
    bench.role = Role.OPERATOR
    await bench.run("rm -rf dist", "r2")
    first, second = bench.approver.asked
    assert Choice.ALWAYS in first.choices
    assert Choice.ALWAYS not in second.choices


async def test_what_cannot_be_read_has_only_once_and_deny(bench: Bench) -> None:
    bench.approver.answer = answering(denied())
    await bench.run('eval "$(cat unknown)"')
    (spec,) = bench.approver.asked
    assert spec.choices == (Choice.ONCE, Choice.DENY)
    assert spec.grants == ()


@pytest.mark.may_block
async def test_a_script_that_changes_between_the_answer_and_the_start_asks_again(bench: Bench) -> None:
    script = bench.workspace / "job.sh"
    script.write_text("echo one")

    def change_after_the_first(spec: object) -> Settlement:
        if len(bench.approver.asked) == 1:
            script.write_text("echo two")
        return approved()

    bench.approver.answer = change_after_the_first
    result = await bench.run("rm -rf build; bash job.sh")
    assert result.status is CommandStatus.RAN
    first, second = bench.approver.asked
    assert "job.sh" in second.reason
    assert first.digest == second.digest
    assert first.evidence != second.evidence


@pytest.mark.may_block
async def test_a_script_that_never_stands_still_is_refused(bench: Bench) -> None:
    script = bench.workspace / "job.sh"
    script.write_text("0")

    def change(spec: object) -> Settlement:
        script.write_text(str(len(bench.approver.asked)))
        return approved()

    bench.approver.answer = change
    result = await bench.run("rm -rf build; bash job.sh")
    assert result.status is CommandStatus.DENIED
    assert bench.sandbox.jobs == []


async def test_an_earlier_start_without_outcome_is_never_run_again(bench: Bench) -> None:
    await bench.run("echo hi", "r1")
    bench.decisions.rows = [row for row in bench.decisions.rows if row[0] != "outcome"]
    result = await bench.run("echo hi", "r1")
    assert result.status is CommandStatus.UNKNOWN
    assert len(bench.sandbox.jobs) == 1
    assert bench.decisions.kinds("r1") == ["decision", "start", "outcome"]


async def test_an_earlier_outcome_is_given_back(bench: Bench) -> None:
    first = await bench.run("echo hi", "r1")
    bench.sandbox.output = "other"
    assert await bench.run("echo hi", "r1") == replace(first, exit_code=0)
    assert len(bench.sandbox.jobs) == 1


async def test_cancelling_a_run_records_its_outcome(bench: Bench) -> None:
    bench.sandbox.hold = asyncio.Event()
    task = asyncio.create_task(bench.run("sleep 100"))
    while not bench.sandbox.jobs:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.decisions.kinds("r1") == ["decision", "start", "outcome"]
    assert bench.activity.held == []


async def test_cancelling_an_open_request_runs_nothing(bench: Bench) -> None:
    task = asyncio.create_task(bench.run("rm -rf build"))
    while not bench.approver.asked:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(bench.approver.cancelled) == 1
    assert bench.sandbox.jobs == []


async def test_an_engine_that_fails_is_an_outcome_and_a_sentence(bench: Bench) -> None:
    class Failing(MemorySandbox):
        async def run(self, job: object, on_output: object = None) -> object:  # type: ignore[override]
            raise OSError("no more pids")

    bench.sandbox = Failing()
    result = await bench.run("echo hi")
    assert result.status is CommandStatus.UNAVAILABLE
    assert "no more pids" in result.text
    assert bench.decisions.kinds("r1") == ["decision", "start", "outcome"]


async def test_secrets_in_the_output_do_not_reach_the_model_or_the_records(bench: Bench) -> None:
    bench.sandbox.output = "password is hunter2"
    result = await bench.run("cat notes")
    assert "hunter2" not in result.text
    assert "hunter2" not in str(bench.decisions.rows)


async def test_the_command_is_judged_where_it_starts(bench: Bench) -> None:
    bench.approver.answer = answering(denied())
    await bench.run("rm -rf sub", workdir="deep")
    (spec,) = bench.approver.asked
    assert spec.grants[0].paths == ("/workspace/deep/sub",)


async def test_long_scripts_are_judged_like_short_ones(bench: Bench) -> None:
    result = await bench.run("true;\n" * 1_000 + "rm -rf /")
    assert result.status is CommandStatus.REFUSED


async def test_stages_are_measured_in_order(bench: Bench) -> None:
    bench.approver.answer = answering(approved())
    await bench.run("rm -rf build")
    assert bench.observer.stages == ["validate", "policy", "guard", "engine", "grant", "confirm", "sandbox"]
    assert ("approval", None) in bench.activity.leases
    assert ("tool", 180.0) in bench.activity.leases
