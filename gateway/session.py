"""The session actor: one message after the other becomes one turn after the other."""

from __future__ import annotations

import asyncio
import enum
import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

import structlog

from agent.budget import IterationBudget
from agent.control.clock import Clock
from agent.control.ports import Caller, Role
from agent.loop import run_conversation
from agent.models.base import Model
from agent.tools.registry import Registry
from agent.turn_context import Answer, TurnContext, TurnLimits
from gateway.activity import Pulse, StageObserver, TurnActivity
from gateway.journal import EventWriter, TurnEvents, TurnJournal, TurnRef
from gateway.persist import until_stored
from gateway.slots import Slots
from gateway.store import inbox, messages, sessions, turns
from gateway.store.database import Database
from gateway.store.exceptions import StoreError
from gateway.store.inbox import InboxRow
from gateway.store.turns import TurnRow
from gateway.streaming import EventHub
from gateway.turn_end import Ending, TurnEnder

log = structlog.get_logger(__name__)

#: A turn that was found unfinished after this many crashes is not tried again.
MAX_CRASHES = 3

#: Said where somebody lost access between writing and the turn, over a restart.
NO_ACCESS = "Not done: who asked for this may not use this gateway any more."


#: Longest title of a session, in characters.
TITLE_CHARS = 60


class StopReason(enum.Enum):
    """Why a running turn was cancelled from outside."""

    PERSON = "person"
    WATCHDOG = "watchdog"
    #: The daemon stops: the turn stays unfinished in the journal and goes on at the next start.
    SUSPEND = "suspend"


class Mind(Protocol):
    """What a turn thinks with; built once by the composition root."""

    def model(self) -> Model:
        """The model for a new turn."""
        ...

    def tools(self) -> Registry:
        """The tools of a turn."""
        ...

    def system(self) -> str:
        """The system prompt."""
        ...


class TurnObserver(StageObserver, Protocol):
    """Counts turns and times the model."""

    def turn_ended(self, status: str) -> None:
        """A turn is over."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """What every session works with."""

    db: Database
    clock: Clock
    hub: EventHub
    writer: EventWriter
    slots: Slots
    mind: Mind
    ender: TurnEnder
    observer: TurnObserver
    workspace: Callable[[str], Path]
    role_of: Callable[[str], Role | None]
    limits: TurnLimits
    max_turns: int


@dataclass(frozen=True, slots=True)
class _Claim:
    """A turn to run: a new one, or one that a restart interrupted."""

    turn: TurnRow
    scope: str
    resumed: bool


def turn_id(now: datetime) -> str:
    """A new turn's id: its time first, so that new rows lie side by side in every index; then chance."""
    return f"turn_{round(now.timestamp() * 1000):012x}{secrets.token_hex(6)}"


def title_of(text: str) -> str:
    """What a session is called in lists until somebody names it: the first line of its first message."""
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1].rstrip()}…"


