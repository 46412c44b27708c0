"""Fulfils :class:`adapters.http.ports.Desk`: sessions, events and asks as their callers may see them."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import AsyncIterator
from urllib.parse import quote

from adapters.base import Card, Conversation, ConversationKind, Event, Inbound, Sender, Tap, TapResult
from adapters.http.ports import Caller, History, MessageRow, NoSuchSession, Posted, SessionRow, TurnState
from adapters.http.wire import ask_json
from agent.control.clock import Clock
from agent.control.ports import Role
from gateway.access import Access, Identity, named_key
from gateway.approvals import may_answer
from gateway.asks_view import card_in
from gateway.intake import Intake
from gateway.sessions import Sessions
from gateway.store import asks, events, inbox, messages, sessions, turns
from gateway.store.database import Database
from gateway.store.events import EventRow
from gateway.store.sessions import SessionRow as StoredSession
from gateway.streaming import Delta, EventHub, Reader, Signal, Stored

#: Sessions listed at most.
MAX_SESSIONS = 200

#: Events read from the store at a time.
PAGE = 200

PLATFORM = "http"


class WebDesk:
    """Answers the HTTP API; every call is judged by the caller's own rights."""

    def __init__(
        self, *, db: Database, clock: Clock, access: Access, intake: Intake, sessions_: Sessions, hub: EventHub
    ) -> None:
        self._db = db
        self._clock = clock
        self._access = access
        self._intake = intake
        self._sessions = sessions_
        self._hub = hub

    async def post(self, caller: Caller, session: str, text: str, message_id: str | None) -> Posted:
        """Take a message."""
        who = self._who(caller)
        chosen = message_id or secrets.token_hex(12)
        key = named_key(who.principal, session)
        receipt = await self._intake.accept(
            Inbound(
                event_key=f"{PLATFORM}:{quote(key, safe='')}:{chosen}",
                conversation=Conversation(PLATFORM, session, ConversationKind.NAMED),
                sender=Sender(PLATFORM, caller.user),
                text=text,
                message_ref=chosen,
                mergeable=False,
            )
        )
        return Posted(receipt, chosen)

    async def wait(self, caller: Caller, session: str, message_id: str, seconds: float) -> TurnState:
        """Wait for the end of the turn that took the message."""
        who = self._who(caller)
        key = named_key(who.principal, session)
        with self._hub.reader(key, ends_only=True) as reader:
            try:
                async with self._clock.timeout(seconds):
                    while True:
                        state = await self._db.read(lambda conn: self._state(conn, key, message_id, who))
                        if state.ended or reader.closed:
                            return state
                        await reader.wait()
                        reader.take()
            except TimeoutError:
                return await self._db.read(lambda conn: self._state(conn, key, message_id, who))

    async def events(self, caller: Caller, session: str, after: int | None) -> AsyncIterator[Event]:
        """The session's events as they come."""
        stored = await self._readable(caller, session)
        key = stored.key
        with self._hub.reader(key) as reader:
            if after is None:
                first, cursor = await self._db.read(lambda conn: self._opening(conn, key))
            else:
                start = after
                first, cursor = await self._db.read(lambda conn: self._reopening(conn, key, start))
            for event in first:
                yield event
            said = max((event.id for event in first if event.type == "message"), default=0)
            async for event in self._follow(key, cursor, said, reader):
                yield event

    async def sessions(self, caller: Caller) -> tuple[SessionRow, ...]:
        """The caller's sessions; operators also see chats."""
        who = self._who(caller)

        def query(conn: sqlite3.Connection) -> list[tuple[StoredSession, bool]]:
            rows = sessions.by_owner(conn, who.principal, MAX_SESSIONS)
            if who.role >= Role.OPERATOR:
                own = {row.key for row in rows}
                recent = sessions.recent(conn, MAX_SESSIONS)
                rows += [row for row in recent if row.adapter != PLATFORM and row.key not in own]
            return [(row, bool(asks.open_in(conn, row.key))) for row in rows[:MAX_SESSIONS]]

        return tuple(
            SessionRow(row.name, row.title, self._activity(row.key, waits), row.last_at)
            for row, waits in await self._db.read(query)
        )

    async def messages(self, caller: Caller, session: str, limit: int, before: int | None) -> History:
        """A page of history."""
        stored = await self._readable(caller, session)

        def query(conn: sqlite3.Connection) -> History:
            page = messages.page(conn, stored.key, limit, before)
            rows = tuple(MessageRow(row.id, row.turn, row.role, row.text, row.at, row.status) for row in page)
            open_ = tuple(card_in(conn, row) for row in asks.open_in(conn, stored.key))
            return History(rows, events.latest(conn, stored.key), asks=open_)

        return await self._db.read(query)

    async def stop(self, caller: Caller, session: str) -> bool:
        """Cancel the running turn."""
        stored = await self._readable(caller, session)
        return self._sessions.stop(stored.key, f"Stopped by {self._who(caller).principal}.")

    async def delete(self, caller: Caller, session: str) -> None:
        """Stop and forget the session."""
        stored = await self._own(caller, session)
        await self._sessions.delete(stored.key)

    async def asks(self, caller: Caller) -> tuple[Card, ...]:
        """Open asks that the caller may answer."""
        who = self._who(caller)
        return await self._db.read(
            lambda conn: tuple(card_in(conn, row) for row in asks.all_open(conn) if may_answer(row, who))
        )

    async def answer(self, tap: Tap) -> TapResult:
        """Answer an ask."""
        return await self._intake.tap(tap)

    async def _follow(self, key: str, cursor: int, said: int, reader: Reader) -> AsyncIterator[Event]:
        """What comes after event ``cursor``; ``said`` is the newest message that was sent already."""
        signals: list[Signal] = [Stored(self._hub.last_id())]
        while True:
            for signal in signals:
                if isinstance(signal, Delta):
                    yield _delta(signal)
                    continue
                async for event in self._catch_up(key, cursor, signal.upto):
                    cursor = event.id
                    said = event.id if event.type == "message" else said
                    yield event
            if reader.caught_up():
                live = self._hub.live(key)
                if live is not None and live.after >= said:  # otherwise it is part of what was said
                    yield _delta(live)
            if reader.closed:
                return
            await reader.wait()
            signals = reader.take()

    async def _catch_up(self, key: str, cursor: int, upto: int) -> AsyncIterator[Event]:
        while True:
            position = cursor
            rows = await self._db.read(lambda conn: events.after(conn, key, position, PAGE))  # noqa: B023 - awaited here
            for row in rows:
                if row.id > upto:
                    return
                cursor = row.id
                yield _event(row)
            if len(rows) < PAGE:
                return

    def _opening(self, conn: sqlite3.Connection, key: str) -> tuple[list[Event], int]:
        """Every open ask and the events of the running turn, for a client that has nothing."""
        cards = [card_in(conn, row) for row in asks.open_in(conn, key)]
        latest = events.latest(conn, key)
        first = [Event(0, "ask", ask_json(card)) for card in cards]
        running = turns.running(conn, key)
        if running is not None:
            shown = {card.id for card in cards}
            first += [
                _event(row)
                for row in events.of_turn(conn, running.id)
                if not (row.type == "ask" and row.data.get("id") in shown)
            ]
        return first, latest

    def _reopening(self, conn: sqlite3.Connection, key: str, after: int) -> tuple[list[Event], int]:
        """Nothing where all that follows ``after`` is kept; else a reset, and then everything that is kept."""
        if sessions.events_purged(conn, key) <= after <= events.latest(conn, key):
            return [], after
        return [Event(0, "reset", {"oldest": events.oldest(conn, key)})], 0

    def _state(self, conn: sqlite3.Connection, key: str, message_id: str, who: Identity) -> TurnState:
        row = inbox.find_by_ref(conn, key, message_id)
        if row is None or row.state == "dropped":
            return TurnState("cancelled")
        if row.control:
            return TurnState("done", reply=row.reply or "") if row.state == "done" else TurnState("queued")
        if row.turn is None:
            return TurnState("queued")
        turn = turns.get(conn, row.turn)
        if turn is None:
            return TurnState("cancelled")
        if turn.state != "running":
            return TurnState(turn.state, turn.id, _reply(messages.turn_texts(conn, turn.id)))
        open_ = [ask for ask in asks.open_in(conn, key) if ask.turn == turn.id]
        cards = tuple(card_in(conn, ask) for ask in open_ if may_answer(ask, who) or ask.requester == who.principal)
        return TurnState("waiting" if open_ else "running", turn.id, asks=cards)

    def _activity(self, key: str, waits: bool) -> str:
        live = self._sessions.get(key)
        if live is None or live.turn is None:
            return "idle"
        return "waiting" if waits else "running"

    def _who(self, caller: Caller) -> Identity:
        who = self._access.identify(Sender(PLATFORM, caller.user))
        if who is None:
            raise NoSuchSession(caller.user)
        return who

    async def _own(self, caller: Caller, session: str) -> StoredSession:
        key = named_key(self._who(caller).principal, session)
        stored = await self._db.read(lambda conn: sessions.get(conn, key))
        if stored is None:
            raise NoSuchSession(session)
        return stored

    async def _readable(self, caller: Caller, session: str) -> StoredSession:
        """The caller's own session of that name, or a chat's that they may read."""
        who = self._who(caller)
        own = named_key(who.principal, session)

        def query(conn: sqlite3.Connection) -> StoredSession | None:
            stored = sessions.get(conn, own)
            if stored is None:
                chat = sessions.get(conn, session)
                if chat is not None and (chat.owner == who.principal or who.role >= Role.OPERATOR):
                    return chat
            return stored

        stored = await self._db.read(query)
        if stored is None:
            raise NoSuchSession(session)
        return stored


def _reply(texts: list[str]) -> str:
    """All that the assistant said; a final text that only repeats the one before it counts once."""
    if len(texts) > 1 and texts[-1] == texts[-2]:
        texts = texts[:-1]
    return "\n\n".join(texts)


def _event(row: EventRow) -> Event:
    return Event(row.id, row.type, dict(row.data))


def _delta(delta: Delta) -> Event:
    data: dict[str, object] = {"turn": delta.turn, "text": delta.text}
    if delta.replace:
        data["replace"] = True
    return Event(0, "delta", data)
