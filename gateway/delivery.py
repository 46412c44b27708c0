"""The outbox's driver: sends parts in order within a chat, and is the one owner of retries."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from adapters.base import (
    Adapter,
    Conversation,
    ConversationKind,
    DeliveryError,
    NotSent,
    Part,
    Piece,
    Rejected,
    Sent,
    Uncertain,
)
from agent.control.clock import Clock
from gateway.asks_view import card_of, end_of
from gateway.persist import until_stored
from gateway.store import asks, outbox
from gateway.store.database import Database
from gateway.store.exceptions import StoreError
from gateway.store.outbox import OutboxRow

log = structlog.get_logger(__name__)

#: First and longest pause between tries, in seconds; doubled each time, with full jitter.
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0

#: Longest that a platform may take over one part; after it nobody knows whether the part arrived.
SEND_S = 60.0

#: What is still being sent when the daemon stops may take so much longer.
CLOSE_S = 2.0


@dataclass(frozen=True, slots=True)
class _Retry:
    """Try again later."""

    after_s: float
    uncertain: bool
    error: str


class Delivery:
    """One short-lived task a chat that has something to send; chats and platforms never hold each other up."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        adapters: Mapping[str, Adapter],
        tasks: asyncio.TaskGroup,
        on_undeliverable: Callable[[str], Awaitable[None]],
    ) -> None:
        self._db = db
        self._clock = clock
        self._adapters = adapters
        self._tasks = tasks
        self._on_undeliverable = on_undeliverable
        self._lanes: dict[str, asyncio.Event] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._stopping = False

    def pushes(self, adapter: str) -> bool:
        """Whether messages of this adapter go through the outbox."""
        known = self._adapters.get(adapter)
        return known is not None and known.capabilities.pushes

    def split(self, adapter: str, text: str) -> Sequence[Piece]:
        """``text`` as pieces that fit a message of this adapter's platform; may take a moment for a long one."""
        known = self._adapters.get(adapter)
        return (Piece(text),) if known is None else known.split(text)

    def wake(self, lane: str) -> None:
        """A part of ``lane`` was committed."""
        if self._stopping:
            return
        event = self._lanes.get(lane)
        if event is not None:
            event.set()
            return
        self._lanes[lane] = asyncio.Event()
        self._begin(self._drive(lane), f"deliver-{lane}")

    async def recover(self) -> None:
        """At start: what a crash left half sent is uncertain; go on with everything that is open."""
        await self._db.write(outbox.recover)
        for lane in await self._db.read(outbox.lanes_with_work):
            self.wake(lane)

    def stop(self) -> None:
        """Begin no further send; what is open goes on at the next start."""
        self._stopping = True
        for event in self._lanes.values():
            event.set()

    async def close(self) -> None:
        """Once the platforms have stopped: give up what is still being sent. The next start sends it again, marked."""
        if not self._work:
            return
        _, late = await asyncio.wait(self._work, timeout=CLOSE_S)
        for task in late:
            log.warning("delivery_cut", lane=task.get_name())
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        # an empty context: a lane carries the parts of several sessions, and belongs to none of them
        task = self._tasks.create_task(work, name=name, context=Context())
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _drive(self, lane: str) -> None:
        event = self._lanes[lane]
        try:
            while not self._stopping:
                event.clear()
                row = await self._db.read(lambda conn: outbox.next_due(conn, lane))
                if row is None:
                    if event.is_set():
                        continue
                    return
                # A part that was never tried is due, also where the clock was set back since it was made.
                left = (row.next_at - self._clock.now()).total_seconds() if row.attempts else 0.0
                if left > 0:
                    await self._pause(left, event)
                    continue
                await self._deliver(row)
        except StoreError as error:
            log.error("delivery_store_failed", lane=lane, error=str(error))
            if not self._stopping:
                self._begin(self._later(lane), f"deliver-later-{lane}")
        finally:
            del self._lanes[lane]

    async def _later(self, lane: str) -> None:
        await self._clock.sleep(5.0)
        self.wake(lane)

    async def _pause(self, seconds: float, event: asyncio.Event) -> None:
        """Wait, but not beyond a stop."""
        try:
            async with self._clock.timeout(seconds):
                while not self._stopping:
                    await event.wait()
                    event.clear()
        except TimeoutError:
            return

    async def _deliver(self, row: OutboxRow) -> None:
        adapter = self._adapters.get(row.adapter)
        if adapter is None:
            await self._dead(row, f"adapter {row.adapter} is not enabled")
            return
        await self._db.write(lambda conn: outbox.mark_sending(conn, row.id, self._clock.now()))
        try:
            sent = await self._bounded(adapter, row)
        except Rejected as error:
            await self._dead(row, str(error))
            return
        except (NotSent, Uncertain) as error:
            await self._again(row, _retry(row, error))
            return
        except DeliveryError as error:
            await self._dead(row, str(error))
            return
        except StoreError as error:
            await self._again(row, _retry(row, NotSent(str(error))))
            return
        await self._record(lambda conn: self._sent(conn, row, sent))

    def _sent(self, conn: sqlite3.Connection, row: OutboxRow, sent: Sent | None) -> None:
        """It arrived. Where a card stands is known in the same commit: only there may it be tapped and ended."""
        ref = {"chat": sent.chat, "message": sent.message} if sent else None
        outbox.mark_sent(conn, row.id, ref, self._clock.now())
        if row.kind == "card" and ref is not None:
            asks.add_shown(conn, json.loads(row.body)["ask"], ref)

    async def _record(self, unit: Callable[[sqlite3.Connection], object]) -> None:
        """Write down what came of an attempt, however long the store takes: until then nothing else of the lane goes.

        Raises:
            StoreError: the daemon stops; at the next start the attempt counts as uncertain.
        """
        await until_stored(self._clock, lambda: self._db.write(unit), what="delivery", give_up=lambda: self._stopping)

    async def _bounded(self, adapter: Adapter, row: OutboxRow) -> Sent | None:
        """One attempt within its limit; whatever an adapter raises that it should not leaves the part uncertain."""
        try:
            async with self._clock.timeout(SEND_S):
                return await self._attempt(adapter, row)
        except (DeliveryError, StoreError):
            raise
        except TimeoutError as error:
            raise Uncertain(f"no answer within {SEND_S:g} s") from error
        except Exception as error:
            log.exception("adapter_failed", adapter=adapter.name, part=row.part_id)
            raise Uncertain(f"the adapter failed: {type(error).__name__}") from error

    async def _attempt(self, adapter: Adapter, row: OutboxRow) -> Sent | None:
        conversation = _conversation(row)
        if row.kind == "text":
            part = Part(part_id=row.part_id, text=row.body, repeated=row.uncertain, formatted=row.formatted)
            try:
                return await adapter.send(conversation, part)
            except Rejected as error:
                if not error.formatting:
                    raise
                plain = Part(part_id=row.part_id, text=row.body, plain=True, repeated=row.uncertain)
                return await adapter.send(conversation, plain)
        ask_id = json.loads(row.body)["ask"]
        ask = await self._db.read(lambda conn: asks.get(conn, ask_id))
        if ask is None:
            return None
        if row.kind == "card":
            if ask.state != "pending":
                return None
            return await adapter.show_card(conversation, card_of(ask))
        for ref in ask.shown:
            await adapter.end_card(conversation, Sent(ref["chat"], ref["message"]), card_of(ask), end_of(ask))
        return None

    async def _again(self, row: OutboxRow, retry: _Retry) -> None:
        if row.uncertain and retry.uncertain:
            await self._dead(row, f"{retry.error} (twice uncertain)")
            return
        next_at = self._clock.now() + timedelta(seconds=retry.after_s)
        log.info("delivery_retry", part=row.part_id, after_s=round(retry.after_s, 1), error=retry.error)
        await self._record(
            lambda conn: outbox.mark_retry(
                conn, row.id, next_at=next_at, uncertain=row.uncertain or retry.uncertain, error=retry.error
            )
        )

    async def _dead(self, row: OutboxRow, error: str) -> None:
        log.error("delivery_dead", part=row.part_id, kind=row.kind, error=error)
        await self._record(lambda conn: outbox.mark_dead(conn, row.id, error))
        if row.kind == "card":
            ask_id = json.loads(row.body)["ask"]
            await until_stored(
                self._clock,
                lambda: self._on_undeliverable(ask_id),
                what="undeliverable card",
                give_up=lambda: self._stopping,
            )


def _retry(row: OutboxRow, error: NotSent | Uncertain) -> _Retry:
    ceiling = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(row.attempts, 10))
    pause = random.uniform(0, ceiling)  # noqa: S311 - jitter, not a secret
    if isinstance(error, NotSent):
        return _Retry(max(pause, error.retry_after_s), uncertain=False, error=str(error))
    return _Retry(pause, uncertain=True, error=str(error))


def _conversation(row: OutboxRow) -> Conversation:
    data = row.conversation
    return Conversation(
        platform=str(data["platform"]),
        chat=str(data["chat"]),
        kind=ConversationKind(data["kind"]),
        thread=str(data.get("thread", "")),
    )
