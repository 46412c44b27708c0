"""What the HTTP adapter needs beyond :class:`adapters.base.Intake`: reading sessions, events and open asks.

The gateway fulfils :class:`Desk`; :mod:`adapters.testing` holds its in-memory twin.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from aiohttp import web

from adapters.base import Card, Event, Receipt, Tap, TapResult


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes an HTTP request, as the listener's authentication found out.

    Attributes:
        user: the token's user; the sender's id.
    """

    user: str


#: Where the listener's authentication leaves the caller. A request without it is unauthorised.
CALLER: web.RequestKey[Caller] = web.RequestKey("caller", Caller)


@dataclass(frozen=True, slots=True)
class Posted:
    """The answer to :meth:`Desk.post`.

    Attributes:
        message_id: the client's, or a new one.
    """

    receipt: Receipt
    message_id: str


@dataclass(frozen=True, slots=True)
class TurnState:
    """Where the turn that took a message stands.

    Attributes:
        status: ``queued``, ``running``, ``waiting``, ``done``, ``failed`` or ``cancelled``.
        turn: empty while queued and for words of control.
        reply: all message texts of the turn joined by a blank line, once it has ended.
        asks: open asks of the turn that the caller may see.
    """

    status: str
    turn: str = ""
    reply: str = ""
    asks: tuple[Card, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether the turn is over."""
        return self.status in {"done", "failed", "cancelled"}


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as listed."""

    session: str
    title: str
    state: str
    last_at: datetime


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message as listed."""

    id: int
    turn: str
    role: str
    text: str
    at: datetime
    status: str


@dataclass(frozen=True, slots=True)
class History:
    """A page of messages, oldest first, read together with what a client needs to follow the session from there.

    Attributes:
        last_event_id: the newest event id of the session; a stream that begins after it misses and repeats nothing.
        asks: the session's open asks, which the stream would not tell again.
    """

    messages: tuple[MessageRow, ...]
    last_event_id: int
    asks: tuple[Card, ...] = ()


class NoSuchSession(Exception):
    """No session of that name that the caller may see."""


class Desk(Protocol):
    """Everything that the HTTP API offers, each call judged by the caller's rights.

    Methods that take a session raise :class:`NoSuchSession` for one that is not the caller's, whether or not it exists.
    """

    async def post(self, caller: Caller, session: str, text: str, message_id: str | None) -> Posted:
        """Take a message into ``session``, which is made on first use."""
        ...

    async def wait(self, caller: Caller, session: str, message_id: str, seconds: float) -> TurnState:
        """Wait until the turn that took the message has ended, at most ``seconds``; then say where it stands."""
        ...

    def events(self, caller: Caller, session: str, after: int | None) -> AsyncIterator[Event]:
        """The session's events as they come, for ever.

        ``after`` is the id of the last event that the client has; None begins with the open asks and the running turn.
        """
        ...

    async def sessions(self, caller: Caller) -> tuple[SessionRow, ...]:
        """The caller's sessions, the latest first."""
        ...

    async def messages(self, caller: Caller, session: str, limit: int, before: int | None) -> History:
        """A page of history, at most ``limit`` messages with ids below ``before``."""
        ...

    async def stop(self, caller: Caller, session: str) -> bool:
        """Cancel the running turn; False when none was."""
        ...

    async def delete(self, caller: Caller, session: str) -> None:
        """Stop and forget the session."""
        ...

    async def asks(self, caller: Caller) -> tuple[Card, ...]:
        """Open asks that the caller may answer."""
        ...

    async def answer(self, tap: Tap) -> TapResult:
        """Answer an ask."""
        ...
