"""The gateway behind the HTTP API, in memory. A test plays the agent, by hand or with a :data:`Play`."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from adapters.base import Card, CardEnd, CardKind, Choice, Event, Receipt, Tap, TapResult, TapVerdict, Verdict
from adapters.http.ports import Caller, History, MessageRow, NoSuchSession, Posted, SessionRow, TurnState
from adapters.http.wire import ask_json

#: What the agent does in a turn; the turn is finished with ``done`` when it returns.
Play: TypeAlias = Callable[["MemoryTurn"], Awaitable[None]]
Status: TypeAlias = Literal["done", "failed", "cancelled"]

APPROVAL_CHOICES = (
    Choice("once", "Once"),
    Choice("session", "This session"),
    Choice("always", "Always"),
    Choice("deny", "Deny"),
)


@dataclass(slots=True)
class MemoryAsk:
    """An open or ended ask.

    Attributes:
        may_answer: users who may, beside the desk's operators.
        end: how it ended; None while open.
        ended: set with ``end``.
    """

    card: Card
    turn: MemoryTurn
    may_answer: frozenset[str]
    need: int = 1
    votes: set[str] = field(default_factory=set)
    wrong: int = 0
    reason: str = ""
    end: CardEnd | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class _Message:
    id: str
    text: str
    caller: Caller
    turn: MemoryTurn | None = None
    taken: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class MemorySession:
    """One session: its messages, its kept events and who listens."""

    name: str
    owner: str
    rows: list[MessageRow] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    oldest_lost: int = 0
    seen: dict[str, _Message] = field(default_factory=dict)
    queue: deque[_Message] = field(default_factory=deque)
    listeners: set[asyncio.Queue[Event | None]] = field(default_factory=set)
    turn: MemoryTurn | None = None
    last_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)


class MemoryTurn:
    """A turn that the test plays.

    Attributes:
        live: text that has been streamed and is not yet a message.
        status: None while it runs.
    """

    def __init__(self, desk: MemoryDesk, session: MemorySession, message: _Message) -> None:
        self.id = f"t{next(desk.numbers)}"
        self.session = session
        self.text = message.text
        self.caller = message.caller
        self.message_id = message.id
        self.live = ""
        self.texts: list[str] = []
        self.asks: list[MemoryAsk] = []
        self.status: Status | None = None
        self.ended = asyncio.Event()
        self._desk = desk

    def delta(self, text: str) -> None:
        """Stream a piece of the answer."""
        self.live += text
        self._desk.tell(self.session, "delta", {"turn": self.id, "text": text}, kept=False)

    def say(self, text: str, *, final: bool = False) -> None:
        """Complete a message; it replaces what was streamed."""
        self.live = ""
        self.texts.append(text)
        self._desk.keep(self.session, self.id, "assistant", text)
        data = {"turn": self.id, "role": "assistant", "text": text, "final": final}
        self._desk.tell(self.session, "message", data)

    def tool(self, name: str, state: Literal["start", "end"]) -> None:
        """A tool call begins or ends."""
        self._desk.tell(self.session, "tool", {"turn": self.id, "name": name, "state": state})

    def progress(self, text: str) -> None:
        """One line about long work."""
        self._desk.tell(self.session, "progress", {"turn": self.id, "text": text})

    def notice(self, text: str) -> None:
        """A sentence of the gateway's own."""
        self._desk.tell(self.session, "notice", {"text": text})

    def ask(
        self,
        command: str,
        *,
        kind: CardKind = CardKind.APPROVAL,
        title: str = "Delete files",
        reason: str = "it deletes files and folders",
        rules: Sequence[str] = ("fs.rm-recursive",),
        impact: str = "",
        token: str = "",
        origin: str = "",
        choices: Sequence[Choice] = APPROVAL_CHOICES,
        timeout_s: float = 300.0,
        may_answer: Collection[str] | None = None,
        need: int = 1,
    ) -> MemoryAsk:
        """Put an ask to people; its :attr:`MemoryAsk.ended` says when it has ended."""
        number = next(self._desk.numbers)
        card = Card(
            id=secrets.token_urlsafe(16),
            code=f"A{number:03d}",
            request_id=f"r{number}",
            kind=kind,
            title=title,
            command=command,
            reason=reason,
            rules=tuple(rules),
            choices=tuple(choices),
            requested_by=f"http:{self.caller.user}",
            expires_at=self._desk.now() + timedelta(seconds=timeout_s),
            impact=impact,
            token=token,
            origin=origin,
            session=self.session.name,
        )
        who = frozenset({self.caller.user} if may_answer is None else may_answer)
        ask = MemoryAsk(card=card, turn=self, may_answer=who, need=need)
        self.asks.append(ask)
        self._desk.open_ask(ask)
        return ask

    def finish(self, status: Status = "done", text: str = "") -> None:
        """End the turn, with a final message if there was none; asks still open are cancelled."""
        if self.status is not None:
            return
        for ask in self.asks:
            self._desk.settle(ask, CardEnd("cancelled"))
        final = any(event.type == "message" and event.data["final"] for event in self._events())
        if not final:
            self.say(text or self.live or status, final=True)
        self.status = status
        self._desk.tell(self.session, "turn.finished", {"turn": self.id, "status": status})
        self.session.turn = None
        self.ended.set()
        self._desk.take_next(self.session)

    def _events(self) -> list[Event]:
        return [event for event in self.session.events if event.data.get("turn") == self.id]


