"""A real engine on ground that the sandbox user can reach: pytest's own folders are closed to it under root."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import pytest

from agent.control.sandbox.base import Finished, Job, Limits, Mount, OutputListener, Profile
from agent.control.sandbox.bubblewrap import Bubblewrap

Run = Callable[..., Awaitable[Finished]]


def processes_with(marker: str) -> list[int]:
    """Pids of all processes of the machine that carry ``marker`` on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


@pytest.fixture
def ground() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ostiary-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def engine(ground: Path) -> Iterator[Bubblewrap]:
    engine = Bubblewrap(bin_dir=ground / "bin")
    yield engine
    engine.close()


@pytest.fixture
def workspace(ground: Path, engine: Bubblewrap) -> Path:
    path = ground / "workspaces" / "person%3Aann"
    engine.prepare_workspace(path)
    return path


@pytest.fixture
def marker() -> str:
    """A number of seconds to sleep that no other process on the machine sleeps."""
    return f"3600.{uuid.uuid4().int}"


@pytest.fixture
def sh(engine: Bubblewrap, workspace: Path) -> Run:
    """Run a shell command in a sandbox."""

    async def run(
        command: str,
        *,
        timeout_s: float = 20.0,
        limits: Limits | None = None,
        network: bool = False,
        writable: bool = True,
        mounts: tuple[Mount, ...] = (),
        workdir: str = "/workspace",
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        on_output: OutputListener | None = None,
    ) -> Finished:
        profile = Profile("test", network, writable, mounts, limits or Limits())
        job = Job("job", ("/bin/sh", "-c", command), workspace, timeout_s, profile, workdir, stdin, environment or {})
        return await engine.run(job, on_output)

    return run
