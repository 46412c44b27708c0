"""What the gateway says in a chat outside of any answer: replies to words of control, warnings."""

from __future__ import annotations

import sqlite3

from gateway.journal import EventWriter, TurnRef
from gateway.store import sessions
from gateway.store.database import Database
from gateway.streaming import EventHub
from gateway.turn_end import Outbound, TurnEnder


class Notices:
    """Stores notices as events, and as outbox parts where a platform is pushed to."""

    def __init__(
        self, *, db: Database, hub: EventHub, writer: EventWriter, ender: TurnEnder, outbound: Outbound
    ) -> None:
        self._db = db
        self._hub = hub
        self._writer = writer
        self._ender = ender
        self._outbound = outbound

    async def say(self, key: str, text: str) -> None:
        """Tell the chat of session ``key``."""
        lane = await self._db.write(lambda conn: self.add(conn, key, text))
        self.sent(key, lane)

    def add(self, conn: sqlite3.Connection, key: str, text: str) -> str:
        """Add a notice inside a unit of work; give what it returns to :meth:`sent` after the commit.

        A session that was deleted meanwhile is told nothing.
        """
        session = sessions.get(conn, key)
        if session is None:
            return ""
        self._writer.add(conn, TurnRef(key, ""), "notice", {"text": text})
        return self._ender.say(conn, session, None, text)

    def sent(self, key: str, lane: str) -> None:
        """After the commit of :meth:`add`."""
        self._hub.stored(key, settles=True)
        if lane:
            self._outbound.wake(lane)