class MemoryDesk:
    """A :class:`~adapters.http.ports.Desk` without a gateway behind it.

    Attributes:
        operators: users who may answer every ask and read every chat session.
        refuse: when set, every message is answered so and nothing is kept.
        tap_refuse: when set, every answer to an ask is met so.
    """

    def __init__(
        self,
        play: Play | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        queue_max: int = 100,
        keep_events: int = 1000,
    ) -> None:
        self.now = now
        self.numbers = itertools.count(1)
        self.operators: set[str] = set()
        self.refuse: Receipt | None = None
        self.tap_refuse: TapResult | None = None
        self._play = play
        self._queue_max = queue_max
        self._keep_events = keep_events
        self._sessions: dict[tuple[str, str], MemorySession] = {}
        self._asks: dict[str, MemoryAsk] = {}
        self._plays: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """End what :data:`Play` has under way."""
        for task in self._plays:
            task.cancel()
        await asyncio.gather(*self._plays, return_exceptions=True)

    # What the adapter calls

    async def post(self, caller: Caller, session: str, text: str, message_id: str | None) -> Posted:
        """Take a message; the session's first one begins a turn."""
        if self.refuse is not None:
            return Posted(self.refuse, message_id or "")
        record = self._sessions.get((caller.user, session)) or self.add_session(caller.user, session)
        if message_id is not None and message_id in record.seen:
            return Posted(Receipt(Verdict.DUPLICATE, session, len(record.queue)), message_id)
        if len(record.queue) >= self._queue_max:
            return Posted(Receipt(Verdict.QUEUE_FULL, session, retry_after_s=7), message_id or "")
        message = _Message(message_id or f"m{next(self.numbers)}", text, caller)
        queued = len(record.queue) + (record.turn is not None)
        record.seen[message.id] = message
        record.queue.append(message)
        record.last_at = self.now()
        self.take_next(record)
        return Posted(Receipt(Verdict.ACCEPTED, session, queued), message.id)

    async def wait(self, caller: Caller, session: str, message_id: str, seconds: float) -> TurnState:
        """Wait for the turn of a message."""
        message = self._find(caller, session).seen[message_id]
        try:
            async with asyncio.timeout(seconds):
                await message.taken.wait()
                if message.turn is not None:
                    await message.turn.ended.wait()
        except TimeoutError:
            pass
        turn = message.turn
        if turn is None:
            return TurnState("queued")
        if turn.status is not None:
            return TurnState(turn.status, turn.id, "\n\n".join(turn.texts))
        cards = tuple(ask.card for ask in turn.asks if ask.end is None)
        return TurnState("waiting" if cards else "running", turn.id, asks=cards)

    async def events(self, caller: Caller, session: str, after: int | None) -> AsyncIterator[Event]:
        """The session's events, until it is deleted."""
        record = self._find(caller, session)
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        replay = self._replay(record, after)
        record.listeners.add(queue)
        try:
            for event in replay:
                yield event
            while (one := await queue.get()) is not None:
                yield one
            raise NoSuchSession(session)
        finally:
            record.listeners.discard(queue)

    async def sessions(self, caller: Caller) -> tuple[SessionRow, ...]:
        """The caller's sessions, the latest first."""
        mine = [one for one in self._sessions.values() if self._may_see(caller, one)]
        mine.sort(key=lambda one: one.last_at, reverse=True)
        return tuple(SessionRow(one.name, self._title(one), self._state(one), one.last_at) for one in mine)

    async def messages(self, caller: Caller, session: str, limit: int, before: int | None) -> History:
        """A page of history."""
        record = self._find(caller, session)
        rows = [row for row in record.rows if before is None or row.id < before]
        asks = tuple(ask.card for ask in self._open_asks(record))
        return History(tuple(rows[-limit:]), record.events[-1].id if record.events else 0, asks)

    async def stop(self, caller: Caller, session: str) -> bool:
        """Cancel the running turn."""
        turn = self._find(caller, session).turn
        if turn is None:
            return False
        turn.finish("cancelled", "Stopped.")
        return True

    async def delete(self, caller: Caller, session: str) -> None:
        """Stop and forget a session."""
        record = self._find(caller, session)
        record.queue.clear()
        if record.turn is not None:
            record.turn.finish("cancelled")
        del self._sessions[record.owner, record.name]
        for queue in record.listeners:
            queue.put_nowait(None)

    async def asks(self, caller: Caller) -> tuple[Card, ...]:
        """Open asks that the caller may answer."""
        return tuple(ask.card for ask in self._asks.values() if ask.end is None and self._may_answer(caller.user, ask))

    async def answer(self, tap: Tap) -> TapResult:
        """Answer an ask, by the rules of the gateway: only a right answer in time by the right person counts."""
        if self.tap_refuse is not None:
            return self.tap_refuse
        ask = self._asks.get(tap.ask_id)
        if ask is None:
            return TapResult(TapVerdict.UNKNOWN)
        if not self._may_answer(tap.sender.id, ask):
            return TapResult(TapVerdict.NOT_YOURS)
        if ask.end is None and self.now() >= ask.card.expires_at:
            self.settle(ask, CardEnd("timed_out"))
        if ask.end is not None:
            late = ask.end.outcome == "timed_out"
            return TapResult(TapVerdict.EXPIRED if late else TapVerdict.ALREADY_SETTLED, ask.end.outcome)
        ask.reason = tap.reason
        if tap.choice is not None:
            return self._chosen(ask, tap.choice, tap.sender.id)
        return self._typed(ask, tap.text or "", tap.sender.id)

    # What tests call

    def add_session(self, owner: str, name: str) -> MemorySession:
        """A session without messages; also one of a chat platform."""
        record = MemorySession(name, owner, last_at=self.now())
        self._sessions[owner, name] = record
        return record

    def session(self, owner: str, name: str) -> MemorySession:
        """An existing session."""
        return self._sessions[owner, name]

    async def sessions_of(self, owner: str) -> tuple[SessionRow, ...]:
        """What ``owner`` would be listed."""
        return await self.sessions(Caller(owner))

    def turn(self, owner: str, name: str) -> MemoryTurn:
        """The running turn of a session."""
        turn = self._sessions[owner, name].turn
        if turn is None:
            raise LookupError(f"no turn runs in {name}")
        return turn

    def settle(self, ask: MemoryAsk, end: CardEnd) -> None:
        """End an ask that is still open; how it ended is told to the session."""
        if ask.end is not None:
            return
        ask.end = end
        ask.ended.set()
        data: dict[str, object] = {"id": ask.card.id, "outcome": end.outcome}
        data |= {"choice": end.choice or None, "by": end.by or None}
        self.tell(ask.turn.session, "ask.settled", data)

    def forget_asks(self) -> None:
        """Lose all asks, as a gateway would that kept them in memory only."""
        self._asks.clear()

    # What turns call

    def tell(self, session: MemorySession, kind: str, data: dict[str, object], *, kept: bool = True) -> None:
        """Send an event to those who listen, and keep it."""
        event = Event(next(self.numbers) if kept else 0, kind, data)
        if kept:
            session.events.append(event)
            if len(session.events) > self._keep_events:
                session.oldest_lost = session.events.pop(0).id
        for queue in session.listeners:
            queue.put_nowait(event)

    def keep(self, session: MemorySession, turn: str, role: str, text: str) -> None:
        """Add to the history."""
        session.rows.append(MessageRow(next(self.numbers), turn, role, text, self.now(), "done"))

    def open_ask(self, ask: MemoryAsk) -> None:
        """Make an ask known."""
        self._asks[ask.card.id] = ask
        self.tell(ask.turn.session, "ask", ask_json(ask.card))

    def take_next(self, session: MemorySession) -> None:
        """Begin the next turn, if none runs and a message waits."""
        if session.turn is not None or not session.queue:
            return
        message = session.queue.popleft()
        message.turn = session.turn = MemoryTurn(self, session, message)
        message.taken.set()
        self.keep(session, message.turn.id, "user", message.text)
        self.tell(session, "turn.started", {"turn": message.turn.id, "message_id": message.id})
        if self._play is not None:
            task = asyncio.create_task(self._perform(self._play, message.turn), name=f"play {message.turn.id}")
            self._plays.add(task)
            task.add_done_callback(self._plays.discard)

    @staticmethod
    async def _perform(play: Play, turn: MemoryTurn) -> None:
        await play(turn)
        turn.finish()

    def _chosen(self, ask: MemoryAsk, choice: str, user: str) -> TapResult:
        if choice not in {one.value for one in ask.card.choices}:
            return TapResult(TapVerdict.NOT_A_CHOICE)
        by = f"http:{user}"
        if ask.card.kind is CardKind.QUESTION:
            self.settle(ask, CardEnd("answered", choice, by))
            return TapResult(TapVerdict.SETTLED, "answered", choice, 1, 1)
        if choice == "deny":
            self.settle(ask, CardEnd("denied", choice, by))
            return TapResult(TapVerdict.SETTLED, "denied", choice, 1, 1)
        ask.votes.add(user)
        have = len(ask.votes)
        if have < ask.need:
            return TapResult(TapVerdict.PENDING, "pending", choice, have, ask.need)
        self.settle(ask, CardEnd("approved", choice, by))
        return TapResult(TapVerdict.SETTLED, "approved", choice, have, ask.need)

    def _typed(self, ask: MemoryAsk, text: str, user: str) -> TapResult:
        by = f"http:{user}"
        if ask.card.kind is CardKind.APPROVAL:
            return TapResult(TapVerdict.NOT_A_CHOICE)
        if ask.card.kind is CardKind.QUESTION:
            self.settle(ask, CardEnd("answered", "", by))
            return TapResult(TapVerdict.SETTLED, "answered", "", 1, 1)
        wanted = ask.card.token if ask.card.kind is CardKind.TOKEN else "confirm"
        if text.strip().casefold() == wanted.casefold():
            self.settle(ask, CardEnd("approved", "", by))
            return TapResult(TapVerdict.SETTLED, "approved", "", 1, 1)
        ask.wrong += 1
        if ask.wrong < 3:
            return TapResult(TapVerdict.PENDING, "pending", "", 0, 1)
        self.settle(ask, CardEnd("denied", "", by))
        return TapResult(TapVerdict.SETTLED, "denied", "", 0, 1)

    def _replay(self, session: MemorySession, after: int | None) -> list[Event]:
        turn = session.turn
        if after is None:
            replay = [Event(0, "ask", ask_json(ask.card)) for ask in self._open_asks(session)]
            if turn is not None:
                replay += [one for one in session.events if one.data.get("turn") == turn.id]
        else:
            replay = [one for one in session.events if one.id > after]
            if after < session.oldest_lost:
                replay.insert(0, Event(0, "reset", {"oldest": session.events[0].id}))
        if turn is not None and turn.live:
            replay.append(Event(0, "delta", {"turn": turn.id, "text": turn.live, "replace": True}))
        return replay

    def _find(self, caller: Caller, name: str) -> MemorySession:
        mine = self._sessions.get((caller.user, name))
        if mine is not None:
            return mine
        for record in self._sessions.values():
            if record.name == name and self._may_see(caller, record):
                return record
        raise NoSuchSession(name)

    def _may_see(self, caller: Caller, session: MemorySession) -> bool:
        return session.owner == caller.user or (caller.user in self.operators and ":" in session.name)

    def _may_answer(self, user: str, ask: MemoryAsk) -> bool:
        return user in ask.may_answer or user in self.operators

    def _open_asks(self, session: MemorySession) -> list[MemoryAsk]:
        return [ask for ask in self._asks.values() if ask.end is None and ask.turn.session is session]

    def _state(self, session: MemorySession) -> str:
        if session.turn is None:
            return "idle"
        return "waiting" if self._open_asks(session) else "running"

    @staticmethod
    def _title(session: MemorySession) -> str:
        return next((row.text.splitlines()[0][:60] for row in session.rows if row.role == "user"), "")
