"""The store beside bare SQLite, same file system and same ``synchronous``, in one run.

``python -m bench.store [--units N] [--synchronous full|normal]`` prints one JSON object. Each unit is one inbox row;
``in_flight`` callers each await their own commit. Bare is the sqlite3 module on one thread with as many rows a
transaction as are in flight in the store.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from agent.control.clock import SystemClock
from gateway.store import audit, inbox, migrations
from gateway.store.connections import configure
from gateway.store.database import Database

IN_FLIGHT = (1, 16, 64, 256)


def message(n: int) -> inbox.NewInbound:
    return inbox.NewInbound(
        event_key=f"http:owner:main:{n}",
        session=f"http:owner/s{n % 100}",
        principal="http:owner",
        role="admin",
        sender={"platform": "http", "id": "owner"},
        text="please look why the disk is full " * 3,
        message_ref=str(n),
        reply_to="",
        attachments=[],
        mergeable=False,
        control=False,
    )


def accept(conn: sqlite3.Connection, n: int) -> None:
    if inbox.accept(conn, message(n), datetime.now(UTC), 1_000_000_000).verdict != "accepted":
        raise RuntimeError("not accepted")


def spread(latencies: list[float]) -> dict[str, float]:
    return {
        "p50_ms": round(statistics.median(latencies) * 1e3, 3),
        "p99_ms": round(statistics.quantiles(latencies, n=100)[98] * 1e3, 3),
    }


async def store(folder: Path, synchronous: str, units: int, in_flight: int) -> dict[str, float]:
    db = await Database.open(folder / f"store-{in_flight}.db", clock=SystemClock(), synchronous=synchronous)
    numbers = itertools.count()
    latencies: list[float] = []

    async def caller() -> None:
        while (n := next(numbers)) < units:
            began = time.perf_counter()
            await db.write(lambda conn: accept(conn, n))
            latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(caller())
    seconds = time.perf_counter() - began
    commits = db.commits
    await db.close()
    rates = {"units_per_s": round(units / seconds), "commits_per_s": round(commits / seconds)}
    return rates | {"units_per_commit": round(units / commits, 1)} | spread(latencies)


def bare(folder: Path, synchronous: str, units: int, batch: int) -> dict[str, float]:
    path = folder / f"bare-{batch}.db"
    conn = sqlite3.connect(path, isolation_level=None)
    configure(conn, synchronous)
    migrations.migrate(conn, path, migrations.load())
    numbers = iter(range(units))
    latencies: list[float] = []
    began = time.perf_counter()
    while chunk := list(itertools.islice(numbers, batch)):
        started = time.perf_counter()
        conn.execute("BEGIN IMMEDIATE")
        for n in chunk:
            accept(conn, n)
        conn.execute("COMMIT")
        latencies.append(time.perf_counter() - started)
    seconds = time.perf_counter() - began
    conn.close()
    rates = {"units_per_s": round(units / seconds), "commits_per_s": round(len(latencies) / seconds)}
    return rates | spread(latencies)


async def reads(folder: Path, count: int) -> dict[str, float]:
    db = await Database.open(folder / "reads.db", clock=SystemClock())
    await db.write(lambda conn: accept(conn, 1))
    latencies = []
    for _ in range(count):
        began = time.perf_counter()
        await db.read(lambda conn: inbox.get(conn, 1))
        latencies.append(time.perf_counter() - began)
    await db.close()
    return spread(latencies)


def chain(folder: Path, rows: int) -> dict[str, float]:
    """Rows a second appended within one transaction, and verified."""
    path = folder / "chain.db"
    conn = sqlite3.connect(path, isolation_level=None)
    configure(conn, "normal")
    migrations.migrate(conn, path, migrations.load())
    key, now = b"k" * 32, datetime.now(UTC)
    records = audit.Chain(key)
    began = time.perf_counter()
    conn.execute("BEGIN")
    for n in range(rows):
        body = {"rules": ["fs.rm"], "source": "person", "digest": "0" * 64}
        records.append(conn, kind="decision", request_id=str(n), body=body, text="rm -rf build", scope="s", now=now)
    conn.execute("COMMIT")
    appended = time.perf_counter()
    if not audit.verify(conn, key).ok:
        raise RuntimeError("the chain is broken")
    verified = time.perf_counter()
    conn.close()
    return {"append_per_s": round(rows / (appended - began)), "verify_per_s": round(rows / (verified - appended))}


def opening(folder: Path) -> Iterator[tuple[str, float]]:
    for name in ("open_fresh_ms", "open_existing_ms"):
        began = time.perf_counter()
        db = asyncio.run(_open_and_close(folder / "open.db"))
        yield name, round((db - began) * 1e3, 1)


async def _open_and_close(path: Path) -> float:
    db = await Database.open(path, clock=SystemClock())
    opened = time.perf_counter()
    await db.close()
    return opened


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=4_000)
    parser.add_argument("--synchronous", default="full", choices=("full", "normal"))
    parser.add_argument("--folder", type=Path, help="where the files are made; a temporary folder by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        result = {
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "synchronous": options.synchronous,
            "units": options.units,
            "store": {n: asyncio.run(store(folder, options.synchronous, options.units, n)) for n in IN_FLIGHT},
            "bare": {n: bare(folder, options.synchronous, options.units, n) for n in IN_FLIGHT},
            "read": asyncio.run(reads(folder, options.units)),
            "chain": chain(folder, options.units),
            **dict(opening(folder)),
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
