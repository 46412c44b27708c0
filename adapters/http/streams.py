"""Server-sent events: one session's events written to one client, until either side has had enough.

A stream ends when the client goes, when it does not read, or when :meth:`Streams.close` is called: a web server waits
for its open requests at the end, so whoever stops it closes the streams first.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from aiohttp import web

from adapters.base import Event
from adapters.http.exceptions import TooManyStreams, Unavailable
from adapters.http.ports import NoSuchSession
from adapters.http.wire import frame

#: Seconds after which a silent stream gets a comment line; part of the published interface.
KEEPALIVE_S = 15.0
#: Seconds that a client may leave written bytes unread before its stream is cut; it can resume from its last event.
WRITE_S = 30.0
#: Streams that one caller may hold open.
MAX_STREAMS = 32
#: Seconds that the last bytes of a stream may take; then the connection is cut.
_END_S = 0.5

_COMMENT = b": still here\n\n"
_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    # Asks reverse proxies that know it (nginx) not to collect the stream before passing it on.
    "X-Accel-Buffering": "no",
}


class Streams:
    """The open streams of one adapter.

    Attributes:
        keepalive_s: seconds of silence after which a comment line is sent.
        write_s: seconds that a client may leave written bytes unread.
        most: streams that one caller may hold open.
    """

    def __init__(self, *, keepalive_s: float = KEEPALIVE_S, write_s: float = WRITE_S, most: int = MAX_STREAMS) -> None:
        self.keepalive_s = keepalive_s
        self.write_s = write_s
        self.most = most
        self._scopes: set[asyncio.Timeout] = set()
        self._held: Counter[str] = Counter()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closed = False

    def __len__(self) -> int:
        return self._held.total()

    async def serve(self, request: web.Request, user: str, events: AsyncIterator[Event]) -> web.StreamResponse:
        """Write ``events`` to the client until the stream ends.

        Raises:
            TooManyStreams: ``user`` holds as many as one may.
            Unavailable: the streams are closed.
        """
        response = web.StreamResponse(headers=_HEADERS)
        with self._place(user):
            try:
                await self._pump(request, response, events)
            except (ConnectionError, TimeoutError):
                _cut(request)
            else:
                await _end(request, response)
        return response

    async def close(self) -> None:
        """End all streams, take no more, and return when the last one has ended."""
        if not self._closed:
            self._closed = True
            now = asyncio.get_running_loop().time()
            for scope in self._scopes:
                scope.reschedule(now)
        await self._empty.wait()

    @contextmanager
    def _place(self, user: str) -> Iterator[None]:
        if self._closed:
            raise Unavailable("the gateway is stopping; connect again in a moment", retry_after_s=2)
        if self._held[user] >= self.most:
            raise TooManyStreams(f"{self.most} streams are open already; close one first", retry_after_s=5)
        self._held[user] += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._held[user] -= 1
            if not self._held[user]:
                del self._held[user]
            if not self._held:
                self._empty.set()

    async def _pump(self, request: web.Request, response: web.StreamResponse, events: AsyncIterator[Event]) -> None:
        """Write until the events end, :meth:`close` ends them, or the session is gone.

        Raises:
            ConnectionError: the client has gone.
            TimeoutError: it does not read.
        """
        # A time-out without a deadline: close() gives it one, which ends the stream wherever it waits.
        scope = asyncio.timeout(None)
        self._scopes.add(scope)
        try:
            async with scope:
                await response.prepare(request)
                await self._write_all(request, response, events)
        except TimeoutError:
            if not scope.expired():
                raise
        except NoSuchSession:
            return  # deleted under the client; its next request is told so
        finally:
            self._scopes.discard(scope)

    async def _write_all(
        self, request: web.Request, response: web.StreamResponse, events: AsyncIterator[Event]
    ) -> None:
        writer = _Writer(request, response, self.write_s)
        # The first bytes tell clients and proxies at once that the stream stands.
        await writer.write(_COMMENT)
        keepalive = asyncio.create_task(writer.keep_alive(self.keepalive_s), name=f"sse-keepalive {request.path}")
        try:
            async for event in events:
                await writer.write(frame(event))
        finally:
            keepalive.cancel()
            await asyncio.gather(keepalive, return_exceptions=True)
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()


class _Writer:
    """Writes whole frames, each within its time."""

    def __init__(self, request: web.Request, response: web.StreamResponse, write_s: float) -> None:
        self._request = request
        self._response = response
        self._write_s = write_s
        self._wrote = 0

    async def write(self, data: bytes) -> None:
        self._wrote += 1
        async with asyncio.timeout(self._write_s):
            await self._response.write(data)

    async def keep_alive(self, every_s: float) -> None:
        """Send a comment whenever nothing else was sent for ``every_s``; cut a client that does not take it."""
        while True:
            before = self._wrote
            await asyncio.sleep(every_s)
            if self._wrote != before:
                continue
            try:
                await self.write(_COMMENT)
            except (ConnectionError, TimeoutError):
                _cut(self._request)
                return


async def _end(request: web.Request, response: web.StreamResponse) -> None:
    """Finish the response, so that the client sees an end and not a broken connection, if it reads at all."""
    try:
        async with asyncio.timeout(_END_S):
            await response.write_eof()
    except (ConnectionError, TimeoutError):
        _cut(request)


def _cut(request: web.Request) -> None:
    """Drop the connection, unread bytes included."""
    if request.transport is not None:
        request.transport.abort()
