"""Builds the parts of the daemon that do not depend on a platform, and joins them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from adapters.base import Adapter
from agent.control.clock import Clock
from agent.control.pipeline import LEASE_MARGIN_S
from agent.control.ports import Role
from agent.control.redact import Redactor
from agent.models.base import Model
from agent.models.offline import OfflineModel
from agent.turn_context import TurnLimits
from gateway.access import Access
from gateway.allowlist import Allowlist
from gateway.approvals import Approvals
from gateway.ask_effects import AskEffects
from gateway.cards import OutboxCards
from gateway.config import Config
from gateway.control_layer import EngineWatch, build_control
from gateway.delivery import Delivery
from gateway.grants import Grants
from gateway.home import Home
from gateway.intake import Intake
from gateway.journal import EventWriter
from gateway.metrics import Metrics
from gateway.mind import FixedMind, tools_of
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


def people_of(settings: Config) -> dict[str, dict[str, Role]]:
    """Roles by platform and id: the owner, and who has a token of their own."""
    people = {
        token.user: max(map(Role.parse, token.roles), default=Role.VIEWER) for token in settings.adapters.http.tokens
    }
    return {"http": {**people, "owner": Role.ADMIN}}


@dataclass(frozen=True, slots=True)
class Ground:
    """What everything stands on.

    Attributes:
        adapters: those that are pushed to, by name.
        tasks: owns every task of a session, a word of control or a delivery.
        is_open: whether messages are taken now.
        model: takes the place of the configured one.
    """

    settings: Config
    home: Home
    db: Database
    clock: Clock
    access: Access
    redactor: Redactor
    metrics: Metrics
    adapters: Mapping[str, Adapter]
    tasks: asyncio.TaskGroup
    is_open: Callable[[], bool]
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class _Records:
    """What is written down and told: events, the audit chain, grants, requests to people, the outbox."""

    hub: EventHub
    slots: Slots
    writer: EventWriter
    trail: AuditTrail
    delivery: Delivery
    grants: Grants
    approvals: Approvals


async def build_core(ground: Ground) -> Core:
    """Build and join everything; nothing runs yet."""
    records = await _records(ground)
    settings, clock, metrics = ground.settings, ground.clock, ground.metrics
    pipeline, engines = build_control(
        settings=settings,
        home=ground.home,
        clock=clock,
        metrics=metrics,
        redactor=ground.redactor,
        approver=records.approvals,
        decisions=DecisionRecorder(ground.db, records.trail, clock),
        grants=records.grants,
    )
    mind = FixedMind(ground.model or OfflineModel(), tools_of(settings, pipeline), language=settings.agent.language)
    ender = TurnEnder(
        db=ground.db,
        hub=records.hub,
        writer=records.writer,
        asks=records.approvals,
        outbound=records.delivery,
        trail=records.trail,
        now=clock.now,
    )
    notices = Notices(db=ground.db, hub=records.hub, writer=records.writer, ender=ender, outbound=records.delivery)
    services = _services(ground, records, mind, ender)
    sessions = Sessions(db=ground.db, clock=clock, services=services, tasks=ground.tasks)
    controls = _controls(ground, records, sessions, notices, mind)
    intake = Intake(
        db=ground.db,
        clock=clock,
        access=ground.access,
        approvals=records.approvals,
        router=sessions,
        controls=controls,
        observer=metrics,
        queue_max=settings.gateway.queue_max,
        open_=ground.is_open,
    )
    watchdog = Watchdog(
        sessions=sessions,
        clock=clock,
        notice=notices.say,
        warn_s=settings.gateway.inactivity_warn_s,
        cancel_s=settings.gateway.inactivity_cancel_s,
    )
    return Core(
        db=ground.db,
        hub=records.hub,
        slots=records.slots,
        approvals=records.approvals,
        intake=intake,
        sessions=sessions,
        controls=controls,
        delivery=records.delivery,
        watchdog=watchdog,
        grants=records.grants,
        engines=engines,
    )


async def _records(ground: Ground) -> _Records:
    db, clock, settings = ground.db, ground.clock, ground.settings
    boot = secrets.token_hex(8)
    # lets `ostiary grants list` tell the grants of this run from those of earlier ones
    await db.write(lambda conn: meta.put(conn, "boot", boot))
    ids = await db.read(lambda conn: EventIds.begin(conn, clock.now()))
    hub, slots = EventHub(lambda: ids.last), Slots(settings.gateway.max_running_turns)
    trail = AuditTrail(Chain(await asyncio.to_thread(ground.home.audit_key)), ground.redactor)

    async def undeliverable(ask_id: str) -> None:
        await approvals.undeliverable(ask_id)

    delivery = Delivery(
        db=db, clock=clock, adapters=ground.adapters, tasks=ground.tasks, on_undeliverable=undeliverable
    )
    grants = Grants(db=db, allowlist=Allowlist(ground.home.allowlist_file), trail=trail, clock=clock, boot=boot)
    effects = AskEffects(ids=ids, hub=hub, trail=trail, cards=OutboxCards(delivery), counter=ground.metrics, boot=boot)
    approvals = Approvals(
        db=db,
        clock=clock,
        effects=effects,
        permanent=grants,
        slots=slots,
        timeout_s=settings.approvals.timeout_s,
    )
    return _Records(hub, slots, EventWriter(ids, clock.now), trail, delivery, grants, approvals)


def _services(ground: Ground, records: _Records, mind: FixedMind, ender: TurnEnder) -> Services:
    settings = ground.settings
    return Services(
        db=ground.db,
        clock=ground.clock,
        hub=records.hub,
        writer=records.writer,
        slots=records.slots,
        mind=mind,
        ender=ender,
        observer=ground.metrics,
        workspace=ground.home.workspace,
        role_of=ground.access.role_of,
        limits=TurnLimits(
            model_silence_s=settings.limits.model_silence_s,
            model_request_s=settings.model.request_s,
            tool_s=settings.limits.terminal_max_s + LEASE_MARGIN_S,
            max_output_tokens=settings.model.max_output_tokens,
        ),
        max_turns=settings.agent.max_turns,
    )


def _controls(ground: Ground, records: _Records, sessions: Sessions, notices: Notices, mind: FixedMind) -> Controls:
    toolbox = Toolbox(
        db=ground.db,
        clock=ground.clock,
        sessions=sessions,
        approvals=records.approvals,
        grants=records.grants,
        model_name=mind.model().name,
    )
    return Controls(
        db=ground.db,
        clock=ground.clock,
        toolbox=toolbox,
        notices=notices,
        workspace=ground.home.workspace,
        role_of=ground.access.role_of,
        tasks=ground.tasks,
    )
