"""A daemon as a process of its own, which can be killed without warning and started again over the same home."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.gateway.running import PATIENCE_S, Client


@dataclass
class DaemonProcess:
    """``ostiary run`` over ``home``."""

    home: Path
    options: tuple[str, ...] = ()
    process: asyncio.subprocess.Process | None = None
    base: str = ""
    errors: list[str] = field(default_factory=list)
    _log: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it and wait until it says that it is open."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OSTIARY_")}
        sets = ("adapters.http.port=0", "log.format=json", *self.options)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gateway",
            "run",
            "--home",
            str(self.home),
            *(part for item in sets for part in ("--set", item)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self._log = asyncio.create_task(self._keep_errors(self.process), name="daemon-log")
        async with asyncio.timeout(PATIENCE_S):
            line = (await self.process.stdout.readline()).decode()
        assert line.startswith("open http"), (line, self.errors)
        self.base = line.removeprefix("open ").split("/login")[0]

    async def kill(self) -> None:
        """SIGKILL, as the kernel or a power cut would."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        await self._over()

    async def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self.process is not None
        self.process.terminate()
        return await self._over()

    def client(self, web: aiohttp.ClientSession) -> Client:
        """The owner's client."""
        return Client(self.base, (self.home / "http_token").read_text().strip(), web)

    async def _over(self) -> int:
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
