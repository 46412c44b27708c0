"""Builds the parts of the daemon that do not depend on a platform, and joins them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from adapters.base import Adapter
from agent.control.clock import Clock
from agent.control.commands import Command, Terminal
from agent.control.file_commands import file_commands
from agent.control.guard.guard import Guard
from agent.control.pipeline import Pipeline
from agent.control.policy import BuiltinPolicy
from agent.control.ports import Role
from agent.control.redact import Redactor
from agent.control.sandbox.base import Limits, Mount, Profile, SandboxUnavailable
from agent.control.sandbox.bubblewrap import Bubblewrap
from agent.control.sandbox.engines import Engines
from agent.control.sandbox.orphans import sweep_orphans
from agent.models.base import Model
from agent.models.offline import OfflineModel
from agent.prompt import system_prompt
from agent.tools.files import file_tools
from agent.tools.registry import Registry
from agent.tools.terminal import terminal_tool
from agent.turn_context import TurnLimits
from gateway.access import Access
from gateway.allowlist import Allowlist
from gateway.approvals import Approvals
from gateway.ask_effects import AskEffects
from gateway.assumptions import assumptions_of
from gateway.cards import OutboxCards
from gateway.config import Config
from gateway.delivery import Delivery
from gateway.grants import Grants
from gateway.home import Home
from gateway.intake import Intake
from gateway.journal import EventWriter
from gateway.metrics import Metrics
from gateway.notices import Notices
from gateway.recorder import AuditTrail, DecisionRecorder
from gateway.session import Services
from gateway.sessions import Sessions
from gateway.slash.context import Toolbox
from gateway.slash.control import Controls
from gateway.slots import Slots
from gateway.store import meta
from gateway.store.audit import Chain
from gateway.store.database import Database
from gateway.store.events import EventIds
from gateway.streaming import EventHub
from gateway.turn_end import TurnEnder
from gateway.watchdog import Watchdog

log = structlog.get_logger(__name__)

#: How often a host without a working engine is tried again, so that readiness tells the truth.
PROBE_EVERY_S = 60.0


@dataclass
class Core:
    """What the daemon starts and stops."""

    db: Database
    hub: EventHub
    slots: Slots
    approvals: Approvals
    intake: Intake
    sessions: Sessions
    controls: Controls
    delivery: Delivery
    watchdog: Watchdog
    grants: Grants
    engines: EngineWatch

    def close(self) -> None:
        """Let go of worker threads; nothing runs any more."""
        self.engines.close()


@dataclass(frozen=True, slots=True)
class PartHealth:
    """The state of one part for ``/readyz``."""

    ready: bool
    reason: str = ""


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

    def health(self) -> PartHealth:
        """Not ready only where the owner requires an engine."""
        if self._required and self._problem:
            return PartHealth(False, self._problem)
        return PartHealth(True)

    def close(self) -> None:
        """Let the engine's worker threads end."""
        self._bubblewrap.close()


class OfflineMind:
    """Fulfils :class:`gateway.session.Mind` with the keyword interpreter and the tools of this version."""

    def __init__(self, tools: Registry, *, language: str) -> None:
        self._tools = tools
        self._model = OfflineModel()
        self._system = system_prompt(tools, language=language)

    def model(self) -> Model:
        """The interpreter; it keeps nothing between requests."""
        return self._model

    def tools(self) -> Registry:
        """Every tool."""
        return self._tools

    def system(self) -> str:
        """The stable prefix of every request."""
        return self._system


def people_of(settings: Config) -> dict[str, dict[str, Role]]:
    """Roles by platform and id: the owner, and who has a token of their own."""
    people = {
        token.user: max(map(Role.parse, token.roles), default=Role.VIEWER) for token in settings.adapters.http.tokens
    }
    return {"http": {**people, "owner": Role.ADMIN}}


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


