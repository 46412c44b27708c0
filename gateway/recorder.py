"""What is written down about decisions: audit rows and the state of tool calls, as parts of a unit of work."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from agent.control.clock import Clock
from agent.control.ports import Caller, Decision, Outcome, Standing, StandingState
from agent.control.request import CommandRequest
from gateway.persist import until_stored
from gateway.store import tool_calls
from gateway.store.audit import Chain
from gateway.store.database import Database

#: How long an outcome waits for a store that does not take it, in seconds; after that the call counts as unknown.
OUTCOME_WAITS_S = 20.0


class AuditTrail:
    """Appends to the chain: redacted text into it, the full text beside it."""

    def __init__(self, chain: Chain, redact: Callable[[str], str]) -> None:
        self._chain = chain
        self._redact = redact

    def append(
        self,
        conn: sqlite3.Connection,
        *,
        kind: str,
        request_id: str = "",
        scope: str = "",
        body: Mapping[str, Any],
        text: str = "",
        now: datetime,
    ) -> None:
        """Add one row inside the caller's unit of work."""
        self._chain.append(
            conn, kind=kind, request_id=request_id, body=self._clean(body), text=text, scope=scope, now=now
        )

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._redact(value)
        if isinstance(value, Mapping):
            return {key: self._clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean(item) for item in value]
        return value


class DecisionRecorder:
    """Fulfils :class:`agent.control.ports.DecisionLog` on the store."""

    def __init__(self, db: Database, trail: AuditTrail, clock: Clock) -> None:
        self._db = db
        self._trail = trail
        self._clock = clock
        self._now = clock.now

    async def standing(self, request_id: str) -> Standing:
        """How far the request had come."""
        row = await self._db.read(lambda conn: tool_calls.get(conn, request_id))
        if row is None or row.state == "planned":
            return Standing(StandingState.NEW)
        if row.state == "started":
            return Standing(StandingState.STARTED)
        return Standing(StandingState.ENDED, row.result or "", row.exit_code)

    async def refused(self, request: CommandRequest, caller: Caller, digest: str, decision: Decision) -> None:
        """Write the decision row of a request that ends without a run."""
        await self._db.write(lambda conn: self._decision(conn, request, caller, digest, decision))

    async def started(self, request: CommandRequest, caller: Caller, digest: str, decision: Decision | None) -> None:
        """Write the start row, and the decision row where no person has made one."""

        def unit(conn: sqlite3.Connection) -> None:
            if decision is not None:
                self._decision(conn, request, caller, digest, decision)
            now = self._now()
            self._trail.append(
                conn,
                kind="start",
                request_id=request.request_id,
                scope=caller.scope,
                body={"command": request.command, "digest": digest, "turn": caller.turn},
                now=now,
            )
            tool_calls.mark_started(conn, request.request_id, now)

        await self._db.write(unit)

    async def ended(self, request: CommandRequest, caller: Caller, outcome: Outcome) -> None:
        """Write the outcome row and keep the text for the model.

        What ran cannot be asked again how it went, so a store that is locked or full for a while is waited for.
        """

        def unit(conn: sqlite3.Connection) -> None:
            now = self._now()
            body = {
                "ended": outcome.ended,
                "exit_code": outcome.exit_code,
                "seconds": round(outcome.duration_s, 3),
                "output_bytes": outcome.output_bytes,
                "limits_by": outcome.limits_by,
            }
            self._trail.append(
                conn,
                kind="outcome",
                request_id=request.request_id,
                scope=caller.scope,
                body=body,
                text=outcome.result,
                now=now,
            )
            tool_calls.mark_ended(conn, request.request_id, outcome.result, outcome.exit_code, now)

        late = self._clock.monotonic() + OUTCOME_WAITS_S
        await until_stored(
            self._clock,
            lambda: self._db.write(unit),
            what="outcome",
            give_up=lambda: self._clock.monotonic() >= late,
        )

    def _decision(
        self, conn: sqlite3.Connection, request: CommandRequest, caller: Caller, digest: str, decision: Decision
    ) -> None:
        body = {
            "source": decision.source.value,
            "stage": decision.stage,
            "status": decision.status.value if decision.status else "may_run",
            "detail": decision.detail,
            "rules": list(decision.rules),
            "grants": list(decision.grant_ids),
            "command": request.command,
            "args": dict(request.args),
            "intent": request.intent,
            "digest": digest,
            "principal": caller.principal,
            "role": caller.role.name.lower(),
            "session": caller.session,
            "turn": caller.turn,
            "origin": caller.origin,
        }
        self._trail.append(
            conn,
            kind="decision",
            request_id=request.request_id,
            scope=caller.scope,
            body=body,
            text=full_text(request),
            now=self._now(),
        )


def full_text(request: CommandRequest) -> str:
    """The text of a request that goes into the erasable side table."""
    script = request.args.get("script")
    return script if isinstance(script, str) else ""