class Session:
    """One session's actor; lives only while it has work.

    Control input never comes here: it calls :meth:`stop` and reads the store.
    """

    def __init__(self, key: str, services: Services) -> None:
        self.key = key
        self.more = False
        self._services = services
        self._pulse = Pulse(services.clock)
        self._running: asyncio.Task[Answer] | None = None
        self._turn: TurnRef | None = None
        self._stop_reason: StopReason | None = None
        self._stop_text = ""
        self._claiming = False
        self._over = asyncio.Event()
        self._over.set()

    @property
    def turn(self) -> str | None:
        """Id of the running turn."""
        return self._turn.turn if self._turn else None

    @property
    def waits_for_person(self) -> bool:
        """Whether everything that the turn does now is waiting for people or for a place."""
        return self._pulse.only_waits()

    def idle_s(self) -> float:
        """Seconds without a sign of life of the running turn; 0 when none runs."""
        return self._pulse.idle_s() if self._running is not None else 0.0

    def doing(self) -> str:
        """What the turn was last seen doing, for people."""
        return self._pulse.reason

    def stop(self, reason: StopReason, text: str = "") -> bool:
        """Cancel the running turn with everything that it started; False when none runs.

        A turn that is just being begun counts as running: it ends before its first step.
        """
        running = self._running is not None and not self._running.done()
        if not (running or self._claiming):
            return False
        if self._stop_reason is None:
            self._stop_reason, self._stop_text = reason, text
        if self._running is not None:
            self._running.cancel(reason.value)
        return True

    async def turn_over(self) -> None:
        """Return once the running turn has ended and its end is stored; at once when none runs."""
        await self._over.wait()

    async def work(self) -> bool:
        """Run the next turn to its end; False when there is none."""
        self._stop_reason, self._stop_text = None, ""
        self._over.clear()
        try:
            return await self._work()
        finally:
            self._turn = None
            self._over.set()

    async def _work(self) -> bool:
        self._claiming = True
        try:
            claim = await self._services.db.write(self._claim)
        finally:
            self._claiming = False
        if claim is None:
            return False
        ref = TurnRef(self.key, claim.turn.id)
        self._services.hub.text_ended(self.key)  # of a turn that is taken up again: the model begins anew
        self._services.hub.stored(self.key)
        with structlog.contextvars.bound_contextvars(session=self.key, turn=ref.turn):
            log.info("turn_resumed" if claim.resumed else "turn_started", principal=claim.turn.principal)
            if claim.turn.crash_count >= MAX_CRASHES:
                text = f"The daemon crashed {MAX_CRASHES} times while it worked on this, so I gave up. Try another way."
                await self._end(ref, Ending.failed(text))
                return True
            await self._run(claim, ref)
        return True

    def _claim(self, conn: sqlite3.Connection) -> _Claim | None:
        """The unfinished turn, or a new one for the oldest queued message."""
        session = sessions.get(conn, self.key)
        if session is None:
            return None
        unfinished = turns.running(conn, self.key)
        if unfinished is not None:
            return _Claim(unfinished, session.scope, resumed=True)
        item = inbox.next_queued(conn, self.key)
        if item is None:
            return None
        if not session.title:
            sessions.set_title(conn, self.key, title_of(item.text))
        return _Claim(self._begin(conn, item), session.scope, resumed=False)

    def _begin(self, conn: sqlite3.Connection, item: InboxRow) -> TurnRow:
        now = self._services.clock.now()
        ref = TurnRef(self.key, turn_id(now))
        turn = turns.start(conn, id=ref.turn, session=self.key, principal=item.principal, role=item.role, now=now)
        inbox.take(conn, item.id, ref.turn)
        messages.add_user(conn, self.key, ref.turn, item.text, now)
        self._services.writer.add(conn, ref, "turn.started", {"turn": ref.turn, "message_id": item.message_ref})
        return turn

    async def _run(self, claim: _Claim, ref: TurnRef) -> None:
        self._turn = ref
        ending = self._stopped() if self._stop_reason is not None else await self._conversation(claim, ref)
        if ending is not None:
            await self._end(ref, ending)

    async def _conversation(self, claim: _Claim, ref: TurnRef) -> Ending | None:
        slots = self._services.slots
        activity = TurnActivity(self._pulse, self._services.observer, lambda: slots.waiting(ref.turn))
        activity.touch("turn started")
        self._running = asyncio.create_task(self._converse(claim, ref, activity), name=f"turn-{ref.turn}")
        try:
            return await self._ending(self._running)
        finally:
            activity.end()
            slots.leave(ref.turn)
            self._running = None

    async def _converse(self, claim: _Claim, ref: TurnRef, activity: TurnActivity) -> Answer:
        services = self._services
        with activity.lease("slot", None):
            await services.slots.enter(ref.turn)
        role = services.role_of(claim.turn.principal)
        if role is None:
            return Answer(NO_ACCESS, failed=True)
        caller = Caller(
            principal=claim.turn.principal,
            role=role,
            scope=claim.scope,
            session=self.key,
            turn=ref.turn,
            workspace=services.workspace(claim.scope),
        )
        context = TurnContext(
            caller=caller,
            journal=TurnJournal(
                db=services.db, hub=services.hub, writer=services.writer, ref=ref, now=services.clock.now
            ),
            activity=activity,
            events=TurnEvents(db=services.db, hub=services.hub, writer=services.writer, ref=ref),
            model=services.mind.model(),
            tools=services.mind.tools(),
            budget=IterationBudget(max(1, services.max_turns - claim.turn.iterations)),
            clock=services.clock,
            limits=services.limits,
            system=services.mind.system(),
        )
        return await run_conversation(context)

    async def _ending(self, running: asyncio.Task[Answer]) -> Ending | None:
        """How the turn ended; None when it stays open for the next start."""
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait([running])
            raise
        if running.cancelled():
            return self._stopped()
        error = running.exception()
        if error is not None and self._stop_reason is not None:
            # Something failed while the turn was being stopped; that must not make it go on.
            log.warning("turn_failed_while_stopping", exc_info=error)
            return self._stopped()
        if error is None:
            answer = running.result()
            return Ending.failed(answer.text) if answer.failed else Ending.done(answer.text)
        if isinstance(error, StoreError):
            raise error
        log.error("turn_failed", exc_info=error)
        return Ending.failed("Something went wrong inside the gateway, so this was not answered. Please try again.")

    def _stopped(self) -> Ending | None:
        match self._stop_reason:
            case StopReason.SUSPEND:
                log.info("turn_suspended")
                return None
            case StopReason.WATCHDOG:
                return Ending.cancelled(self._stop_text)
            case _:
                return Ending.cancelled(self._stop_text or "Stopped.")

    async def _end(self, ref: TurnRef, ending: Ending) -> None:
        """Write the ending down, however long the store takes to be writable again."""
        services = self._services
        more = await until_stored(services.clock, lambda: services.ender.end(ref, ending), what="turn end")
        self.more = more or self.more
        services.observer.turn_ended(ending.status)
        log.info("turn_ended", status=ending.status, chars=len(ending.text))
