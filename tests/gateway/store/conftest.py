from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.control.clock import SystemClock
from gateway.store import migrations
from gateway.store.connections import configure
from gateway.store.database import Database

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def db_path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
async def db(db_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(db_path, clock=SystemClock())
    yield database
    await database.close()


@pytest.fixture
def conn(db_path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection to a migrated file, for the functions that make up units of work."""
    connection = sqlite3.connect(db_path, isolation_level=None)
    configure(connection, "normal")
    migrations.migrate(connection, db_path, migrations.load())
    yield connection
    connection.close()


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    """Whatever a test does to a database, its threads end."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 10
    for thread in set(threading.enumerate()) - before:
        thread.join(max(0.0, deadline - time.monotonic()))
        assert not thread.is_alive(), thread.name
