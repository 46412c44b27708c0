"""Requests to people: opened once, settled once, durable in between.

A wait for a person is one row and one future. Only an authorised answer, the request's own deadline or the end of its
turn settles it; each of the three is one unit of work with its audit row, its event and what has to be shown.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

import structlog

from adapters.base import Sent, Tap, TapResult, TapVerdict
from agent.control.aio import finish
from agent.control.clock import Clock
from agent.control.ports import AskSpec, Choice, Role, Settled, Settlement
from agent.control.request import DIGEST_VERSION
from gateway.access import Identity
from gateway.ask_effects import AskEffects
from gateway.deadlines import Deadlines
from gateway.persist import until_stored
from gateway.store import asks
from gateway.store.asks import AskRow
from gateway.store.database import Database

log = structlog.get_logger(__name__)

#: If at start the wall clock is behind the newest row by more than this, no deadline can be trusted: all requests end.
CLOCK_TOLERANCE = timedelta(seconds=60)


class PermanentGrants(Protocol):
    """Where an answer "always" is kept."""

    async def allow(self, row: AskRow, by: str) -> None:
        """Add the request's drafts to the permanent grants."""
        ...


class Slots(Protocol):
    """The place of a running turn, given back while it waits for a person."""

    def waiting(self, turn: str) -> None:
        """The turn waits for a person."""
        ...

    async def going_on(self, turn: str) -> None:
        """A wait is over; returns when the turn has a place again."""
        ...


@dataclass(frozen=True, slots=True)
class _Opened:
    """What opening a request came to: a row, new, found again, or settled earlier."""

    row: AskRow
    repeated: bool = False


class Approvals:
    """Fulfils :class:`agent.control.ports.Approver`, and takes the answers."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        effects: AskEffects,
        permanent: PermanentGrants,
        slots: Slots,
        timeout_s: float,
    ) -> None:
        self._db = db
        self._clock = clock
        self._effects = effects
        self._permanent = permanent
        self._slots = slots
        self._timeout_s = timeout_s
        self._waiting: dict[str, list[asyncio.Future[AskRow]]] = {}
        self._deadlines = Deadlines(clock)
        self._suspending = False

    @property
    def open_waits(self) -> int:
        """Requests that a turn of this process waits for."""
        return len(self._waiting)

    def suspend(self) -> None:
        """From now on a cancelled wait leaves its request open: the daemon is stopping and will go on with it."""
        self._suspending = True

    async def ask(self, spec: AskSpec) -> Settlement:
        """See :class:`agent.control.ports.Approver`."""
        opened = await self._db.write(lambda conn: self._open(conn, spec))
        row = opened.row
        if row.state != "pending":
            return _settlement(row, repeated=opened.repeated)
        future: asyncio.Future[AskRow] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(row.id, []).append(future)
        self._effects.opened(row)
        self._deadlines.add(row.id, row.expires_at)
        self._slots.waiting(row.turn)
        try:
            settled = await self._outcome(row.id, future)
        except asyncio.CancelledError:
            if not self._suspending:
                await finish(self._settle(row.id, "cancelled"), name=f"cancel-ask-{row.id[:6]}")
            raise
        finally:
            self._forget(row.id, future)
        await self._slots.going_on(row.turn)
        return _settlement(settled)

    async def _outcome(self, ask_id: str, future: asyncio.Future[AskRow]) -> AskRow:
        """The settled row. Read once more first: it may have been settled between the commit and this wait."""
        row = await self._db.read(lambda conn: asks.get(conn, ask_id))
        if row is not None and row.state != "pending":
            return row
        return await future

    async def answer(self, tap: Tap, who: Identity) -> TapResult:
        """Take one person's answer; nothing but a valid choice of somebody who may answer approves."""
        row = await self._db.read(lambda conn: asks.get(conn, tap.ask_id))
        if row is None:
            return TapResult(TapVerdict.UNKNOWN, text="There is no such request.")
        if not may_answer(row, who) or not _stands_where_shown(row, tap.shown_at):
            log.warning("answer_refused", ask=row.code, by=who.principal, request_id=row.request_id)
            return TapResult(TapVerdict.NOT_YOURS, text="This request is not yours to answer. It stays open.")
        if row.state == "pending" and row.expires_at <= self._clock.now():
            row = await self._settle(row.id, "timed_out") or row
        if row.state != "pending":
            return _ended(row)
        choice = _choice_of(tap, row, who)
        if isinstance(choice, TapResult):
            return choice
        state = "denied" if choice is Choice.DENY else "approved"
        settled = await self._settle(row.id, state, choice=choice, by=who.principal, reason=tap.reason)
        if settled is None:
            latest = await self._db.read(lambda conn: asks.get(conn, row.id))
            return _ended(latest or row)
        if choice is Choice.ALWAYS:
            await self._permanent.allow(settled, who.principal)
        return TapResult(TapVerdict.SETTLED, outcome=state, choice=choice.value, have=1, text=_thanks(choice))

    async def undeliverable(self, ask_id: str) -> None:
        """No place can show the request: denied at once."""
        await self._settle(ask_id, "undeliverable")

    def cancel_turn(self, conn: sqlite3.Connection, turn: str, now: datetime) -> list[AskRow]:
        """End the open requests of a turn inside the unit that ends it; pass the rows to :meth:`wake` after it."""
        ended = []
        for row in asks.open_of_turn(conn, turn):
            settled = self._effects.settle(conn, row.id, "cancelled", None, "", "", now)
            if settled is not None:
                ended.append(settled)
        return ended

    def wake(self, rows: Sequence[AskRow]) -> None:
        """Tell whoever waits that these have ended."""
        for row in rows:
            self._effects.settled(row)
            self._resolve(row)

    async def recover(self) -> None:
        """At start: end requests that cannot be trusted any more, re-arm the deadlines of the others."""
        rows = await self._db.read(asks.all_open)
        newest = await self._db.read(asks.newest_time)
        now = self._clock.now()
        stepped_back = newest is not None and now < newest - CLOCK_TOLERANCE
        for row in rows:
            if stepped_back or row.expires_at <= now:
                await self._settle(row.id, "timed_out")
            elif row.digest_version != DIGEST_VERSION:
                await self._settle(row.id, "cancelled")
            else:
                self._deadlines.add(row.id, row.expires_at)

    async def watch(self) -> None:
        """Deny what nobody answers; runs as long as the daemon does."""
        while True:
            for ask_id in await self._deadlines.due():
                await until_stored(self._clock, partial(self._settle, ask_id, "timed_out"), what="deadline")

    def _open(self, conn: sqlite3.Connection, spec: AskSpec) -> _Opened:
        now = self._clock.now()
        request, caller = spec.request, spec.caller
        earlier = asks.latest(conn, request.request_id, spec.digest)
        if earlier is not None and earlier.evidence == spec.evidence:
            return _Opened(earlier)
        if earlier is not None and earlier.state == "pending":
            self._effects.settle(conn, earlier.id, "cancelled", None, "", "", now)
        blocked = asks.blocked(conn, caller.turn, spec.digest)
        if blocked is not None:
            return _Opened(blocked, repeated=True)
        row = AskRow(
            id=secrets.token_urlsafe(18),
            code=asks.fresh_code(conn, caller.session),
            kind="approval",
            session=caller.session,
            turn=caller.turn,
            request_id=request.request_id,
            digest=spec.digest,
            digest_version=DIGEST_VERSION,
            evidence=spec.evidence,
            title=spec.title,
            command=spec.command,
            reason=spec.reason,
            rules=spec.rules,
            impact=spec.impact,
            choices=tuple(choice.value for choice in spec.choices),
            grants=tuple(
                {"rule": draft.rule, "shape": draft.shape, "paths": list(draft.paths)} for draft in spec.grants
            ),
            requester=caller.principal,
            requester_role=caller.role.name.lower(),
            origin=caller.origin,
            created_at=now,
            expires_at=now + timedelta(seconds=self._timeout_s),
        )
        return _Opened(self._effects.open(conn, row, spec, now))

    async def _settle(
        self, ask_id: str, state: str, *, choice: Choice | None = None, by: str = "", reason: str = ""
    ) -> AskRow | None:
        """Settle in one unit of work; None when it had been settled already."""
        row = await self._db.write(
            lambda conn: self._effects.settle(
                conn, ask_id, state, choice.value if choice else None, by, reason, self._clock.now()
            )
        )
        if row is not None:
            self.wake([row])
        return row

    def _resolve(self, row: AskRow) -> None:
        self._deadlines.drop(row.id)
        for future in self._waiting.get(row.id, ()):
            if not future.done():
                future.set_result(row)

    def _forget(self, ask_id: str, future: asyncio.Future[AskRow]) -> None:
        waiting = self._waiting.get(ask_id, [])
        if future in waiting:
            waiting.remove(future)
        if not waiting:
            self._waiting.pop(ask_id, None)


