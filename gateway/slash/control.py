"""Handles words of control as they come, beside whatever turn is running."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextvars import Context
from pathlib import Path

import structlog

from adapters.base import Sender
from agent.control.clock import Clock
from agent.control.ports import Caller, Role
from gateway.access import Identity
from gateway.notices import Notices
from gateway.persist import until_stored
from gateway.session import NO_ACCESS
from gateway.slash import approval_words, session_words
from gateway.slash.context import Spoken, Toolbox, Word
from gateway.slash.words import parse
from gateway.store import inbox, sessions
from gateway.store.database import Database
from gateway.store.exceptions import StoreUnavailable
from gateway.store.inbox import InboxRow

log = structlog.get_logger(__name__)

#: How long a stop waits for words that are being handled, in seconds.
STOP_S = 2.0


async def _help(_tools: Toolbox, _spoken: Spoken) -> str:
    lines = [f"{word.usage}: {word.help}" for word in ALL.values()]
    return "\n".join(["Write what you want done. Words that act at once:", *lines])


ALL: dict[str, Word] = {
    word.name: word for word in (Word("help", "/help", "this list", _help), *session_words.WORDS, *approval_words.WORDS)
}


class Controls:
    """One short task a session that has said something; words of one session are handled in order."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        toolbox: Toolbox,
        notices: Notices,
        workspace: Callable[[str], Path],
        role_of: Callable[[str], Role | None],
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._db = db
        self._clock = clock
        self._toolbox = toolbox
        self._notices = notices
        self._workspace = workspace
        self._role_of = role_of
        self._tasks = tasks
        self._again: dict[str, bool] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def submit(self, key: str) -> None:
        """Handle what was queued for ``key``."""
        if key in self._again:
            self._again[key] = True
            return
        self._again[key] = False
        self._running[key] = self._tasks.create_task(self._handle_all(key), name=f"control-{key}", context=Context())

    async def recover(self) -> None:
        """At start: handle what a crash has left."""
        rows = await self._db.read(inbox.open_control)
        for key in dict.fromkeys(row.session for row in rows):
            self.submit(key)

    async def stop(self) -> None:
        """At the end: what is not handled soon is handled at the next start."""
        if self._running:
            await asyncio.wait(list(self._running.values()), timeout=STOP_S)
        for task in self._running.values():
            task.cancel()
        if self._running:
            await asyncio.wait(list(self._running.values()))

    async def _handle_all(self, key: str) -> None:
        try:
            while True:
                self._again[key] = False
                handled = await until_stored(self._clock, lambda: self._handle_open(key), what="word of control")
                if not handled and not self._again[key]:
                    return
        finally:
            del self._again[key]
            del self._running[key]

    async def _handle_open(self, key: str) -> int:
        rows = [row for row in await self._db.read(inbox.open_control) if row.session == key]
        for row in rows:
            await self._handle(row)
        return len(rows)

    async def _handle(self, row: InboxRow) -> None:
        with structlog.contextvars.bound_contextvars(session=row.session):
            try:
                reply = await self._reply(row)
            except StoreUnavailable:
                raise
            except Exception:
                log.exception("control_failed")
                reply = "That did not work: something went wrong inside the gateway. Please try again."
            await self._finish(row, reply)

    async def _reply(self, row: InboxRow) -> str:
        said = parse(row.text)
        session = await self._db.read(lambda conn: sessions.get(conn, row.session))
        if said is None or session is None:
            return "There is no such session any more."
        if not said.known:
            return f"There is no word /{said.word}. /help lists them."
        log.info("control", word=said.word, principal=row.principal)
        role = self._role_of(row.principal)
        if role is None:
            return NO_ACCESS
        who = Identity(row.principal, role)
        caller = Caller(
            principal=who.principal,
            role=who.role,
            scope=session.scope,
            session=session.key,
            turn="",
            workspace=self._workspace(session.scope),
        )
        return await ALL[said.word].handler(
            self._toolbox, Spoken(session=session, who=who, sender=Sender(**row.sender), rest=said.rest, caller=caller)
        )

    async def _finish(self, row: InboxRow, reply: str) -> None:
        def unit(conn: sqlite3.Connection) -> str:
            inbox.finish(conn, row.id, reply)
            return self._notices.add(conn, row.session, reply)

        lane = await until_stored(self._clock, lambda: self._db.write(unit), what="reply")
        self._notices.sent(row.session, lane)
