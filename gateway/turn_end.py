"""The end of a turn: one unit of work that leaves nothing open."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from adapters.base import Piece
from agent.control.wording import UNKNOWN
from gateway.journal import EventWriter, TurnRef, message_data
from gateway.recorder import AuditTrail
from gateway.store import inbox, messages, outbox, sessions, turns
from gateway.store.asks import AskRow
from gateway.store.database import Database
from gateway.store.outbox import NewPart
from gateway.store.sessions import SessionRow
from gateway.streaming import EventHub
from gateway.timing import Now

#: What an unanswered call of a cancelled or failed turn is answered with, so that the history stays valid.
CALL_CANCELLED = "Cancelled before it ended: the turn was stopped."


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends, and its final text."""

    status: str
    text: str

    @classmethod
    def done(cls, text: str) -> Ending:
        """It was answered."""
        return cls("done", text)

    @classmethod
    def failed(cls, text: str) -> Ending:
        """It could not be answered; the text says what to do."""
        return cls("failed", text)

    @classmethod
    def cancelled(cls, text: str) -> Ending:
        """It was stopped."""
        return cls("cancelled", text)


class OpenAsks(Protocol):
    """Ends the open requests of a turn."""

    def cancel_turn(self, conn: sqlite3.Connection, turn: str, now: datetime) -> list[AskRow]:
        """Inside the unit."""
        ...

    def wake(self, rows: Sequence[AskRow]) -> None:
        """After the commit."""
        ...


class Outbound(Protocol):
    """Sends what was put into the outbox."""

    def pushes(self, adapter: str) -> bool:
        """Whether messages of this adapter go through the outbox."""
        ...

    def split(self, adapter: str, text: str) -> Sequence[Piece]:
        """The text as pieces that fit one message each."""
        ...

    def wake(self, lane: str) -> None:
        """A part was committed."""
        ...


#: A text of so many characters fits a message of any platform; longer ones are split before they are stored.
SHORT = 1_000


class TurnEnder:
    """Ends turns and answers words of control."""

    def __init__(
        self,
        *,
        db: Database,
        hub: EventHub,
        writer: EventWriter,
        asks: OpenAsks,
        outbound: Outbound,
        trail: AuditTrail,
        now: Now,
    ) -> None:
        self._db = db
        self._hub = hub
        self._writer = writer
        self._asks = asks
        self._outbound = outbound
        self._trail = trail
        self._now = now

    async def end(self, ref: TurnRef, ending: Ending) -> bool:
        """Write the final message and close everything; True when more messages are queued."""
        pieces = await self._pieces(ref.session, ending.text)
        ended, more, lane = await self._db.write(lambda conn: self._unit(conn, ref, ending, pieces))
        self._hub.text_ended(ref.session)
        self._asks.wake(ended)
        self._hub.stored(ref.session, settles=True)
        if lane:
            self._outbound.wake(lane)
        return more

    def say(
        self,
        conn: sqlite3.Connection,
        session: SessionRow,
        turn: str | None,
        text: str,
        pieces: Sequence[Piece] | None = None,
    ) -> str:
        """Put ``text`` on its way to the session's chat; returns the lane to wake, empty where nothing is pushed.

        Args:
            conn: the unit's connection.
            session: whose chat.
            turn: the turn that speaks, if one does.
            text: markdown.
            pieces: the same as split before; None splits a long text here.
        """
        if not self._outbound.pushes(session.adapter):
            return ""
        if pieces is None:
            pieces = (Piece(text),) if len(text) <= SHORT else self._outbound.split(session.adapter, text)
        lane, now = "", self._now()
        for piece in pieces:
            lane = queue_part(conn, session, turn, "text", piece.text, now, formatted=piece.formatted)
        return lane

    async def _pieces(self, key: str, text: str) -> Sequence[Piece]:
        """The pieces of a long text, made in a worker thread: neither the loop nor the writer waits for it."""
        if len(text) <= SHORT:
            return (Piece(text),)
        session = await self._db.read(lambda conn: sessions.get(conn, key))
        if session is None or not self._outbound.pushes(session.adapter):
            return (Piece(text),)
        return await asyncio.to_thread(self._outbound.split, session.adapter, text)

    def _unit(
        self, conn: sqlite3.Connection, ref: TurnRef, ending: Ending, pieces: Sequence[Piece]
    ) -> tuple[list[AskRow], bool, str]:
        now = self._now()
        if not turns.finish(conn, ref.turn, ending.status, now):
            return [], inbox.has_queued(conn, ref.session), ""
        ended = self._asks.cancel_turn(conn, ref.turn, now)
        # A turn that was answered has answered every call before; only one that was cut short leaves some open.
        if ending.status != "done":
            self._answer_calls(conn, ref, now)
        messages.add_final(conn, ref.session, ref.turn, ending.text, ending.status, now)
        self._writer.add_all(
            conn,
            ref,
            ("message", message_data(ref.turn, ending.text, final=True)),
            ("turn.finished", {"turn": ref.turn, "status": ending.status}),
        )
        inbox.finish_turn(conn, ref.turn)
        session = sessions.touch(conn, ref.session, now)
        lane = self.say(conn, session, ref.turn, ending.text, pieces) if session else ""
        return ended, inbox.has_queued(conn, ref.session), lane

    def _answer_calls(self, conn: sqlite3.Connection, ref: TurnRef, now: datetime) -> None:
        """Answer what is open; a call that had been started and was never heard of again gets its outcome, too."""
        session = sessions.get(conn, ref.session)
        for call in messages.unanswered(conn, ref.turn):
            text = CALL_CANCELLED
            if call.state == "ended" and call.result:
                text = call.result
            elif call.state == "started":
                text = UNKNOWN
                self._trail.append(
                    conn,
                    kind="outcome",
                    request_id=call.id,
                    scope=session.scope if session else "",
                    body={"ended": "unknown"},
                    text=text,
                    now=now,
                )
            messages.add_tool(conn, ref.session, ref.turn, call.id, text, False, now)


def queue_part(
    conn: sqlite3.Connection,
    session: SessionRow,
    turn: str | None,
    kind: str,
    body: str,
    now: datetime,
    formatted: str = "",
) -> str:
    """Put one part for the session's chat into the outbox; returns its lane, within which order is kept."""
    lane = f"{session.adapter}:{session.conversation.get('chat', '')}"
    part = NewPart(
        part_id=secrets.token_hex(12),
        adapter=session.adapter,
        lane=lane,
        conversation=session.conversation,
        session=session.key,
        turn=turn,
        kind=kind,
        body=body,
        formatted=formatted,
    )
    outbox.add(conn, part, now)
    return lane
