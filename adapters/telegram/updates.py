"""Takes batches of updates: chats side by side, each in its order, and nothing counts before it is durable."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from telegram import Bot, Update

from adapters.base import Amendment, Inbound, Intake, Receipt, Tap, TapResult, TapVerdict, Verdict
from adapters.telegram.reading import PLATFORM, Me, Tapped, Written, read

log = structlog.get_logger(__name__)

#: What to wait when the gateway does not take messages and does not say how long.
RETRY_AFTER_S = 2.0

#: Taps whose answer is remembered, so that none is answered twice.
REMEMBERED_TAPS = 1_000

_UNKNOWN_BUTTON = "This button is not known here any more."

#: Ends of a tap after which the buttons of that very message have no use.
_DEAD = frozenset({TapVerdict.UNKNOWN, TapVerdict.EXPIRED, TapVerdict.ALREADY_SETTLED})


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a batch.

    Attributes:
        offset: id of the first update that was not taken, or behind the last one; None where no update had an id.
        retry_after_s: how long to wait before the next poll; 0 when all were taken.
    """

    offset: int | None
    retry_after_s: float = 0.0


class NotTaken(Exception):
    """The gateway does not take messages now; the update must come again."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"not taken; again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s or RETRY_AFTER_S


@dataclass(frozen=True, slots=True)
class Replies:
    """What a person is told without a turn; neither holds up the updates behind it.

    Attributes:
        answer_tap: query id, text for the person, and the tap whose message has no use for its buttons any more.
        busy: the message that was not taken because too many wait.
    """

    answer_tap: Callable[[str, str, Tap | None], Coroutine[Any, Any, None]]
    busy: Callable[[Inbound, Receipt], Coroutine[Any, Any, None]]


class Updates:
    """Hands updates to the gateway.

    Args:
        intake: the gateway.
        bot: lets the library make objects of updates.
        me: the bot itself.
        require_mention: see :class:`~adapters.telegram.settings.TelegramSettings`.
        replies: what to tell people.
        begin: runs a coroutine beside everything else.
    """

    def __init__(
        self,
        *,
        intake: Intake,
        bot: Bot,
        me: Me,
        require_mention: bool,
        replies: Replies,
        begin: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        self._intake = intake
        self._bot = bot
        self._me = me
        self._require_mention = require_mention
        self._replies = replies
        self._begin = begin
        self._answered: dict[str, None] = {}

    async def take(self, batch: Sequence[object]) -> Taken:
        """Handle a batch; the offset may move to what is returned, and no further."""
        lanes: dict[str, list[object]] = {}
        for raw in batch:
            lanes.setdefault(_lane(raw), []).append(raw)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._lane(lane), name="telegram-lane") for lane in lanes.values()]
        stops = [stop for stop in (task.result() for task in running) if stop is not None]
        ids = [id_ for raw in batch if (id_ := _update_id(raw)) is not None]
        open_ids = [id_ for raw, _ in stops if (id_ := _update_id(raw)) is not None]
        if stops:
            return Taken(min(open_ids, default=None), max(error.retry_after_s for _, error in stops))
        return Taken(max(ids) + 1 if ids else None)

    async def one(self, raw: object) -> None:
        """Handle a single update.

        Raises:
            NotTaken: it must come again.
        """
        try:
            update = _parsed(raw, self._bot)
            event = read(update, self._me, require_mention=self._require_mention)
        except Exception as error:  # noqa: BLE001 - whatever a malformed update breaks
            await self._keep(raw, f"cannot be read: {type(error).__name__}: {error}")
            return
        try:
            match event:
                case Tapped():
                    await self._tapped(event)
                case Written(edited=True):
                    await self._edited(event.inbound)
                case Written():
                    await self._written(event.inbound)
        except NotTaken:
            raise
        except Exception as error:
            log.exception("update_failed")
            await self._keep(raw, f"failed in the gateway: {type(error).__name__}")

    async def _lane(self, lane: Sequence[object]) -> tuple[object, NotTaken] | None:
        """Handle updates of one chat in order; the first one that was not taken stops them."""
        for raw in lane:
            try:
                await self.one(raw)
            except NotTaken as error:
                return raw, error
        return None

    async def _written(self, inbound: Inbound) -> None:
        receipt = await self._intake.accept(inbound)
        match receipt.verdict:
            case Verdict.UNAVAILABLE:
                raise NotTaken(receipt.retry_after_s)
            case Verdict.QUEUE_FULL:
                self._begin(self._replies.busy(inbound, receipt), "telegram-busy")

    async def _edited(self, inbound: Inbound) -> None:
        if await self._intake.amend(inbound) is Amendment.UNAVAILABLE:
            raise NotTaken(RETRY_AFTER_S)

    async def _tapped(self, tapped: Tapped) -> None:
        # an update may come again because another one of its batch was not taken
        if tapped.query in self._answered:
            return
        self._answered[tapped.query] = None
        if len(self._answered) > REMEMBERED_TAPS:
            del self._answered[next(iter(self._answered))]
        if tapped.tap is None:
            result = TapResult(TapVerdict.NOT_A_CHOICE, text=_UNKNOWN_BUTTON)
        else:
            result = await self._intake.tap(tapped.tap)
        dead = tapped.tap if tapped.genuine and result.verdict in _DEAD else None
        self._begin(self._replies.answer_tap(tapped.query, result.text, dead), "telegram-tap")

    async def _keep(self, raw: object, reason: str) -> None:
        """Keep what cannot be handled, so that the offset may move on."""
        content = json.dumps(raw, ensure_ascii=False).encode("utf-8", "surrogatepass")
        key = f"{PLATFORM}:{self._me.id}:raw:{hashlib.sha256(content).hexdigest()[:32]}"
        await _or_not_taken(self._intake.dead_letter(PLATFORM, key, content, reason))


async def _or_not_taken(work: Awaitable[None]) -> None:
    try:
        await work
    except Exception as error:
        log.error("dead_letter_not_stored", error=str(error))
        raise NotTaken(RETRY_AFTER_S) from error


def _parsed(raw: object, bot: Bot) -> Update:
    if not isinstance(raw, dict) or not isinstance(raw.get("update_id"), int):
        raise TypeError("an update is an object with an id")
    return Update.de_json(raw, bot)


def _update_id(raw: object) -> int | None:
    id_ = raw.get("update_id") if isinstance(raw, dict) else None
    return id_ if isinstance(id_, int) else None


def _lane(raw: object) -> str:
    """What must be handled in order: the messages of a chat. A tap waits for nothing."""
    if isinstance(raw, dict):
        for name in ("message", "edited_message"):
            part = raw.get(name)
            chat = part.get("chat") if isinstance(part, dict) else None
            if isinstance(chat, dict):
                return f"chat:{chat.get('id')}"
        return f"update:{raw.get('update_id')}"
    return "malformed"
