"""Time per command of the guard over the labelled corpus; prints JSON.

Wall time is what a turn waits; CPU time is what the guard costs when the machine is busy with other things.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "tests" / "data" / "commands.jsonl"
ADVERSARIAL = {
    "brackets_20000": "(" * 20_000,
    "substitutions_5000": "$(" * 5_000 + "ls" + ")" * 5_000,
    "braces_15": "echo " + "{a,b}" * 15,
    "true_8000_then_refused": "true;" * 8_000 + "rm -rf /",
    "true_4900_then_refused": "true;" * 4_900 + "rm -rf /",
}


def percentile(times: list[float], share: float) -> float:
    """Microseconds below which a share of the times lies."""
    return round(sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1e6, 1)


def summary(times: list[float]) -> dict[str, float]:
    """Median, p95, p99 and maximum in microseconds."""
    return {
        "median": percentile(times, 0.5),
        "p95": percentile(times, 0.95),
        "p99": percentile(times, 0.99),
        "max": percentile(times, 1),
    }


def main() -> None:
    """Measure and print."""
    started = time.perf_counter()
    cpu = time.process_time()
    from agent.control.guard import Assumptions, Guard  # noqa: PLC0415 - the import is measured

    imported = {
        "wall": round((time.perf_counter() - started) * 1e3, 1),
        "cpu": round((time.process_time() - cpu) * 1e3, 1),
    }
    commands = [json.loads(line)["command"] for line in CORPUS.read_text(encoding="utf-8").splitlines()]

    def timed(clock: Callable[[], float]) -> list[float]:
        guard = Guard(Assumptions())
        times = []
        for command in commands:
            before = clock()
            guard.judge(command)
            times.append(clock() - before)
        return times

    cold = timed(time.thread_time)
    result = {
        "commands": len(commands),
        "import_ms": imported,
        "us_per_command_wall": summary(timed(time.perf_counter)),
        "us_per_command_cpu": summary(timed(time.thread_time)),
        "us_first_pass_cpu": summary(cold),
        "ms_adversarial_cpu": {name: round(_once(text) * 1e3, 1) for name, text in ADVERSARIAL.items()},
    }
    json.dump(result, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _once(text: str) -> float:
    from agent.control.guard import Assumptions, Guard  # noqa: PLC0415 - the import is measured

    guard = Guard(Assumptions())
    before = time.thread_time()
    guard.judge(text)
    return time.thread_time() - before


if __name__ == "__main__":
    main()
