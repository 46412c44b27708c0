"""Runs the benchmarks named on the command line, or all of them, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

ALL = ("guard", "sandbox", "store", "text", "turns")


def main(names: list[str]) -> int:
    """Print one JSON object with a benchmark's result under its name; the exit status."""
    unknown = sorted(set(names) - set(ALL))
    if unknown:
        sys.stderr.write(f"no benchmark {', '.join(unknown)}; there are: {', '.join(ALL)}\n")
        return 2
    results = {}
    for name in names or ALL:
        sys.stderr.write(f"{name} ...\n")
        done = subprocess.run([sys.executable, "-m", f"bench.{name}"], check=True, capture_output=True, text=True)
        results[name] = json.loads(done.stdout)
    sys.stdout.write(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
