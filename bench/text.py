"""Time to parse, render and split an answer for Telegram; prints JSON.

The answers are the sample of ``tests/data/text`` that has a bit of everything, repeated to 2 kB (one message) and to
20 kB, and the latter as one block of code.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from adapters.telegram.render import HTML
from adapters.text import parse, split_markdown

SAMPLE = (Path(__file__).parents[1] / "tests" / "data" / "text" / "answer.md").read_text(encoding="utf-8")
LIMIT = 4096
ROUNDS = 40


def answer(size: int) -> str:
    """The sample, repeated to at least ``size`` characters, in whole samples."""
    return "\n\n".join([SAMPLE] * (-(-size // len(SAMPLE))))


def milliseconds(work: Callable[[], object]) -> dict[str, float]:
    """Median and p95 of the CPU time of a call, after a warm-up."""
    work()
    times = []
    for _ in range(ROUNDS):
        before = time.thread_time()
        work()
        times.append(time.thread_time() - before)
    times.sort()
    return {"median": round(times[ROUNDS // 2] * 1e3, 2), "p95": round(times[int(ROUNDS * 0.95)] * 1e3, 2)}


def measured(text: str) -> dict[str, object]:
    """Figures of one text."""
    document = parse(text)
    return {
        "characters": len(text),
        "messages": len(split_markdown(text, limit=LIMIT, render=HTML)),
        "parse_ms": milliseconds(lambda: parse(text)),
        "render_ms": milliseconds(lambda: HTML.render(document.blocks)),
        "all_ms": milliseconds(lambda: split_markdown(text, limit=LIMIT, render=HTML)),
    }


def main() -> None:
    """Measure and print."""
    code = "```python\n" + "    value = compute(1, 2)  # a line\n" * (20_000 // 36) + "```"
    result = {"2kB": measured(answer(2_000)), "20kB": measured(answer(20_000)), "20kB_code": measured(code)}
    json.dump(result, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
