"""Which sessions live: started when they have work, gone when they have none, drained at the end."""

from __future__ import annotations

import asyncio
import sqlite3
from contextvars import Context

import structlog

from agent.control.clock import Clock
from gateway.session import Services, Session, StopReason
from gateway.store import inbox, sessions, turns
from gateway.store.database import Database
from gateway.store.exceptions import StoreError

log = structlog.get_logger(__name__)

#: Longest pause before a session that failed is tried again.
MAX_PAUSE_S = 30.0

#: After the drain, actors get this long to kill what runs and to write that down.
CUT_S = 10.0


class Sessions:
    """Owns the actors. An idle session costs its rows and nothing here."""

    def __init__(self, *, db: Database, clock: Clock, services: Services, tasks: asyncio.TaskGroup) -> None:
        self._db = db
        self._clock = clock
        self._services = services
        self._tasks = tasks
        self._live: dict[str, Session] = {}
        self._driving: dict[str, asyncio.Task[None]] = {}
        self._draining = False

    def __len__(self) -> int:
        return len(self._live)

    def live(self) -> tuple[Session, ...]:
        """Sessions that work now."""
        return tuple(self._live.values())

    def get(self, key: str) -> Session | None:
        """The actor of ``key`` if it works now."""
        return self._live.get(key)

    def wake(self, key: str) -> None:
        """The session has work: start its actor, or let the running one look again."""
        if self._draining:
            return
        session = self._live.get(key)
        if session is not None:
            session.more = True
            return
        session = self._live[key] = Session(key, self._services)
        # an empty context: whoever wakes a session leaves nothing of its own in it
        self._driving[key] = self._tasks.create_task(self._drive(session), name=f"session-{key}", context=Context())

    async def recover(self) -> int:
        """At start: wake every session with unfinished or queued work; how many."""
        keys = await self._db.read(inbox.sessions_with_work)
        for key in keys:
            self.wake(key)
        return len(keys)

    def stop(self, key: str, text: str = "") -> bool:
        """Cancel the running turn of ``key`` for a person; False when none runs."""
        session = self._live.get(key)
        return session is not None and session.stop(StopReason.PERSON, text)

    async def turn_over(self, key: str) -> None:
        """Return once no turn of ``key`` runs, its end stored."""
        session = self._live.get(key)
        if session is not None:
            await session.turn_over()

    async def delete(self, key: str) -> None:
        """End the running turn, give up what is queued and forget the session; no turn begins in between."""
        while not await self._db.write(lambda conn: _delete_idle(conn, key)):
            if not self.stop(key):
                # Its actor is between two steps: the turn is claimed but not under way, or waits for the store.
                await self._clock.sleep(0.05)
            await self.turn_over(key)
        self._services.hub.stored(key, settles=True)

    async def drain(self, seconds: float) -> None:
        """Let working turns end within ``seconds``; those that wait, and the rest then, go on at the next start."""
        self._draining = True
        for session in self.live():
            if session.waits_for_person:
                session.stop(StopReason.SUSPEND)
        if self._driving:
            try:
                async with self._clock.timeout(seconds):
                    await self._until_idle()
            except TimeoutError:
                log.warning("drain_cut", turns=[session.turn for session in self.live()])
        for session in self.live():
            session.stop(StopReason.SUSPEND)
        await self._cut()

    async def _cut(self) -> None:
        """See the actors end; one that cannot write its end down is left to the next start, its turn unfinished."""
        if self._driving:
            await asyncio.wait(list(self._driving.values()), timeout=CUT_S)
        for task in self._driving.values():
            task.cancel()
        if self._driving:
            await asyncio.wait(list(self._driving.values()))

    async def _until_idle(self) -> None:
        while self._driving:
            await asyncio.wait(list(self._driving.values()), timeout=0.2)
            for session in self.live():
                if session.waits_for_person:
                    session.stop(StopReason.SUSPEND)

    async def _drive(self, session: Session) -> None:
        """Work until nothing is left; between the last look and the end nothing is awaited, so no wake is lost."""
        pause = 0.5
        try:
            while True:
                session.more = False
                try:
                    await session.work()
                    pause = 0.5
                except Exception as error:
                    # One session's trouble is its own: it is said, tried again, and never ends the daemon.
                    if isinstance(error, StoreError):
                        log.error("session_store_failed", session=session.key, error=str(error))
                    else:
                        log.exception("session_failed", session=session.key)
                    if self._draining:
                        break
                    await self._clock.sleep(pause)
                    pause = min(MAX_PAUSE_S, pause * 2)
                    continue
                if self._draining or not session.more:
                    break
        finally:
            del self._live[session.key]
            del self._driving[session.key]


def _delete_idle(conn: sqlite3.Connection, key: str) -> bool:
    """Delete the session where none of its turns runs; otherwise see to it that the running one is the last."""
    if turns.running(conn, key) is not None:
        inbox.drop(conn, key)
        return False
    sessions.delete(conn, key)
    return True
