"""Builds the control layer from the configuration, and watches over the sandbox engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from adapters.base import Health
from agent.control.clock import Clock
from agent.control.commands import Command, Terminal
from agent.control.file_commands import file_commands
from agent.control.guard.guard import Guard
from agent.control.pipeline import Pipeline
from agent.control.policy import BuiltinPolicy
from agent.control.ports import Approver, DecisionLog, GrantStore
from agent.control.redact import Redactor
from agent.control.sandbox.base import Limits, Mount, Profile, SandboxUnavailable
from agent.control.sandbox.bubblewrap import Bubblewrap
from agent.control.sandbox.engines import Engines
from agent.control.sandbox.orphans import sweep_orphans
from gateway.assumptions import assumptions_of
from gateway.config import Config
from gateway.home import Home
from gateway.metrics import Metrics

log = structlog.get_logger(__name__)

#: How often a host without a working engine is tried again, so that readiness tells the truth.
PROBE_EVERY_S = 60.0


class EngineWatch:
    """Tries the sandbox engine at start and while it fails, so that readiness knows without asking."""

    def __init__(self, engines: Engines, bubblewrap: Bubblewrap, clock: Clock, *, required: bool) -> None:
        self.engines = engines
        self._bubblewrap = bubblewrap
        self._clock = clock
        self._required = required
        self._problem = "The sandbox has not been tried yet."

    async def run(self) -> None:
        """Clear away what a killed daemon has left, then try for as long as the daemon lives."""
        swept = await asyncio.to_thread(sweep_orphans)
        if swept:
            log.warning("orphans_swept", pids=swept)
        while True:
            try:
                engine = await self.engines.get()
            except SandboxUnavailable as error:
                if str(error) != self._problem:
                    log.error("no_sandbox", problem=str(error))
                self._problem = str(error)
            else:
                if self._problem:
                    log.info("sandbox_ready", engine=engine.name)
                self._problem = ""
            await self._clock.sleep(PROBE_EVERY_S)

    def health(self) -> Health:
        """Not ready only where the owner requires an engine."""
        if self._required and self._problem:
            return Health(False, self._problem)
        return Health(True)

    def close(self) -> None:
        """Let the engine's worker threads end."""
        self._bubblewrap.close()


def profile_of(settings: Config) -> Profile:
    """The sandbox profile of ``terminal``."""
    sandbox = settings.sandbox
    return Profile(
        name="terminal",
        network=sandbox.network == "on",
        mounts=tuple(Mount(Path(mount.path), mount.writable) for mount in sandbox.mounts),
        limits=Limits(
            memory_mb=sandbox.memory_mb,
            pids=sandbox.pids,
            cpus=sandbox.cpus,
            disk_mb=sandbox.disk_mb,
            output_bytes=settings.limits.output_bytes,
        ),
    )


def commands_of(settings: Config) -> dict[str, Command]:
    """Every command that the pipeline knows."""
    profile, limits = profile_of(settings), settings.limits
    return {
        "terminal": Terminal(profile, default_s=limits.terminal_s, max_s=limits.terminal_max_s),
        **file_commands(profile, read_s=limits.read_s, write_s=limits.write_s),
    }


def build_control(
    *,
    settings: Config,
    home: Home,
    clock: Clock,
    metrics: Metrics,
    redactor: Redactor,
    approver: Approver,
    decisions: DecisionLog,
    grants: GrantStore,
) -> tuple[Pipeline, EngineWatch]:
    """The pipeline that every command passes, and the watch over the engine at its end."""
    bubblewrap = Bubblewrap(uid=settings.sandbox.uid, bin_dir=home.bin, protected=(home.root,), clock=clock)
    engines = Engines(
        {"bubblewrap": bubblewrap},
        clock=clock,
        choice=settings.sandbox.engine,
        max_running=settings.sandbox.max_running,
    )
    pipeline = Pipeline(
        commands=commands_of(settings),
        policy=BuiltinPolicy(),
        guard=Guard(assumptions_of(home)),
        approver=approver,
        decisions=decisions,
        grants=grants,
        sandbox=engines.get,
        prepare=bubblewrap.prepare_workspace,
        clock=clock,
        observer=metrics,
        redact=redactor,
    )
    return pipeline, EngineWatch(engines, bubblewrap, clock, required=settings.sandbox.required)
