"""The adapter as the gateway sees it. Importing this module does not import the bot library."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from adapters.base import Capabilities, Card, CardEnd, Conversation, Health, Intake, NotSent, Part, Piece, Sent
from adapters.telegram.settings import Clock, TelegramSettings, Webhook
from adapters.telegram.status import Status
from adapters.telegram.wording import LIMIT, MAX_TEXT

if TYPE_CHECKING:
    from adapters.telegram.connection import Connection

log = structlog.get_logger(__name__)

#: A poll that has not come back after so many times its length means a dead connection.
STALE_POLLS = 3

#: What to wait before beginning again after a fault of the adapter's own.
AFTER_FAULT_S = 5.0


class TelegramAdapter:
    """One bot.

    ::

        adapter = TelegramAdapter(TelegramSettings(token="..."), clock)
        await adapter.start(intake)

    Args:
        settings: see there.
        clock: time for every limit.
    """

    name = "telegram"
    capabilities = Capabilities(pushes=True, text_utf16=MAX_TEXT)

    def __init__(self, settings: TelegramSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._status = Status(clock, stale_s=STALE_POLLS * max(settings.poll_s, 5.0))
        self._connection: asyncio.Future[Connection] | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, intake: Intake) -> None:
        """Begin to load the library and to connect; returns at once."""
        self._connection = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(intake, self._connection), name="telegram")

    async def stop(self) -> None:
        """Take no more updates, let sends in flight end, close connections."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        future, self._connection = self._connection, None
        if future is not None and future.done() and not future.cancelled():
            await future.result().close()
        self._status.stopped()

    def health(self) -> Health:
        """Whether updates come in."""
        return self._status.health()

    def routes(self) -> Sequence[web.RouteDef]:
        """The webhook's path, where there is one."""
        webhook = self._settings.webhook
        if webhook is None:
            return ()

        async def take(request: web.Request) -> web.Response:
            return await self._webhook(request, webhook)

        return (web.post(urlsplit(webhook.url).path or "/", take),)

    def split(self, text: str) -> Sequence[Piece]:
        """Pieces of at most one message each, as HTML; parses, so a long text belongs into a worker thread."""
        from adapters.telegram.render import HTML  # noqa: PLC0415 - loaded with the first answer, not at start
        from adapters.text import split_markdown  # noqa: PLC0415

        chunks = split_markdown(text, limit=LIMIT, render=HTML)
        return [Piece(chunk.plain, chunk.text) for chunk in chunks] or [Piece(text)]

    async def send(self, conversation: Conversation, part: Part) -> Sent:
        """Send one message.

        Raises:
            DeliveryError: see its tree.
        """
        return await (await self._connected()).send(conversation, part)

    async def edit(self, conversation: Conversation, sent: Sent, part: Part) -> None:  # noqa: ARG002
        """Replace the text of a message; an identical text counts as success.

        Raises:
            DeliveryError: see its tree.
        """
        await (await self._connected()).edit(sent, part)

    async def show_card(self, conversation: Conversation, card: Card) -> Sent:
        """Show a card with its buttons.

        Raises:
            DeliveryError: see its tree.
        """
        return await (await self._connected()).show_card(conversation, card)

    async def end_card(self, conversation: Conversation, sent: Sent, card: Card, end: CardEnd) -> None:  # noqa: ARG002
        """Take the buttons away and say how it ended.

        Raises:
            DeliveryError: see its tree.
        """
        await (await self._connected()).end_card(sent, card, end)

    async def _connected(self) -> Connection:
        """The connection, once the library is loaded.

        Raises:
            NotSent: there is none.
        """
        future = self._connection
        if future is None:
            raise NotSent("the Telegram adapter is not running")
        return await asyncio.shield(future)

    async def _run(self, intake: Intake, opened: asyncio.Future[Connection]) -> None:
        """Load, connect and take updates; a fault of ours begins it anew."""
        connection = None
        while connection is None:
            try:
                connection = (await asyncio.to_thread(_load))(self._settings, intake, self._clock, self._status)
                await connection.open()
            except Exception:
                log.exception("telegram_failed")
                await self._fault()
        opened.set_result(connection)
        while True:
            try:
                await connection.run()
            except Exception:
                log.exception("telegram_failed")
                await self._fault()
            else:
                return

    async def _fault(self) -> None:
        self._status.failed("The Telegram adapter has failed; the log says why. It begins again.")
        await self._clock.sleep(AFTER_FAULT_S)

    async def _webhook(self, request: web.Request, webhook: Webhook) -> web.Response:
        future = self._connection
        if future is None or not future.done() or future.cancelled():
            return web.Response(status=503)
        return await future.result().webhook(request, webhook)


def _load() -> type[Connection]:
    """Import the library; takes a tenth of a second, so it is done in a worker thread."""
    from adapters.telegram.connection import Connection  # noqa: PLC0415

    return Connection
