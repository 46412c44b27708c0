"""What a sandbox costs: the same command bare and in a one-shot sandbox, in one run. Prints JSON.

Run: python -m bench.sandbox [--runs N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent.control.sandbox.base import Job
from agent.control.sandbox.bubblewrap import Bubblewrap
from agent.control.sandbox.process import install_child_watcher

COMMAND = ("/bin/sh", "-c", "echo hello")


async def bare() -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert output == b"hello\n"


async def timed(run: Callable[[], Awaitable[None]]) -> float:
    started = time.perf_counter()
    await run()
    return (time.perf_counter() - started) * 1000


def summary(samples: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(samples, n=100, method="inclusive")
    return {"p50_ms": round(cuts[49], 2), "p95_ms": round(cuts[94], 2), "p99_ms": round(cuts[98], 2)}


async def measure(runs: int, ground: Path) -> dict[str, object]:
    engine = Bubblewrap(bin_dir=ground / "bin")
    workspace = ground / "workspace"
    engine.prepare_workspace(workspace)
    status = await engine.probe()
    if not status.ok:
        return {"error": status.problem, "fix": status.fix}

    async def sandboxed() -> None:
        finished = await engine.run(Job("bench", COMMAND, workspace, 10.0))
        assert finished.output.text == "hello\n"

    samples: dict[str, list[float]] = {"bare": [], "bubblewrap": []}
    for _ in range(20):
        await bare()
        await sandboxed()
    for _ in range(runs):
        # Turn about, so that what else the machine does meets both.
        samples["bare"].append(await timed(bare))
        samples["bubblewrap"].append(await timed(sandboxed))
    started = time.perf_counter()
    await asyncio.gather(*(sandboxed() for _ in range(32)))
    results = {name: summary(values) for name, values in samples.items()}
    return {
        "engine": status.version,
        "identity": {"uid": engine.identity.uid, "dropped": engine.identity.drop},
        "runs": runs,
        **results,
        "over_bare_p50_ms": round(results["bubblewrap"]["p50_ms"] - results["bare"]["p50_ms"], 2),
        "over_bare_p95_ms": round(results["bubblewrap"]["p95_ms"] - results["bare"]["p95_ms"], 2),
        "at_once_32_ms_each": round((time.perf_counter() - started) * 1000 / 32, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    arguments = parser.parse_args()
    install_child_watcher()
    ground = Path(tempfile.mkdtemp(prefix="ostiary-bench-"))
    ground.chmod(0o711)
    try:
        figures = asyncio.run(measure(arguments.runs, ground))
    finally:
        shutil.rmtree(ground)
    print(json.dumps({"benchmark": "sandbox", "python": platform.python_version(), **figures}, indent=2))


if __name__ == "__main__":
    main()
