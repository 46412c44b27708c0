"""The parts of the daemon joined over a home, without its listener: with a clock, a model and a store to upset."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.testing import MemoryAdapter
from agent.control.clock import Clock, ManualClock, SystemClock
from agent.control.ports import Role
from agent.control.redact import Redactor
from agent.models.base import Model
from gateway.access import Access
from gateway.config import Config
from gateway.home import Home
from gateway.metrics import Metrics
from gateway.parts import Core, Ground, build_core
from gateway.store.database import Database
from tests.gateway.running import PATIENCE_S, settings

PEOPLE = {"memory": {"42": Role.ADMIN, "43": Role.OPERATOR, "44": Role.USER}}


@dataclass
class Joined:
    """What a test gets to hold."""

    core: Core
    db: Database
    adapter: MemoryAdapter
    home: Path
    clock: Clock
    tasks: asyncio.TaskGroup

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until ``holds()``; a clock that stands still is left alone."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                await asyncio.sleep(0.01)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """What the database holds."""
        connection = sqlite3.connect(f"file:{self.home / 'state.db'}?mode=ro", uri=True)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the database's lock, as another process would."""
        connection = sqlite3.connect(self.home / "state.db", isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")
            connection.close()

    async def advance(self, seconds: float, *, step: float = 1.0) -> None:
        """Let time pass on a clock of the test's, with real pauses for the threads of the store."""
        assert isinstance(self.clock, ManualClock)
        for _ in range(round(seconds / step)):
            await self.clock.advance(step)
            await asyncio.sleep(0.01)


@asynccontextmanager
async def joined(
    path: Path,
    *,
    config: Config | None = None,
    clock: Clock | None = None,
    model: Model | None = None,
    adapter: MemoryAdapter | None = None,
) -> AsyncIterator[Joined]:
    """Join the parts over the home at ``path``; a lock on its database is felt after 50 ms."""
    home, clock, config = Home(path), clock or SystemClock(), config or settings()
    adapter = adapter or MemoryAdapter()
    home.prepare()
    metrics = Metrics()
    db = await Database.open(home.state_db, clock=clock, busy_timeout_s=0.05, observer=metrics)
    try:
        async with asyncio.TaskGroup() as tasks:
            ground = Ground(
                settings=config,
                home=home,
                db=db,
                clock=clock,
                access=Access(PEOPLE),
                redactor=Redactor(()),
                metrics=metrics,
                adapters={adapter.name: adapter},
                tasks=tasks,
                is_open=lambda: True,
                model=model,
            )
            core = await build_core(ground)
            await adapter.start(core.intake)
            await core.approvals.recover()
            background = [tasks.create_task(core.approvals.watch()), tasks.create_task(core.watchdog.run())]
            try:
                await core.controls.recover()
                await core.sessions.recover()
                await core.delivery.recover()
                yield Joined(core, db, adapter, path, clock, tasks)
            finally:
                core.approvals.suspend()
                core.delivery.stop()
                await core.sessions.drain(5)
                await core.controls.stop()
                for task in background:
                    task.cancel()
                core.close()
    finally:
        await db.close()
