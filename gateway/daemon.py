"""The composition root: builds everything once, starts it in order, and ends it in the reverse order."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import Any

import structlog

from adapters.base import Adapter, Health
from adapters.http.adapter import HttpAdapter
from agent.control.clock import Clock, SystemClock
from agent.control.ports import Role
from agent.control.redact import Redactor
from gateway import platforms
from gateway.access import Access
from gateway.config import Config
from gateway.home import Home
from gateway.metrics import LoopLag, Metrics
from gateway.parts import Core, Ground, build_core, people_of
from gateway.store import meta, retention, turns
from gateway.store.database import Database
from gateway.store.exceptions import StoreError
from gateway.systemd import Notifier
from gateway.web.auth import Auth, Token
from gateway.web.desk import WebDesk
from gateway.web.grants_api import grant_routes
from gateway.web.server import WebServer

log = structlog.get_logger(__name__)

#: How often old rows are cleaned away.
CLEAN_EVERY_S = 600.0

#: Longest that a platform may take to close: one that hangs must not keep the database from being closed.
ADAPTER_STOP_S = 5.0

#: Longest pause before a platform whose start failed is started again.
ADAPTER_PAUSE_S = 60.0


async def serve(
    settings: Config,
    home: Home,
    *,
    redactor: Redactor,
    metrics: Metrics,
    clock: Clock | None = None,
    say: Callable[[str], None] | None = None,
) -> int:
    """Run the daemon until SIGTERM or SIGINT; the exit status: 0 after a clean drain.

    Raises:
        gateway.home.HomeLocked: another daemon serves this home.
        gateway.store.exceptions.StoreError: the database cannot be used.
        gateway.web.exceptions.WebError: the listener cannot be opened.
    """
    daemon = Daemon(settings, home, redactor=redactor, metrics=metrics, clock=clock or SystemClock())
    return await daemon.run(say or _print)


class Daemon:
    """One run of the gateway over one home.

    Args:
        settings: the whole configuration.
        home: where everything durable lies.
        redactor: knows the configured secrets.
        metrics: what ``/metrics`` shows.
        clock: time for every limit.
        adapters: platforms beside HTTP.
        people: roles by platform and id beside those of the configuration.
    """

    def __init__(
        self,
        settings: Config,
        home: Home,
        *,
        redactor: Redactor,
        metrics: Metrics,
        clock: Clock,
        adapters: Sequence[Adapter] = (),
        people: Mapping[str, Mapping[str, Role]] | None = None,
    ) -> None:
        self._settings = settings
        self._home = home
        self._redactor = redactor
        self._metrics = metrics
        self._clock = clock
        self._given = tuple(adapters)
        self._adapters: tuple[Adapter, ...] = ()
        self._people = people or {}
        self._open = False
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Begin to drain."""
        self._stop.set()

    async def run(self, say: Callable[[str], None]) -> int:
        """From build to stop."""
        notifier = Notifier.from_environment(os.environ)
        async with AsyncExitStack() as stack:
            await asyncio.to_thread(self._home.prepare)
            stack.enter_context(self._home.lock())
            db = await Database.open(
                self._home.state_db,
                clock=self._clock,
                synchronous=self._settings.store.synchronous,
                observer=self._metrics,
            )
            stack.push_async_callback(db.close)
            crashed = await db.write(_count_crash)
            owner_token = await asyncio.to_thread(self._home.http_token)
            self._redactor.learn(owner_token)
            with self._signals():
                async with asyncio.TaskGroup() as tasks:
                    await self._serve(db, owner_token, crashed, tasks, notifier, say)
            await db.write(partial(_mark_work, under_way=False))
        log.info("daemon_stopped")
        return 0

    async def _serve(
        self,
        db: Database,
        owner_token: str,
        crashed: bool,
        tasks: asyncio.TaskGroup,
        notifier: Notifier,
        say: Callable[[str], None],
    ) -> None:
        """Everything between the open database and its close."""
        self._adapters = (*self._given, *await asyncio.to_thread(platforms.build, self._settings, self._clock))
        access = Access(
            {**people_of(self._settings), **platforms.people(self._settings), **self._people},
            platforms.everyone(self._settings),
        )
        ground = Ground(
            settings=self._settings,
            home=self._home,
            db=db,
            clock=self._clock,
            access=access,
            redactor=self._redactor,
            metrics=self._metrics,
            adapters={adapter.name: adapter for adapter in self._adapters},
            tasks=tasks,
            is_open=lambda: self._open,
        )
        core = await build_core(ground)
        desk = WebDesk(
            db=db, clock=self._clock, access=access, intake=core.intake, sessions_=core.sessions, hub=core.hub
        )
        http, control = HttpAdapter(desk), HttpAdapter(desk)
        adapters = [*([http] if self._settings.adapters.http.enabled else []), *self._adapters]
        server = self._server(core, http, control, owner_token)
        background = [
            asyncio.create_task(work, name=name)
            for name, work in (
                ("approval-deadlines", core.approvals.watch()),
                ("watchdog", core.watchdog.run()),
                ("sandbox-watch", core.engines.run()),
                ("retention", self._clean(db)),
                ("loop-lag", LoopLag(self._metrics, self._clock).run()),
                ("systemd-watchdog", notifier.watch(self._clock)),
            )
        ]
        try:
            await core.approvals.recover()
            self._open = True
            await control.start(core.intake)
            for adapter in adapters:
                if not await self._started(adapter, core):
                    again = self._start_again(adapter, core)
                    background.append(asyncio.create_task(again, name=f"start-{adapter.name}"))
            await server.start()
            await db.write(partial(_mark_work, under_way=True))
            await core.controls.recover()
            resumed = await core.sessions.recover()
            await core.delivery.recover()
            say(f"open {server.login_url()}")
            notifier.ready()
            log.info("daemon_ready", port=server.port, resumed=resumed, after_crash=crashed, pid=os.getpid())
            await self._until_stop(background)
        finally:
            notifier.stopping()
            await self._drain(core, server, adapters)
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)

    async def _started(self, adapter: Adapter, core: Core) -> bool:
        """Whether it is under way; one that raises is not ready, and ends nothing but its own start."""
        try:
            await adapter.start(core.intake)
        except Exception:
            log.exception("adapter_start_failed", adapter=adapter.name)
            return False
        return True

    async def _start_again(self, adapter: Adapter, core: Core) -> None:
        pause = 1.0
        while True:
            await self._clock.sleep(pause)
            if await self._started(adapter, core):
                return
            pause = min(ADAPTER_PAUSE_S, pause * 2)

    def _server(self, core: Core, http: HttpAdapter, control: HttpAdapter, owner_token: str) -> WebServer:
        settings = self._settings.adapters.http
        auth = Auth(
            owner_token=owner_token,
            tokens=[Token(token.token, token.user) for token in settings.tokens],
            clock=self._clock,
            cookie_days=settings.cookie_days,
        )
        return WebServer(
            host=settings.host,
            port=settings.port,
            control_path=self._home.control_sock,
            auth=auth,
            routes=[
                *(http.routes() if settings.enabled else ()),
                *(route for adapter in self._adapters for route in adapter.routes()),
            ],
            # platforms prove themselves by a signature, which the adapter checks
            signed=[route.path for adapter in self._adapters for route in adapter.routes()],
            control_routes=(*control.routes(), *grant_routes(core.grants)),
            allowed_hosts=settings.allowed_hosts,
            checks={
                **({"http": http.health} if settings.enabled else {}),
                **{adapter.name: adapter.health for adapter in self._adapters},
                "store": lambda: _store_health(core.db),
                "sandbox": core.engines.health,
            },
            metrics=lambda: self._rendered(core),
            before_stop=[http.stop, control.stop],
        )

    def _rendered(self, core: Core) -> str:
        self._metrics.turns_running(core.slots.turns)
        self._metrics.sessions_live(len(core.sessions))
        self._metrics.asks_open(core.approvals.open_waits)
        for adapter in self._adapters:
            self._metrics.adapter_ready(adapter.name, adapter.health().ready)
        return self._metrics.render().decode()

    async def _until_stop(self, background: list[asyncio.Task[None]]) -> None:
        """Wait for the stop; a background task that fails before it ends the daemon with its error."""
        stopping = asyncio.create_task(self._stop.wait(), name="stop")
        open_: set[asyncio.Task[Any]] = {stopping, *background}
        try:
            while not stopping.done():
                done, open_ = await asyncio.wait(open_, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            stopping.cancel()

    async def _drain(self, core: Core, server: WebServer, adapters: Sequence[Adapter]) -> None:
        """Take nothing new, close the streams, let turns that work end, keep the others for the next start."""
        log.info("daemon_draining", turns=core.slots.turns)
        self._open = False
        core.approvals.suspend()
        core.delivery.stop()
        core.hub.close()
        await core.sessions.drain(self._settings.gateway.drain_s)
        await core.controls.stop()
        await server.stop()
        await asyncio.gather(*map(self._stop_adapter, adapters))
        await core.delivery.close()
        core.close()

    async def _stop_adapter(self, adapter: Adapter) -> None:
        """One that fails or hangs is told in the log and left behind."""
        try:
            async with self._clock.timeout(ADAPTER_STOP_S):
                await adapter.stop()
        except TimeoutError:
            log.error("adapter_stop_cut", adapter=adapter.name, after_s=ADAPTER_STOP_S)
        except Exception:
            log.exception("adapter_stop_failed", adapter=adapter.name)

    async def _clean(self, db: Database) -> None:
        while True:
            await self._clock.sleep(CLEAN_EVERY_S)
            now = self._clock.now()
            try:
                await db.write(lambda conn: retention.clean(conn, now))  # noqa: B023 - awaited here
            except StoreError as error:
                log.error("cleaning_failed", error=str(error))

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first signal drains, the second one ends at once with 1."""
        loop = asyncio.get_running_loop()

        def handle() -> None:
            if self._stop.is_set():
                sys.stderr.write("stopped at once; what was under way goes on at the next start\n")
                os._exit(1)
            self._stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, handle)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)


def _count_crash(conn: sqlite3.Connection) -> bool:
    """Whether the run before ended in the middle of its work; then that counts against its turns, once."""
    crashed = meta.get(conn, "running") == "1"
    if crashed:
        turns.count_crashes(conn)
        _mark_work(conn, under_way=False)
    return crashed


def _mark_work(conn: sqlite3.Connection, *, under_way: bool) -> None:
    """Note whether turns may be running: a start that fails before that is no crash of theirs."""
    meta.put(conn, "running", "1" if under_way else "0")


def _store_health(db: Database) -> Health:
    if db.healthy:
        return Health(True)
    return Health(False, "The database does not take writes. Check disk space and what else has it open.")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
