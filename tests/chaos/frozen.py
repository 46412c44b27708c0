"""``ostiary``, but with a call that blocks the event loop for good at the end of its start."""

from __future__ import annotations

import sys
import time

from gateway import cli, daemon


def block_for_good(line: str) -> None:
    """What a blocking call in a handler does."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    time.sleep(3_600)


if __name__ == "__main__":
    daemon._print = block_for_good
    cli.main()
