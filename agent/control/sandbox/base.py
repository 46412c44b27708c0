"""The seam of all sandboxes: what a job is, what it may use, how it ended."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agent.control.exceptions import ControlError

#: Where a command sees its scope's workspace; also its HOME and the start of relative work directories.
WORKSPACE = "/workspace"


class SandboxUnavailable(ControlError):
    """No engine can run this command; the message says how to get one."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A declared directory of the host, shown to the command at its own path."""

    path: Path
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds of one job. Sizes in MiB."""

    memory_mb: int = 512
    pids: int = 128
    cpus: float = 1.0
    disk_mb: int = 1024
    open_files: int = 1024
    output_bytes: int = 65_536


@dataclass(frozen=True, slots=True)
class Profile:
    """What a job may see and use beside its workspace. Part of what an approval binds.

    Attributes:
        workspace_writable: False for commands that only read.
        network: whether the host's network is shared; off means loopback only.
    """

    name: str = "terminal"
    network: bool = False
    workspace_writable: bool = True
    mounts: tuple[Mount, ...] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Job:
    """One process to run once.

    Attributes:
        job_id: the request id; names process groups and containers.
        argv: program and arguments as the command sees them.
        workspace: host directory of the scope, mounted at :data:`WORKSPACE`.
        workdir: absolute path as the command sees it; the caller has checked that it lies inside.
        timeout_s: the limit after which the whole job is killed.
        stdin: bytes given on standard input, then end of file.
        environment: added to the built environment; nothing is inherited.
    """

    job_id: str
    argv: tuple[str, ...]
    workspace: Path
    timeout_s: float
    profile: Profile = field(default_factory=Profile)
    workdir: str = WORKSPACE
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)


class Ended(enum.Enum):
    """Why a job is over."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    OVER_MEMORY = "over_memory"
    OVER_PIDS = "over_pids"
    OVER_DISK = "over_disk"


@dataclass(frozen=True, slots=True)
class Output:
    """What a job printed: standard output and error in the order of arrival, bounded, head and tail kept.

    Attributes:
        text: valid UTF-8; invalid bytes and control characters are made visible, a mark stands where the middle is cut.
        total_bytes: how much was printed in all.
        truncated: whether the middle was cut.
    """

    text: str
    total_bytes: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """How one job ended.

    Attributes:
        exit_code: status of the command, 128 + N after signal N; None when it was killed by us.
        limits_by: who holds the sums of memory, processes and disk: ``cgroup`` or ``supervisor``.
    """

    ended: Ended
    exit_code: int | None
    output: Output
    duration_s: float
    limits_by: str = ""


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Whether an engine works here, found by a real one-shot run.

    Attributes:
        problem: one sentence; empty when ok.
        fix: what to type or change; empty when ok.
        limits_by: see :class:`Finished`.
    """

    engine: str
    ok: bool
    version: str = ""
    problem: str = ""
    fix: str = ""
    limits_by: str = ""


#: Called with each piece of raw output as it arrives. Progress for the watchdog; must not block.
OutputListener = Callable[[bytes], None]


class Sandbox(Protocol):
    """An engine that runs jobs, one sandbox each.

    ``run`` never leaves a process behind: not at the end, not at the limit, not when the awaiting task is cancelled (it
    kills, waits for the end of the kill, and raises ``CancelledError``).
    """

    name: str

    async def probe(self) -> EngineStatus:
        """Run a trivial job for real and tell whether the engine works."""
        ...

    async def run(self, job: Job, on_output: OutputListener | None = None) -> Finished:
        """Run ``job`` to its end.

        Raises:
            SandboxUnavailable: the engine does not work; nothing ran.
        """
        ...


#: Gives the working engine or raises :class:`SandboxUnavailable`; resolved anew after failures.
SandboxSource = Callable[[], Awaitable[Sandbox]]