def may_answer(row: AskRow, who: Identity) -> bool:
    """Whether ``who`` may answer: the requester if they are an operator, else any operator."""
    if who.role < Role.OPERATOR:
        return False
    if Role.parse(row.requester_role) >= Role.OPERATOR:
        return who.principal == row.requester
    return True


def _stands_where_shown(row: AskRow, shown_at: Sent | None) -> bool:
    """A tap on a platform's message counts only on the very message that carries the card."""
    if shown_at is None:
        return True
    return any(ref.get("chat") == shown_at.chat and ref.get("message") == shown_at.message for ref in row.shown)


def _choice_of(tap: Tap, row: AskRow, who: Identity) -> Choice | TapResult:
    """What was chosen, if the card offers it and ``who`` may choose it."""
    if tap.choice is None or tap.choice not in row.choices:
        return TapResult(TapVerdict.NOT_A_CHOICE, text=f"Choose one of: {', '.join(row.choices)}.")
    choice = Choice(tap.choice)
    if choice is Choice.ALWAYS and who.role < Role.ADMIN:
        # The card was made for an admin; over a restart they may have become less.
        return TapResult(TapVerdict.NOT_YOURS, text="Only an admin may approve for good. It stays open.")
    return choice


def _settlement(row: AskRow, *, repeated: bool = False) -> Settlement:
    return Settlement(
        outcome=Settled(row.state),
        choice=Choice(row.choice) if row.choice else None,
        by=row.settled_by or "",
        reason=row.deny_reason,
        ask_id=row.id,
        repeated=repeated,
    )


def _ended(row: AskRow) -> TapResult:
    if row.state == "timed_out":
        return TapResult(TapVerdict.EXPIRED, outcome=row.state, text="Too late: nobody answered in time. Nothing ran.")
    by = f" by {row.settled_by}" if row.settled_by else ""
    text = f"Already {row.state.replace('_', ' ')}{by}."
    return TapResult(TapVerdict.ALREADY_SETTLED, outcome=row.state, choice=row.choice or "", text=text)


def _thanks(choice: Choice) -> str:
    return {
        Choice.ONCE: "Approved once.",
        Choice.SESSION: "Approved for this session.",
        Choice.ALWAYS: "Approved for good. /grants lists it.",
        Choice.DENY: "Denied. Nothing runs.",
    }[choice]
