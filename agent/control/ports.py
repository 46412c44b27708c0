"""What the control layer needs from outside, as protocols: approvals, records, grants, activity.

The gateway fulfils them in production; each has an in-memory twin in :mod:`agent.control.testing`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.control.clock import Clock
from agent.control.grants import Grant, GrantDraft
from agent.control.request import CommandRequest, CommandStatus

__all__ = [
    "Activity",
    "Approver",
    "AskSpec",
    "Caller",
    "Choice",
    "Clock",
    "Decision",
    "DecisionLog",
    "DecisionSource",
    "GrantStore",
    "Outcome",
    "Role",
    "Settled",
    "Settlement",
    "Standing",
    "StandingState",
]


class Role(enum.IntEnum):
    """Rights of a person; each includes those before it."""

    VIEWER = 0
    USER = 1
    OPERATOR = 2
    ADMIN = 3

    @classmethod
    def parse(cls, text: str) -> Role:
        """The role of that name, case ignored.

        Raises:
            ValueError: no such role; the message lists them.
        """
        try:
            return cls[text.upper()]
        except KeyError:
            names = ", ".join(role.name.lower() for role in cls)
            raise ValueError(f"unknown role {text!r}; the roles are {names}") from None


class Choice(enum.Enum):
    """The answers that an approval offers, in the order of the buttons."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a request is made: the one principal of the turn.

    Attributes:
        principal: ``http:owner``, ``telegram:42`` or a name from the policy.
        scope: ``person:PRINCIPAL`` or ``chat:PLATFORM:CHAT``; decides workspace, memory and search.
        workspace: host directory of the scope's workspace.
        origin: empty for the person's own turn; else names the child or job that asks.
    """

    principal: str
    role: Role
    scope: str
    session: str
    turn: str
    workspace: Path
    origin: str = ""


class Activity(Protocol):
    """A turn's handle on its session's watchdog; void once the turn has ended."""

    def touch(self, reason: str) -> None:
        """Real progress happened: output, a stream event, a step."""
        ...

    def lease(self, kind: str, limit_s: float | None) -> AbstractContextManager[None]:
        """A wait with a limit of its own; while inside it and within the limit the session counts as active.

        Args:
            kind: ``model``, ``tool``, ``approval``, ``question``, ``backoff`` or ``slot``.
            limit_s: seconds after which the lease no longer protects; None only where the wait's own record has the
                deadline.
        """
        ...


class Settled(enum.Enum):
    """How a request for approval ended.

    ``approved`` and ``denied`` are a person's will; the others say that nobody answered, and why.
    """

    APPROVED = "approved"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    UNDELIVERABLE = "undeliverable"


@dataclass(frozen=True, slots=True)
class AskSpec:
    """A request for approval as the pipeline puts it.

    Attributes:
        digest: see :func:`agent.control.request.digest_of`.
        title: one line for the head of the card.
        command: the whole command, exactly what will run; adapters make invisible characters visible.
        reason: why it is asked, in a sentence.
        rules: ids of the findings, worst first.
        impact: what it would do, computed by the control layer; empty where it cannot be known.
        choices: what is offered, in order; always ends with DENY.
        grants: one draft a finding; they become grants on SESSION or ALWAYS.
        evidence: digests of what the command names (program and script files), taken when it was shown.
    """

    request: CommandRequest
    caller: Caller
    digest: str
    title: str
    command: str
    reason: str
    rules: tuple[str, ...]
    choices: tuple[Choice, ...]
    impact: str = ""
    grants: tuple[GrantDraft, ...] = ()
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Settlement:
    """How an :class:`AskSpec` ended.

    Attributes:
        ask_id: the record; empty where none was made.
        by: principal who answered; empty where nobody did.
        reason: what the person gave as the reason of a denial.
        repeated: the same request was settled earlier in this turn, and that settlement is returned again.
    """

    outcome: Settled
    choice: Choice | None = None
    by: str = ""
    reason: str = ""
    ask_id: str = ""
    repeated: bool = False


class Approver(Protocol):
    """Asks people."""

    async def ask(self, spec: AskSpec) -> Settlement:
        """Open the request (or find it again after a restart by request id and digest) and wait for its end.

        The record of the decision is written in the same unit as the settlement. A request whose digest was denied in
        this turn is not shown again: its settlement comes back with ``repeated``. Cancelling the awaiting task cancels
        the request.
        """
        ...


class DecisionSource(enum.Enum):
    """Who decided."""

    SAFE = "safe"
    GRANT = "grant"
    PERSON = "person"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Decision:
    """The first of the three audit rows of a request.

    Attributes:
        status: None when it may run; else how the request ended without running.
        stage: ``validate``, ``policy``, ``guard``, ``grant``, ``confirm`` or ``sandbox``.
        detail: one plain sentence.
    """

    source: DecisionSource
    stage: str
    detail: str
    rules: tuple[str, ...] = ()
    grant_ids: tuple[str, ...] = ()
    status: CommandStatus | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The third audit row: how the run ended.

    Attributes:
        ended: value of :class:`agent.control.sandbox.base.Ended`, or ``failed``.
        result: text for the model, kept so that a crash before the journal's next step loses nothing.
    """

    ended: str
    exit_code: int | None
    duration_s: float
    output_bytes: int
    limits_by: str
    result: str


class StandingState(enum.Enum):
    """How far a request had come before a restart."""

    NEW = "new"
    STARTED = "started"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Standing:
    """What the records say of a request id.

    Attributes:
        result: the stored text for the model when ENDED.
    """

    state: StandingState
    result: str = ""
    exit_code: int | None = None


class DecisionLog(Protocol):
    """Writes the audit rows; each method returns after the commit."""

    async def standing(self, request_id: str) -> Standing:
        """How far the request had come; NEW for one never seen."""
        ...

    async def refused(self, request: CommandRequest, caller: Caller, digest: str, decision: Decision) -> None:
        """The request ends here without a run."""
        ...

    async def started(self, request: CommandRequest, caller: Caller, digest: str, decision: Decision | None) -> None:
        """About to exec. ``decision`` is None where a person's settlement has recorded it already."""
        ...

    async def ended(self, request: CommandRequest, caller: Caller, outcome: Outcome) -> None:
        """The run is over."""
        ...


class GrantStore(Protocol):
    """Standing permissions."""

    async def candidates(self, caller: Caller) -> Sequence[Grant]:
        """Grants of this session and principal, and the permanent ones; expired and used-up ones left out."""
        ...

    async def spend(self, grant_ids: Sequence[str]) -> bool:
        """Count one use of each; False when one of them has meanwhile ended or run out."""
        ...
