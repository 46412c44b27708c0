"""Sandboxes whose daemon is gone.

A sandbox dies with its daemon, but for the first millisecond of its life: a daemon killed just then leaves a bubblewrap
that waits for its permit for ever. It runs nothing, and it is swept away when a daemon starts.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

#: Set for bubblewrap itself, never for the command inside.
_MARK = "OSTIARY_SANDBOX_OWNER"


def owner_environment() -> dict[str, str]:
    """The environment of a sandbox's outer process: who owns it, and nothing else."""
    return {_MARK: f"{os.getpid()}:{_started(os.getpid())}"}


def sweep_orphans() -> list[int]:
    """Kill every sandbox process whose daemon is gone; those of living daemons, this one included, are left alone.

    Blocks; call it in a worker thread when the daemon starts.

    Returns:
        The pids that were killed.
    """
    killed = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _is_orphan(int(entry.name)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                descriptor = os.pidfd_open(int(entry.name))
                try:
                    # Looked at again through the descriptor's process: the number may have changed hands.
                    if _is_orphan(int(entry.name)):
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                        killed.append(int(entry.name))
                finally:
                    os.close(descriptor)
    return killed


def _is_orphan(pid: int) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    prefix = f"{_MARK}=".encode()
    owners = [part.removeprefix(prefix).decode(errors="replace") for part in environment if part.startswith(prefix)]
    return bool(owners) and not any(_is_alive(owner) for owner in owners)


def _is_alive(owner: str) -> bool:
    pid, _, started = owner.partition(":")
    return pid.isdigit() and _started(int(pid)) == started


def _started(pid: int) -> str:
    """When a process began, in clock ticks since boot: with the pid it names a process for good."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    # Field 22 of proc(5); the name in parentheses may hold spaces and parentheses, so count from the last one.
    fields = stat.rpartition(b")")[2].split()
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
