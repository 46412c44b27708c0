"""The control pipeline: validate, judge, ask, record, run, record.

Stages, in this order: ``validate -> policy -> guard -> grant -> confirm -> start -> sandbox -> outcome``. Bans come
before the card: what may never run is refused, not asked. The engine is found before anybody is asked, so that nobody
approves what cannot run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from agent.control import wording
from agent.control.aio import finish
from agent.control.clock import Clock
from agent.control.commands import Command, Plan
from agent.control.evidence import changes, evidence_of
from agent.control.exceptions import ControlError, RequestInvalid
from agent.control.grants import Grant, cover, drafts_of
from agent.control.guard.verdict import Judgement, Verdict
from agent.control.policy import Policy
from agent.control.ports import (
    Activity,
    Approver,
    AskSpec,
    Caller,
    Choice,
    Decision,
    DecisionLog,
    DecisionSource,
    GrantStore,
    Outcome,
    Role,
    Settled,
    Settlement,
    StandingState,
)
from agent.control.request import CommandRequest, CommandResult, CommandStatus, digest_of
from agent.control.sandbox.base import Ended, Finished, Sandbox, SandboxSource, SandboxUnavailable

log = structlog.get_logger(__name__)

#: A request whose script keeps changing between the answer and the start is asked about this often, then refused.
MAX_ASKS = 3

#: Added to a command's own limit for the lease that covers it: starting and killing take time too.
LEASE_MARGIN_S = 60.0


#: Characters above which a script is judged in a worker thread: short ones take microseconds, a hostile 30 kB 100 ms.
LONG_SCRIPT = 2_048


class Judge(Protocol):
    """What the pipeline needs of the guard."""

    def judge(self, command: str, workdir: str | None = None) -> Judgement:
        """The verdict on shell text that starts in ``workdir``; never raises, and may be called from any thread."""
        ...


class Observer(Protocol):
    """Told how long each stage took and which ended by a time-out."""

    def stage(self, name: str, seconds: float) -> None:
        """A stage ended."""
        ...

    def stage_timed_out(self, name: str) -> None:
        """A stage was ended by its limit."""
        ...


@dataclass(frozen=True, slots=True)
class _Case:
    """A request on its way, with what the stages have found out."""

    request: CommandRequest
    caller: Caller
    plan: Plan
    judgement: Judgement
    digest: str


class Pipeline:
    """Fulfils :class:`agent.control.gate.Gate`."""

    def __init__(
        self,
        *,
        commands: Mapping[str, Command],
        policy: Policy,
        guard: Judge,
        approver: Approver,
        decisions: DecisionLog,
        grants: GrantStore,
        sandbox: SandboxSource,
        prepare: Callable[[Path], None],
        clock: Clock,
        observer: Observer,
        redact: Callable[[str], str],
    ) -> None:
        self._commands = commands
        self._policy = policy
        self._guard = guard
        self._approver = approver
        self._decisions = decisions
        self._grants = grants
        self._sandbox = sandbox
        self._prepare = prepare
        self._prepared: set[Path] = set()
        self._preparing = asyncio.Lock()
        self._clock = clock
        self._observer = observer
        self._redact = redact

    async def run(
        self,
        request: CommandRequest,
        caller: Caller,
        activity: Activity,
        before_start: Callable[[], Awaitable[None]],
    ) -> CommandResult:
        """See :class:`agent.control.gate.Gate`."""
        with structlog.contextvars.bound_contextvars(request_id=request.request_id):
            earlier = await self._earlier(request, caller)
            if earlier is not None:
                return earlier
            log.info("command_requested", command=request.command, intent=request.intent, by=caller.principal)
            case = await self._judged(request, caller)
            if isinstance(case, CommandResult):
                return case
            return await self._decide_and_run(case, activity, before_start)

    async def _earlier(self, request: CommandRequest, caller: Caller) -> CommandResult | None:
        """The result of a request that had been started before a restart."""
        standing = await self._decisions.standing(request.request_id)
        if standing.state is StandingState.ENDED:
            return CommandResult(CommandStatus.RAN, standing.result, standing.exit_code)
        if standing.state is StandingState.STARTED:
            log.warning("command_outcome_unknown")
            await self._decisions.ended(request, caller, Outcome("unknown", None, 0.0, 0, "", wording.UNKNOWN))
            return CommandResult(CommandStatus.UNKNOWN, wording.UNKNOWN)
        return None

    async def _judged(self, request: CommandRequest, caller: Caller) -> _Case | CommandResult:
        """Validation, policy and guard; a refusal ends the request here."""
        with self._stage("validate"):
            try:
                plan = self._plan(request)
            except RequestInvalid as error:
                return await self._refuse(request, caller, "", CommandStatus.INVALID, "validate", str(error))
        digest = digest_of(
            command=request.command,
            args=request.args,
            workdir=plan.workdir,
            profile=plan.profile,
            policy_version=self._policy.version,
            timeout_ms=round(plan.timeout_s * 1000),
        )
        with self._stage("policy"):
            refusal = self._policy.refuses(request, caller)
        if refusal is not None:
            return await self._refuse(
                request, caller, digest, CommandStatus.REFUSED, "policy", refusal.detail, rules=(refusal.rule,)
            )
        with self._stage("guard"):
            judgement = await self._judgement(plan)
        if judgement.verdict is Verdict.REFUSE:
            worst = judgement.findings[0]
            return await self._refuse(
                request,
                caller,
                digest,
                CommandStatus.REFUSED,
                "guard",
                f"{worst.reason.rstrip('.')} ({worst.rule}).",
                rules=judgement.rules,
                alternative=worst.alternative,
            )
        return _Case(request, caller, plan, judgement, digest)

    async def _judgement(self, plan: Plan) -> Judgement:
        if plan.script is None:
            return Judgement(Verdict.SAFE)
        if len(plan.script) <= LONG_SCRIPT:
            return self._guard.judge(plan.script, plan.workdir)
        return await asyncio.to_thread(self._guard.judge, plan.script, plan.workdir)

    def _plan(self, request: CommandRequest) -> Plan:
        command = self._commands.get(request.command)
        if command is None:
            known = ", ".join(sorted(self._commands))
            raise RequestInvalid(f"there is no command {request.command!r}.", fix=f"Known: {known}.")
        return command.plan(request)

    async def _refuse(
        self,
        request: CommandRequest,
        caller: Caller,
        digest: str,
        status: CommandStatus,
        stage: str,
        detail: str,
        *,
        rules: tuple[str, ...] = (),
        alternative: str = "",
    ) -> CommandResult:
        log.info("command_stopped", stage=stage, status=status.value, detail=detail, rules=list(rules))
        decision = Decision(DecisionSource.REFUSAL, stage, detail, rules=rules, status=status)
        await self._decisions.refused(request, caller, digest, decision)
        return wording.refused(status, self._redact(detail), alternative)

    async def _decide_and_run(
        self, case: _Case, activity: Activity, before_start: Callable[[], Awaitable[None]]
    ) -> CommandResult:
        try:
            with self._stage("engine"):
                engine = await self._sandbox()
                await self._ready(case.caller.workspace)
        except SandboxUnavailable as error:
            return await self._refuse(
                case.request, case.caller, case.digest, CommandStatus.UNAVAILABLE, "sandbox", str(error)
            )
        decision: Decision | None
        if case.judgement.verdict is Verdict.SAFE:
            decision = Decision(DecisionSource.SAFE, "guard", "Nothing found that needs a person.")
            await before_start()
        else:
            decision = await self._granted(case, before_start)
            if decision is None:
                denial = await self._confirmed(case, activity, before_start)
                if denial is not None:
                    return denial
        return await self._execute(case, engine, decision, activity)

    async def _ready(self, workspace: Path) -> None:
        """Make the workspace once; a later run finds it, or fails and says why."""
        if workspace in self._prepared:
            return
        async with self._preparing:  # in order of arrival, so that the cards of one message keep theirs
            if workspace not in self._prepared:
                await asyncio.to_thread(self._prepare, workspace)
                self._prepared.add(workspace)

    async def _granted(self, case: _Case, before_start: Callable[[], Awaitable[None]]) -> Decision | None:
        """A decision by standing grants, or None when a person must be asked.

        They are looked up again when the call's turn has come, which may be minutes later: until then one may have been
        revoked, expired or used up.
        """
        with self._stage("grant"):
            if not await self._covering(case):
                return None
        await before_start()
        grants = await self._covering(case)
        if not grants or not await self._grants.spend([grant.id for grant in grants]):
            return None
        ids = tuple(grant.id for grant in grants)
        log.info("command_granted", grants=list(ids))
        return Decision(DecisionSource.GRANT, "grant", "Covered by a grant.", rules=case.judgement.rules, grant_ids=ids)

    async def _covering(self, case: _Case) -> tuple[Grant, ...] | None:
        return cover(case.judgement, await self._grants.candidates(case.caller))

    async def _confirmed(
        self, case: _Case, activity: Activity, before_start: Callable[[], Awaitable[None]]
    ) -> CommandResult | None:
        """Ask until the answer fits what would run now; None means approved."""
        evidence = await evidence_of(case.judgement.scripts, case.caller.workspace)
        note = ""
        for _ in range(MAX_ASKS):
            settlement = await self._asked(case, evidence, note, activity)
            log.info(
                "command_answered", outcome=settlement.outcome.value, by=settlement.by, repeated=settlement.repeated
            )
            if settlement.outcome is not Settled.APPROVED:
                if settlement.repeated:
                    return await self._refuse(
                        case.request,
                        case.caller,
                        case.digest,
                        CommandStatus.DENIED,
                        "confirm",
                        "The same command was not approved earlier in this turn.",
                    )
                return wording.not_approved(settlement)
            await before_start()
            now = await evidence_of(case.judgement.scripts, case.caller.workspace)
            if now == evidence:
                return None
            note, evidence = changes(evidence, now), now
        detail = "What it would run keeps changing while people look at it."
        return await self._refuse(case.request, case.caller, case.digest, CommandStatus.DENIED, "confirm", detail)

    async def _asked(self, case: _Case, evidence: str, note: str, activity: Activity) -> Settlement:
        drafts = drafts_of(case.judgement)
        findings = case.judgement.findings
        choices = [Choice.ONCE]
        if drafts is not None:
            choices.append(Choice.SESSION)
            if case.caller.role >= Role.ADMIN and all(finding.grantable for finding in findings):
                choices.append(Choice.ALWAYS)
        choices.append(Choice.DENY)
        paths = tuple(dict.fromkeys(path for finding in findings for path in finding.paths))
        spec = AskSpec(
            request=case.request,
            caller=case.caller,
            digest=case.digest,
            title="Run this command?",
            command=case.plan.shown,
            reason=" ".join(part for part in (note, _sentence(case.judgement)) if part),
            rules=case.judgement.rules,
            choices=tuple(choices),
            impact=f"Paths: {', '.join(paths)}" if paths else "",
            grants=drafts or (),
            evidence=evidence,
        )
        with self._stage("confirm"), activity.lease("approval", None):
            settlement = await self._approver.ask(spec)
        if settlement.outcome is Settled.TIMED_OUT:
            self._observer.stage_timed_out("confirm")
        return settlement

    async def _execute(
        self, case: _Case, engine: Sandbox, decision: Decision | None, activity: Activity
    ) -> CommandResult:
        """Record the start, run, record the outcome; the outcome is written even when the turn is cancelled."""
        await self._decisions.started(case.request, case.caller, case.digest, decision)
        log.info("command_started", engine=engine.name, timeout_s=case.plan.timeout_s)
        activity.touch("tool_start")
        began = self._clock.monotonic()
        try:
            with self._stage("sandbox"), activity.lease("tool", case.plan.timeout_s + LEASE_MARGIN_S):
                finished = await engine.run(
                    case.plan.job(case.request, case.caller), on_output=lambda _: activity.touch("tool_output")
                )
        except asyncio.CancelledError:
            outcome = Outcome("cancelled", None, self._clock.monotonic() - began, 0, "", "Stopped before its end.")
            await finish(self._decisions.ended(case.request, case.caller, outcome), name="record-cancelled-command")
            raise
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the start that is recorded is owed an outcome
            return await self._failed(case, error, self._clock.monotonic() - began)
        return await self._ended(case, finished, activity)

    async def _failed(self, case: _Case, error: Exception, seconds: float) -> CommandResult:
        text = self._redact(f"The sandbox could not run it: {error}")
        log.error("command_failed", error=str(error), exc_info=error)
        outcome = Outcome("failed", None, seconds, 0, "", text)
        await finish(self._decisions.ended(case.request, case.caller, outcome), name="record-failed-command")
        return CommandResult(CommandStatus.UNAVAILABLE, text)

    async def _ended(self, case: _Case, finished: Finished, activity: Activity) -> CommandResult:
        activity.touch("tool_end")
        if finished.ended is Ended.TIMED_OUT:
            self._observer.stage_timed_out("sandbox")
        try:
            text = self._redact(case.plan.read(finished))
        except ControlError as error:
            text = self._redact(str(error))
        outcome = Outcome(
            ended=finished.ended.value,
            exit_code=finished.exit_code,
            duration_s=finished.duration_s,
            output_bytes=finished.output.total_bytes,
            limits_by=finished.limits_by,
            result=text,
        )
        log.info(
            "command_ended",
            ended=finished.ended.value,
            exit_code=finished.exit_code,
            seconds=round(finished.duration_s, 3),
            output_bytes=finished.output.total_bytes,
            limits_by=finished.limits_by,
        )
        await finish(self._decisions.ended(case.request, case.caller, outcome), name="record-ended-command")
        return CommandResult(CommandStatus.RAN, text, finished.exit_code)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self._observer.stage(name, self._clock.monotonic() - began)


def _sentence(judgement: Judgement) -> str:
    """The worst finding's reason, how many more there are, and the safer way."""
    worst = judgement.findings[0]
    more = len(judgement.findings) - 1
    others = f" ({more} more finding{'s' if more > 1 else ''}.)" if more else ""
    safer = f" Safer: {worst.alternative}" if worst.alternative else ""
    return f"{worst.reason[:1].upper()}{worst.reason[1:].rstrip('.')}.{others}{safer}"