async def build_core(
    *,
    settings: Config,
    home: Home,
    db: Database,
    clock: Clock,
    access: Access,
    redactor: Redactor,
    metrics: Metrics,
    adapters: Mapping[str, Adapter],
    tasks: asyncio.TaskGroup,
    is_open: Callable[[], bool],
) -> Core:
    """Build and join everything; nothing runs yet."""
    boot = secrets.token_hex(8)
    # lets `ostiary grants list` tell the grants of this run from those of earlier ones
    await db.write(lambda conn: meta.put(conn, "boot", boot))
    ids = await db.read(lambda conn: EventIds.begin(conn, clock.now()))
    hub, slots = EventHub(lambda: ids.last), Slots(settings.gateway.max_running_turns)
    writer = EventWriter(ids, clock.now)
    trail = AuditTrail(Chain(await asyncio.to_thread(home.audit_key)), redactor)

    async def undeliverable(ask_id: str) -> None:
        await approvals.undeliverable(ask_id)

    delivery = Delivery(db=db, clock=clock, adapters=adapters, tasks=tasks, on_undeliverable=undeliverable)
    grants = Grants(db=db, allowlist=Allowlist(home.allowlist_file), trail=trail, clock=clock, boot=boot)
    effects = AskEffects(ids=ids, hub=hub, trail=trail, cards=OutboxCards(delivery), counter=metrics, boot=boot)
    approvals = Approvals(
        db=db,
        clock=clock,
        effects=effects,
        permanent=grants,
        slots=slots,
        timeout_s=settings.approvals.timeout_s,
    )
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
        approver=approvals,
        decisions=DecisionRecorder(db, trail, clock),
        grants=grants,
        sandbox=engines.get,
        prepare=bubblewrap.prepare_workspace,
        clock=clock,
        observer=metrics,
        redact=redactor,
    )
    limits = settings.limits
    mind = OfflineMind(
        Registry(
            [
                terminal_tool(
                    pipeline,
                    default_timeout_s=round(limits.terminal_s),
                    max_timeout_s=round(limits.terminal_max_s),
                ),
                *file_tools(pipeline, read_s=limits.read_s, write_s=limits.write_s),
            ]
        ),
        language=settings.agent.language,
    )
    ender = TurnEnder(db=db, hub=hub, writer=writer, asks=approvals, outbound=delivery, trail=trail, now=clock.now)
    notices = Notices(db=db, hub=hub, writer=writer, ender=ender, outbound=delivery)
    services = Services(
        db=db,
        clock=clock,
        hub=hub,
        writer=writer,
        slots=slots,
        mind=mind,
        ender=ender,
        observer=metrics,
        workspace=home.workspace,
        role_of=access.role_of,
        limits=TurnLimits(
            model_silence_s=limits.model_silence_s,
            model_request_s=settings.model.request_s,
            tool_s=limits.terminal_max_s + 60,
            max_output_tokens=settings.model.max_output_tokens,
        ),
        max_turns=settings.agent.max_turns,
    )
    sessions = Sessions(db=db, clock=clock, services=services, tasks=tasks)
    controls = Controls(
        db=db,
        clock=clock,
        toolbox=Toolbox(
            db=db, clock=clock, sessions=sessions, approvals=approvals, grants=grants, model_name=mind.model().name
        ),
        notices=notices,
        workspace=home.workspace,
        role_of=access.role_of,
        tasks=tasks,
    )
    intake = Intake(
        db=db,
        clock=clock,
        access=access,
        approvals=approvals,
        router=sessions,
        controls=controls,
        observer=metrics,
        queue_max=settings.gateway.queue_max,
        open_=is_open,
    )
    watchdog = Watchdog(
        sessions=sessions,
        clock=clock,
        notice=notices.say,
        warn_s=settings.gateway.inactivity_warn_s,
        cancel_s=settings.gateway.inactivity_cancel_s,
    )
    return Core(
        db=db,
        hub=hub,
        slots=slots,
        approvals=approvals,
        intake=intake,
        sessions=sessions,
        controls=controls,
        delivery=delivery,
        watchdog=watchdog,
        grants=grants,
        engines=EngineWatch(engines, bubblewrap, clock, required=settings.sandbox.required),
    )
