"""The one listener: TCP for browsers, programs and webhooks, and ``control.sock`` for the owner's commands."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from adapters.http.wire import MAX_BODY, reply
from gateway.web import control_socket
from gateway.web.auth import OWNER, Auth
from gateway.web.door import add_headers, control_door, tcp_door
from gateway.web.exceptions import CannotListen, PortInUse, WebRefused
from gateway.web.health import HealthRoutes, State
from gateway.web.hosts import Hosts, bracketed, is_loopback
from gateway.web.pages import Pages, load_assets

#: Seconds that requests under way may take once the listener stops; streams have been closed before.
SHUTDOWN_S = 3.0

log = structlog.get_logger(__name__)


class WebServer:
    """Owns the listener on TCP and the one on ``control.sock``.

    ::

        http, control = HttpAdapter(desk), HttpAdapter(desk)
        server = WebServer(
            host="127.0.0.1", port=8642, control_path=home / "control.sock", auth=auth,
            routes=http.routes(), control_routes=control.routes(),
            checks={"store": store.health}, metrics=metrics.text, before_stop=[http.stop, control.stop],
        )
        await server.start()
        print(server.login_url())

    Args:
        host: address to listen on; empty, ``0.0.0.0`` and ``::`` mean every one.
        port: 0 takes a free one, see :attr:`port`.
        control_path: the socket's file; its folder's lock must be held. None leaves it out.
        routes: what adapters serve over TCP; a token is needed but for ``signed`` paths.
        control_routes: what is served to the owner over the socket.
        signed: paths among ``routes`` whose handlers check a signature themselves.
        allowed_hosts: see :class:`~gateway.web.hosts.Hosts`.
        checks: parts that must work for ``/readyz``.
        metrics: the text of ``/metrics``.
        before_stop: awaited first in :meth:`stop`, to close the streams: a web server waits for open requests.
        shutdown_s: seconds that requests under way may take in :meth:`stop`.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        control_path: Path | None,
        auth: Auth,
        routes: Sequence[web.AbstractRouteDef] = (),
        control_routes: Sequence[web.AbstractRouteDef] = (),
        signed: Sequence[str] = (),
        allowed_hosts: Sequence[str] = (),
        checks: Mapping[str, Callable[[], State]],
        metrics: Callable[[], str],
        before_stop: Sequence[Callable[[], Awaitable[None]]] = (),
        shutdown_s: float = SHUTDOWN_S,
    ) -> None:
        self.host = host
        self._port = port
        self._control_path = control_path
        self._auth = auth
        self._routes = tuple(routes)
        self._control_routes = tuple(control_routes)
        self._signed = tuple(signed)
        self._hosts = Hosts(allowed_hosts, host)
        self._health = HealthRoutes(checks, metrics)
        self._before_stop = tuple(before_stop)
        self._shutdown_s = shutdown_s
        self._runners: list[web.AppRunner] = []
        self._webhooks: set[asyncio.Task[web.StreamResponse]] = set()
        self._control_file: tuple[int, int] | None = None

    @property
    def port(self) -> int:
        """The port that it listens on; the one asked for until it does."""
        return self._port

    def login_url(self, user: str = OWNER) -> str:
        """A new link that lets its holder in as ``user``, once and for ten minutes."""
        name, port = self._hosts.preferred
        return f"http://{bracketed(name)}:{port or self.port}/login?code={self._auth.codes.new(user)}"

    async def start(self) -> None:
        """Listen on both.

        Raises:
            WebRefused: others could reach the address, and there is no token for them.
            PortInUse: another program listens there.
            CannotListen: the system refuses the address or the socket's file.
        """
        if not is_loopback(self.host) and not self._auth.configured:
            raise WebRefused(
                f"adapters.http.host is {self.host or 'every address'}, which other machines can reach, and "
                "adapters.http.tokens is empty; add a token for each person, or set the host to 127.0.0.1"
            )
        try:
            await self._open_tcp()
            if self._control_path is not None:
                await self._open_control(self._control_path)
        except BaseException:
            await self.stop()
            raise
        log.info("listening", host=self.host, port=self.port, control=str(self._control_path or ""))

    async def stop(self) -> None:
        """Close the streams, let requests under way end, stop listening. May be called again."""
        for close in self._before_stop:
            await close()
        runners, self._runners = self._runners, []
        await asyncio.gather(*(runner.cleanup() for runner in runners))
        if self._webhooks:
            await asyncio.gather(*self._webhooks, return_exceptions=True)
        if self._control_path is not None:
            await asyncio.to_thread(control_socket.remove, self._control_path, self._control_file)
            self._control_file = None

    async def _open_tcp(self) -> None:
        pages = Pages(await asyncio.to_thread(load_assets), self._auth)
        door = tcp_door(self._hosts, self._auth, self._signed, pages.locked, self._webhooks)
        runner = await self._runner(door, (*self._health.routes(), *pages.routes(), *self._routes))
        try:
            await web.TCPSite(runner, self.host or None, self._port).start()
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise PortInUse(self.host, self._port) from exc
            raise CannotListen(
                f"cannot listen on {bracketed(self.host)}:{self._port}: {exc.strerror or exc}; "
                "see adapters.http.host and adapters.http.port"
            ) from exc
        self._port = int(runner.addresses[0][1])

    async def _open_control(self, path: Path) -> None:
        link = web.post("/v1/link", self._link)
        runner = await self._runner(control_door(), (*self._health.routes(), link, *self._control_routes))
        sock = await asyncio.to_thread(control_socket.bind, path)
        self._control_file = await asyncio.to_thread(control_socket.identity, path)
        await web.SockSite(runner, sock).start()

    async def _runner(self, door: Middleware, routes: Sequence[web.AbstractRouteDef]) -> web.AppRunner:
        app = web.Application(middlewares=[door], client_max_size=MAX_BODY)
        app.on_response_prepare.append(add_headers)
        app.add_routes(routes)
        # No access log: it would hold login codes. Handlers are cancelled when their client goes, which ends streams.
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=_protocol_logger(),
            handler_cancellation=True,
            shutdown_timeout=self._shutdown_s,
        )
        self._runners.append(runner)
        await runner.setup()
        return runner

    async def _link(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return reply({"url": self.login_url()})


def _protocol_logger() -> logging.Logger:
    """The logger for what is not HTTP at all: who sent it, but not what, since that may hold a code or a token."""
    logger = logging.getLogger(f"{__name__}.protocol")
    if not logger.filters:
        logger.addFilter(_without_content)
    return logger


def _without_content(record: logging.LogRecord) -> bool:
    record.exc_info = None
    record.exc_text = None
    return True
