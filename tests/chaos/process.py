"""A daemon as a process of its own, which can be killed without warning and started again over the same home."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.gateway.running import PATIENCE_S, Client


@dataclass
class DaemonProcess:
    """``ostiary run`` over ``home``.

    Attributes:
        options: further ``--set`` values.
        variables: added to its environment.
        log_to: descriptor for standard error; without one its lines are collected in :attr:`errors`.
        program: what is run in place of ``python -m gateway``.
    """

    home: Path
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    log_to: int | None = None
    program: tuple[str, ...] = ("-m", "gateway")
    process: asyncio.subprocess.Process | None = None
    base: str = ""
    errors: list[str] = field(default_factory=list)
    _log: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it and wait until it says that it is open."""
        await self.spawn()
        assert self.process is not None
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = (await self.process.stdout.readline()).decode()
        assert line.startswith("open http"), (line, self.errors)
        self.base = line.removeprefix("open ").split("/login")[0]

    async def spawn(self) -> None:
        """Start it."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OSTIARY_")}
        sets = ("adapters.http.port=0", "log.format=json", *self.options)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self.program,
            "run",
            "--home",
            str(self.home),
            *(part for item in sets for part in ("--set", item)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if self.log_to is None else self.log_to,
            env={**environment, **self.variables},
            start_new_session=True,
        )
        if self.log_to is None:
            self._log = asyncio.create_task(self._keep_errors(self.process), name="daemon-log")

    async def kill(self) -> None:
        """SIGKILL, as the kernel or a power cut would."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        await self.over()

    async def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self.process is not None
        self.process.terminate()
        return await self.over()

    def client(self, web: aiohttp.ClientSession) -> Client:
        """The owner's client."""
        return Client(self.base, (self.home / "http_token").read_text().strip(), web)

    async def over(self) -> int:
        """Wait for its end; the exit status."""
        assert self.process is not None
        async with asyncio.timeout(PATIENCE_S):
            status = await self.process.wait()
        if self._log is not None:
            await self._log
        return status

    async def _keep_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self.errors.append(line.decode(errors="replace").rstrip())
