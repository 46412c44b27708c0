"""The durable record of one turn: fulfils :class:`agent.turn_context.Journal` and ends the turn in one unit of work."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from agent.events import ToolState
from agent.models.base import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from gateway.store import events, messages, turns
from gateway.store.database import Database
from gateway.store.events import EventIds
from gateway.store.messages import CallRow, Said
from gateway.streaming import EventHub
from gateway.timing import Now


@dataclass(frozen=True, slots=True)
class TurnRef:
    """Which turn of which session."""

    session: str
    turn: str


class EventWriter:
    """Appends events of a session inside a unit of work."""

    def __init__(self, ids: EventIds, now: Now) -> None:
        self._ids = ids
        self._now = now

    def add(self, conn: sqlite3.Connection, ref: TurnRef, kind: str, data: dict[str, object]) -> None:
        """One kept event."""
        events.append(
            conn, self._ids, session=ref.session, turn=ref.turn or None, type=kind, data=data, now=self._now()
        )

    def add_all(self, conn: sqlite3.Connection, ref: TurnRef, *items: tuple[str, dict[str, object]]) -> None:
        """Several kept events, as pairs of type and data."""
        events.append_all(conn, self._ids, session=ref.session, turn=ref.turn or None, items=items, now=self._now())


class TurnJournal:
    """Writes each step before the next one is taken."""

    def __init__(self, *, db: Database, hub: EventHub, writer: EventWriter, ref: TurnRef, now: Now) -> None:
        self._db = db
        self._hub = hub
        self._writer = writer
        self._ref = ref
        self._now = now

    async def history(self) -> list[Message]:
        """Everything that counts for the session."""
        stored = await self._db.read(lambda conn: messages.history(conn, self._ref.session))
        return [_message(item) for item in stored]

    async def user(self, text: str) -> None:
        """A message that entered while the turn was running."""
        ref = self._ref
        await self._db.write(lambda conn: messages.add_user(conn, ref.session, ref.turn, text, self._now()))

    async def assistant(self, message: AssistantMessage) -> None:
        """A message with tool calls."""
        ref = self._ref
        calls = [CallRow(call.id, call.name, call.arguments) for call in message.calls]

        def unit(conn: sqlite3.Connection) -> None:
            messages.add_assistant(conn, ref.session, ref.turn, message.text, calls, self._now())
            turns.count_iteration(conn, ref.turn)
            if message.text:
                self._writer.add(conn, ref, "message", message_data(ref.turn, message.text, final=False))

        await self._db.write(unit)
        self._hub.text_ended(ref.session)
        self._hub.stored(ref.session)

    async def tool_result(self, message: ToolMessage) -> None:
        """The answer to one call."""
        ref = self._ref

        def unit(conn: sqlite3.Connection) -> None:
            messages.add_tool(conn, ref.session, ref.turn, message.call_id, message.text, message.ok, self._now())

        await self._db.write(unit)
        self._hub.stored(ref.session)


class TurnEvents:
    """Fulfils :class:`agent.events.EventSink`."""

    def __init__(self, *, db: Database, hub: EventHub, writer: EventWriter, ref: TurnRef) -> None:
        self._db = db
        self._hub = hub
        self._writer = writer
        self._ref = ref

    def delta(self, text: str) -> None:
        """A piece of the answer: to those who read now; the whole text is stored with its message."""
        self._hub.delta(self._ref.session, self._ref.turn, text)

    def tool(self, name: str, state: ToolState) -> None:
        """Rides along with the next commit, which the call's own records make at once."""
        self._add("tool", {"turn": self._ref.turn, "name": name, "state": state.value})

    def progress(self, text: str) -> None:
        """One line about long work."""
        self._add("progress", {"turn": self._ref.turn, "text": text})

    def _add(self, kind: str, data: dict[str, object]) -> None:
        self._db.ride(lambda conn: self._writer.add(conn, self._ref, kind, data))


def message_data(turn: str, text: str, *, final: bool) -> dict[str, object]:
    """Data of a ``message`` event."""
    return {"turn": turn, "role": "assistant", "text": text, "final": final}


def _message(stored: Said) -> Message:
    if stored.role == "user":
        return UserMessage(stored.text)
    if stored.role == "tool":
        return ToolMessage(stored.call_id or "", stored.name, stored.text, stored.ok)
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in stored.calls)
    return AssistantMessage(stored.text, calls)
