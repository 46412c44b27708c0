"""The front door: authorise, drop duplicates, make durable, route; in that order, before anything is acknowledged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol

import structlog

from adapters.base import Amendment, Inbound, Receipt, Tap, TapResult, TapVerdict, Verdict
from agent.control.clock import Clock
from gateway.access import Access, Address, Identity, address_of
from gateway.approvals import Approvals
from gateway.slash.words import is_control
from gateway.store import dead_letters, inbox, sessions
from gateway.store.database import Database
from gateway.store.exceptions import StoreError
from gateway.store.inbox import Accepted, NewInbound

log = structlog.get_logger(__name__)

#: Longest text of one message in characters: what fits into the largest request that any adapter takes.
MAX_TEXT = 1_048_576

#: Largest raw event that is kept as a dead letter.
MAX_RAW = 262_144

#: What a client is told to wait when the store does not take messages.
RETRY_AFTER_S = 5


class Router(Protocol):
    """Takes what was made durable."""

    def wake(self, key: str) -> None:
        """A message was queued for the session."""
        ...


class Controls(Protocol):
    """Takes words of control."""

    def submit(self, key: str) -> None:
        """A word of control was queued for the session."""
        ...


class InboundObserver(Protocol):
    """Counts messages."""

    def message_accepted(self, adapter: str) -> None:
        """A message is durable."""
        ...

    def message_duplicate(self, adapter: str) -> None:
        """A message came again."""
        ...

    def message_refused(self, adapter: str, reason: str) -> None:
        """A message was not taken."""
        ...


class Intake:
    """Fulfils :class:`adapters.base.Intake`."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        access: Access,
        approvals: Approvals,
        router: Router,
        controls: Controls,
        observer: InboundObserver,
        queue_max: int,
        open_: Callable[[], bool],
    ) -> None:
        self._db = db
        self._clock = clock
        self._access = access
        self._approvals = approvals
        self._router = router
        self._controls = controls
        self._observer = observer
        self._queue_max = queue_max
        self._open = open_

    async def accept(self, inbound: Inbound) -> Receipt:
        """Take a message; durable when it returns ACCEPTED or DUPLICATE."""
        receipt = await self._accept(inbound)
        platform = inbound.conversation.platform
        match receipt.verdict:
            case Verdict.ACCEPTED:
                self._observer.message_accepted(platform)
            case Verdict.DUPLICATE:
                self._observer.message_duplicate(platform)
            case refused:
                self._observer.message_refused(platform, refused.value)
        return receipt

    async def amend(self, inbound: Inbound) -> Amendment:
        """Take the new text of a message that still waits; words of control are never made of others by a change."""
        who = self._access.identify(inbound.sender)
        if who is None or is_control(inbound.text):
            return Amendment.IGNORED
        if not self._open() or not self._db.healthy:
            return Amendment.UNAVAILABLE

        def unit(conn: sqlite3.Connection) -> bool:
            return inbox.amend(conn, inbound.event_key, inbound.text[:MAX_TEXT], principal=who.principal)

        try:
            changed = await self._db.write(unit)
        except StoreError as error:
            log.error("change_not_stored", error=str(error))
            return Amendment.UNAVAILABLE
        return Amendment.CHANGED if changed else Amendment.IGNORED

    async def tap(self, tap: Tap) -> TapResult:
        """Take an answer to a card."""
        who = self._access.identify(tap.sender)
        if who is None:
            return TapResult(TapVerdict.NOT_YOURS, text="You may not answer requests here.")
        if not self._db.healthy:
            return _try_again()
        try:
            return await self._approvals.answer(tap, who)
        except StoreError as error:
            log.error("answer_not_stored", error=str(error))
            return _try_again()

    async def dead_letter(self, platform: str, event_key: str, raw: bytes, reason: str) -> None:
        """Keep what could not be parsed."""
        now = self._clock.now()
        log.warning("event_not_parsed", platform=platform, event_key=event_key, reason=reason)
        await self._db.write(
            lambda conn: dead_letters.add(
                conn, platform=platform, event_key=event_key, raw=raw[:MAX_RAW], reason=reason, now=now
            )
        )

    async def _accept(self, inbound: Inbound) -> Receipt:
        who = self._access.identify(inbound.sender)
        if who is None:
            log.info("stranger_ignored", platform=inbound.sender.platform)
            return Receipt(Verdict.STRANGER)
        if not self._open() or not self._db.healthy:
            return Receipt(Verdict.UNAVAILABLE, retry_after_s=RETRY_AFTER_S)
        address = address_of(inbound.conversation, who)
        control = is_control(inbound.text)
        try:
            accepted = await self._db.write(lambda conn: self._store(conn, inbound, who, address, control))
        except StoreError as error:
            log.error("message_not_stored", error=str(error), session=address.key)
            return Receipt(Verdict.UNAVAILABLE, retry_after_s=RETRY_AFTER_S)
        if accepted.verdict == "full":
            return Receipt(Verdict.QUEUE_FULL, address.key, accepted.queued, retry_after_s=RETRY_AFTER_S)
        if accepted.verdict == "duplicate":
            return Receipt(Verdict.DUPLICATE, accepted.session, accepted.queued)
        log.info("message_accepted", session=address.key, principal=who.principal, control=control)
        if control:
            self._controls.submit(address.key)
        else:
            self._router.wake(address.key)
        return Receipt(Verdict.ACCEPTED, address.key, accepted.queued)

    def _store(
        self, conn: sqlite3.Connection, inbound: Inbound, who: Identity, address: Address, control: bool
    ) -> Accepted:
        now = self._clock.now()
        conversation = inbound.conversation
        sessions.ensure(
            conn,
            key=address.key,
            name=address.name,
            adapter=conversation.platform,
            owner=address.owner,
            scope=address.scope,
            conversation={
                "platform": conversation.platform,
                "chat": conversation.chat,
                "kind": conversation.kind.value,
                "thread": conversation.thread,
            },
            now=now,
        )
        item = NewInbound(
            event_key=inbound.event_key,
            session=address.key,
            principal=who.principal,
            role=who.role.name.lower(),
            sender=asdict(inbound.sender),
            text=inbound.text[:MAX_TEXT],
            message_ref=inbound.message_ref,
            reply_to=inbound.reply_to[:MAX_TEXT],
            attachments=[asdict(attachment) for attachment in inbound.attachments],
            mergeable=inbound.mergeable,
            control=control,
        )
        return inbox.accept(conn, item, now, self._queue_max)


def _try_again() -> TapResult:
    return TapResult(TapVerdict.UNAVAILABLE, text="Your answer could not be stored. Please try again in a moment.")
