"""Tells the readers of a session's events what is new, in the order in which it happened."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

#: Signals that one slow reader may have waiting; beyond it the pieces of text are dropped and sent as a whole later.
MAX_WAITING = 256


@dataclass(frozen=True, slots=True)
class Stored:
    """Events were committed; read them from the store.

    Attributes:
        upto: id of the newest of them. What has streamed belongs before later ones, though they may be there already.
        settles: a turn or a word of control has ended, which is what a waiting call is for.
    """

    upto: int
    settles: bool = False


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the running turn's answer; not kept in the store.

    Attributes:
        replace: ``text`` is everything so far and replaces what the reader has.
        after: the newest event id when it streamed; the message that it is part of has a greater one.
    """

    turn: str
    text: str
    replace: bool = False
    after: int = 0


Signal = Stored | Delta


@dataclass
class _Live:
    """The answer of a running turn as far as it has streamed."""

    turn: str
    parts: list[str] = field(default_factory=list)
    after: int = 0


class Reader:
    """One reader's mailbox; ``ends_only`` for readers who wait for an end and care for nothing on the way.

    Attributes:
        lagging: pieces of text are left out until the reader has caught up, and then sent as a whole; so it begins.
    """

    def __init__(self, *, ends_only: bool = False) -> None:
        self._ends_only = ends_only
        self._signals: deque[Signal] = deque()
        self._arrived = asyncio.Event()
        self.lagging = True
        self.closed = False

    def put(self, signal: Signal) -> None:
        """Add a signal; never blocks."""
        if self._ends_only and not (isinstance(signal, Stored) and signal.settles):
            return
        if isinstance(signal, Stored):
            if self._signals and isinstance(self._signals[-1], Stored):
                self._signals.pop()
            self._signals.append(signal)
        elif self.lagging or len(self._signals) >= MAX_WAITING:
            self.lagging = True
        else:
            self._signals.append(signal)
        self._arrived.set()

    def close(self) -> None:
        """Let the reader end once it has taken what is there."""
        self.closed = True
        self._arrived.set()

    async def wait(self) -> None:
        """Return when there is something to take, or the reader was closed."""
        await self._arrived.wait()

    def caught_up(self) -> bool:
        """Whether a lagging reader has taken everything; from now on it gets pieces of text again."""
        if not self.lagging or self._signals:
            return False
        self.lagging = False
        return True

    def take(self) -> list[Signal]:
        """Everything that has arrived."""
        signals = list(self._signals)
        self._signals.clear()
        if not self.closed:
            self._arrived.clear()
        return signals


class EventHub:
    """Fans out signals to the readers of each session.

    Args:
        last_id: gives the newest event id.
    """

    def __init__(self, last_id: Callable[[], int]) -> None:
        self.last_id = last_id
        self._readers: dict[str, set[Reader]] = {}
        self._live: dict[str, _Live] = {}
        self._closed = False

    @contextmanager
    def reader(self, session: str, *, ends_only: bool = False) -> Iterator[Reader]:
        """A mailbox for the session's signals from now on."""
        reader = Reader(ends_only=ends_only)
        if self._closed:
            reader.close()
        readers = self._readers.setdefault(session, set())
        readers.add(reader)
        try:
            yield reader
        finally:
            readers.discard(reader)
            if not readers:
                self._readers.pop(session, None)

    def stored(self, session: str, *, settles: bool = False) -> None:
        """Events of ``session`` were committed; see :class:`Stored` for ``settles``."""
        for reader in self._readers.get(session, ()):
            reader.put(Stored(self.last_id(), settles))

    def delta(self, session: str, turn: str, text: str) -> None:
        """A piece of the answer streamed."""
        live = self._live.get(session)
        if live is None or live.turn != turn:
            live = self._live[session] = _Live(turn)
        live.parts.append(text)
        live.after = self.last_id()
        for reader in self._readers.get(session, ()):
            reader.put(Delta(turn, text, after=live.after))

    def text_ended(self, session: str) -> None:
        """The text that streamed so far is a stored message now."""
        self._live.pop(session, None)

    def live(self, session: str) -> Delta | None:
        """What has streamed of a message that is not stored yet."""
        live = self._live.get(session)
        if live is None or not live.parts:
            return None
        text = "".join(live.parts)
        live.parts[:] = [text]
        return Delta(live.turn, text, replace=True, after=live.after)

    def close(self) -> None:
        """End all readers; new ones end at once."""
        self._closed = True
        for readers in self._readers.values():
            for reader in readers:
                reader.close()
