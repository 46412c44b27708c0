"""The bot library joined with our transport; the only way into the modules that need the library."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog
from aiohttp import web
from telegram import Bot
from telegram.error import TelegramError

from adapters.base import Card, CardEnd, Conversation, Intake, Part, Sent
from adapters.telegram.polling import ALLOWED_UPDATES, GRACE_S, Poller, Retries
from adapters.telegram.reading import Me
from adapters.telegram.sending import Sending
from adapters.telegram.settings import Clock, TelegramSettings, Webhook
from adapters.telegram.status import Status
from adapters.telegram.transport import AiohttpRequest
from adapters.telegram.updates import NotTaken, Replies, Updates

log = structlog.get_logger(__name__)

T = TypeVar("T")

#: Connections for calls; the platform serves about 30 messages a second to a bot.
CONNECTIONS = 64

#: What is under way at the stop may take so much longer, in seconds.
CLOSE_S = 2.0

#: Where the platform says the webhook's secret.
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name


class Connection:
    """One bot's connection: takes updates, sends messages."""

    def __init__(self, settings: TelegramSettings, intake: Intake, clock: Clock, status: Status) -> None:
        self._settings = settings
        self._intake = intake
        self._clock = clock
        self._status = status
        self._request = AiohttpRequest(connections=CONNECTIONS)
        self._poll_request = AiohttpRequest(connections=1, read_s=settings.poll_s + GRACE_S)
        self._bot = Bot(
            settings.token,
            base_url=settings.base_url,
            base_file_url=settings.file_url,
            request=self._request,
            get_updates_request=self._poll_request,
        )
        self._sending = Sending(self._bot)
        self._updates: Updates | None = None
        self._work: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Make it possible to send; nothing is sent."""
        await self._request.initialize()
        await self._poll_request.initialize()

    async def run(self) -> None:
        """Learn who the bot is, set its menu, and take updates until cancelled."""
        retries = Retries(self._settings, self._clock, self._status)
        await retries.until_done(self._bot.initialize)
        updates = Updates(
            intake=self._intake,
            bot=self._bot,
            me=Me(self._bot.id, self._bot.username),
            require_mention=self._settings.require_mention,
            replies=Replies(self._sending.answer_tap, self._sending.busy),
            begin=self.begin,
        )
        log.info("telegram_bot", id=self._bot.id, username=self._bot.username)
        if self._settings.commands:
            self.begin(self._menu(), "telegram-menu")
        webhook = self._settings.webhook
        if webhook is not None:
            await retries.until_done(lambda: self._set_webhook(webhook))
            self._status.progress(watched=False)
            self._updates = updates
            return
        await retries.until_done(self._bot.delete_webhook)
        await Poller(
            bot=self._bot,
            request=self._poll_request,
            updates=updates,
            settings=self._settings,
            clock=self._clock,
            status=self._status,
        ).run()

    async def close(self) -> None:
        """Let what is under way end, then close every connection."""
        if self._work:
            _, late = await asyncio.wait(self._work, timeout=CLOSE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._request.shutdown()
        await self._poll_request.shutdown()

    async def send(self, conversation: Conversation, part: Part) -> Sent:
        """See :class:`adapters.base.Adapter`."""
        return await self._tracked(self._sending.send(conversation, part), "telegram-send")

    async def edit(self, sent: Sent, part: Part) -> None:
        """See :class:`adapters.base.Adapter`."""
        await self._tracked(self._sending.edit(sent, part), "telegram-edit")

    async def show_card(self, conversation: Conversation, card: Card) -> Sent:
        """See :class:`adapters.base.Adapter`."""
        return await self._tracked(self._sending.show_card(conversation, card), "telegram-card")

    async def end_card(self, sent: Sent, card: Card, end: CardEnd) -> None:
        """See :class:`adapters.base.Adapter`."""
        await self._tracked(self._sending.end_card(sent, card, end), "telegram-card-end")

    async def webhook(self, request: web.Request, webhook: Webhook) -> web.Response:
        """Take one update; 200 only once it is durable, so that the platform sends it again otherwise."""
        secret = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(secret.encode(), webhook.secret.encode()):
            return web.Response(status=401)
        if self._updates is None:
            return web.Response(status=503)
        raw: object
        body = await request.read()
        try:
            raw = json.loads(body)
        except ValueError:
            raw = body.decode(errors="replace")
        try:
            await self._updates.one(raw)
        except NotTaken as error:
            return web.Response(status=503, headers={"Retry-After": f"{error.retry_after_s:.0f}"})
        return web.Response()

    def begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run something beside everything else; it is awaited at the stop."""
        task = asyncio.create_task(work, name=name)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _tracked(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Await ``work`` as a task that :meth:`close` waits for."""
        task = asyncio.create_task(work, name=name)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        try:
            return await task
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise

    async def _menu(self) -> None:
        try:
            await self._sending.set_menu(self._settings.commands)
        except TelegramError as error:
            log.warning("menu_not_set", error=type(error).__name__)

    async def _set_webhook(self, webhook: Webhook) -> None:
        await self._bot.set_webhook(
            webhook.url, secret_token=webhook.secret, allowed_updates=list(ALLOWED_UPDATES), max_connections=40
        )
