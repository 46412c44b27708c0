"""A message and its answer over HTTP, beside the floor, in one run; start-up, memory and commits on the way.

``python -m bench.turns`` prints JSON. Both sides are processes of their own with the same ``synchronous``; the load
comes from this one. A message is ``hello``: one durable turn with the offline model, no tool.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

ROUNDS = 3
MESSAGES = {1: 300, 64: 2_000}


@asynccontextmanager
async def serving(*command: str) -> AsyncIterator[tuple[str, float, int]]:
    """Run a server; gives its base address, seconds from start to its first line, and its pid."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    ready = time.perf_counter() - began
    try:
        yield "/".join(line.split()[1].split("/")[:3]), ready, process.pid
    finally:
        process.terminate()
        await process.wait()


async def hit(base: str, token: str, in_flight: int, total: int, *, wait: str) -> dict[str, float]:
    """``total`` messages over ``in_flight`` sessions, one after the other in each."""
    times: list[float] = []
    left = iter(range(total))
    headers = {"Authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as web:

        async def one(number: int) -> None:
            url = f"{base}/v1/sessions/b{number}/messages{wait}"
            for _ in left:
                began = time.perf_counter()
                async with web.post(url, json={"text": "hello"}) as response:
                    assert response.status == 200, await response.text()
                    await response.read()
                times.append(time.perf_counter() - began)

        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(in_flight):
                tasks.create_task(one(number))
        seconds = time.perf_counter() - began
    ordered = sorted(times)
    return {
        "p50_ms": round(statistics.median(ordered) * 1000, 3),
        "p99_ms": round(ordered[int(len(ordered) * 0.99)] * 1000, 3),
        "per_s": round(total / seconds, 1),
    }


async def metric(base: str, token: str, name: str) -> float:
    """One number of ``/metrics``."""
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as web,
        web.get(f"{base}/metrics") as response,
    ):
        for line in (await response.text()).splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
    raise LookupError(name)


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return round(int(status.split("VmRSS:")[1].split()[0]) / 1024, 1)


async def main() -> None:
    """Measure both sides in turn and print everything."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        options = ("--home", str(home), "--set", "adapters.http.port=0", "--set", "log.level=warning")
        result: dict[str, object] = {}
        async with (
            serving("-m", "gateway", "run", *options) as (ours, ready, pid),
            serving("-m", "bench.floor", f"{folder}/floor.db") as (floor, _, _),
        ):
            token = (home / "http_token").read_text().strip()
            result["fresh_start_to_ready_s"] = round(ready, 3)
            await asyncio.sleep(1.0)
            result["idle_memory_mb"] = memory_mb(pid)
            for in_flight, total in MESSAGES.items():
                rounds = []
                await hit(ours, token, in_flight, 50, wait="?wait=60")
                for _ in range(ROUNDS):
                    before = await metric(ours, token, "ostiary_store_commits_total")
                    mine = await hit(ours, token, in_flight, total, wait="?wait=60")
                    commits = await metric(ours, token, "ostiary_store_commits_total") - before
                    base = await hit(floor, token, in_flight, total, wait="")
                    rounds.append(
                        {
                            "ostiary": mine,
                            "floor": base,
                            "p50_ratio": round(mine["p50_ms"] / base["p50_ms"], 2),
                            "throughput_ratio": round(mine["per_s"] / base["per_s"], 3),
                            "commits_a_turn": round(commits / total, 2),
                        }
                    )
                result[f"in_flight_{in_flight}"] = rounds
            result["memory_after_load_mb"] = memory_mb(pid)
        async with serving("-m", "gateway", "run", *options) as (_, ready, _):
            result["start_to_ready_s"] = round(ready, 3)
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
