"""The polling loop: the offset moves only behind updates that the gateway has taken, and the loop never ends.

The library's own updater confirms updates before they are handled, so it is not used; its way of reading a whole batch
at once fails on a single malformed update, so the batch is read raw here and parsed one by one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

import structlog
from telegram import Bot
from telegram.error import Conflict, InvalidToken, TelegramError

from adapters.telegram.exceptions import Cut, Flood, reason
from adapters.telegram.settings import Clock, TelegramSettings
from adapters.telegram.status import Status
from adapters.telegram.transport import AiohttpRequest
from adapters.telegram.updates import Taken, Updates

log = structlog.get_logger(__name__)

#: What the gateway has a use for.
ALLOWED_UPDATES = ("message", "edited_message", "callback_query")

#: A poll is given up so long after its end was due.
GRACE_S = 10.0


def pause(settings: TelegramSettings, failures: int) -> float:
    """Seconds to wait after so many failures in a row: doubled each time, bounded, with jitter."""
    ceiling = min(settings.longest_pause_s, settings.first_pause_s * 2.0 ** min(failures - 1, 16))
    return ceiling * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret


class Retries:
    """Repeats something until it works, with back-off; says in the status why it does not."""

    def __init__(self, settings: TelegramSettings, clock: Clock, status: Status) -> None:
        self._settings = settings
        self._clock = clock
        self._status = status
        self._failures = 0

    def worked(self) -> None:
        """Begin anew with short pauses."""
        self._failures = 0

    async def failed(self, why: str, at_least_s: float = 0.0) -> None:
        """Note it and wait."""
        self._failures += 1
        self._status.failed(why)
        await self._clock.sleep(max(at_least_s, pause(self._settings, self._failures)))

    async def until_done(self, work: Callable[[], Awaitable[object]]) -> None:
        """Try until it works."""
        while True:
            try:
                await work()
            except TelegramError as error:
                await self.failed(reason(error), _least(error, self._settings))
            else:
                self.worked()
                return


class Poller:
    """Fetches updates for as long as it is not cancelled.

    Args:
        bot: knows the address.
        request: a transport for polls alone; an answer that does not come renews its connections.
        updates: takes what comes.
    """

    def __init__(
        self,
        *,
        bot: Bot,
        request: AiohttpRequest,
        updates: Updates,
        settings: TelegramSettings,
        clock: Clock,
        status: Status,
    ) -> None:
        self._bot = bot
        self._request = request
        self._updates = updates
        self._settings = settings
        self._clock = clock
        self._status = status
        self._retries = Retries(settings, clock, status)
        self._offset = 0
        #: the next poll does not wait for updates: its answer tells at once that the connection stands
        self._brisk = True

    async def run(self) -> None:
        """Poll for ever; updates that have waited since before the start come first."""
        while True:
            try:
                batch = await self._poll()
            except TelegramError as error:
                await self._failed(error)
                continue
            taken = await self._updates.take(batch)
            if taken.offset is not None:
                self._offset = max(self._offset, taken.offset)
            await self._judge(batch, taken)

    async def _judge(self, batch: list[object], taken: Taken) -> None:
        if taken.retry_after_s:
            await self._retries.failed("The gateway takes no messages now.", taken.retry_after_s)
        elif batch and taken.offset is None:
            await self._retries.failed("Telegram sends updates without an id.")
        else:
            self._retries.worked()
            self._status.progress()

    async def _failed(self, error: TelegramError) -> None:
        log.info("poll_failed", error=type(error).__name__)
        if isinstance(error, Cut):
            await self._request.renew()
        # two pollers disturb each other at long polls alone; short ones would look as if all were well
        self._brisk = not isinstance(error, Conflict)
        await self._retries.failed(reason(error), _least(error, self._settings))
        if "webhook" in reason(error):
            await self._retries.until_done(self._bot.delete_webhook)

    async def _poll(self) -> list[object]:
        """One long poll.

        Raises:
            telegram.error.TelegramError: no answer, or none that can be used.
        """
        query = urlencode(
            {
                "offset": self._offset,
                "limit": 100,
                "timeout": 0 if self._brisk else int(self._settings.poll_s),
                "allowed_updates": json.dumps(ALLOWED_UPDATES),
            }
        )
        limit = self._settings.poll_s + GRACE_S
        try:
            async with self._clock.timeout(limit):
                result: object = await self._request.post(
                    f"{self._bot.base_url}/getUpdates?{query}", read_timeout=limit
                )
        except TimeoutError:
            raise Cut(f"no answer to a poll within {limit:g} s") from None
        except (KeyError, TypeError):
            raise Cut("an answer that is not one of the Bot API") from None
        if not isinstance(result, list):
            raise Cut("an answer that is not one of the Bot API")
        self._brisk = False
        return result


def _least(error: TelegramError, settings: TelegramSettings) -> float:
    """The shortest pause after an error: what the platform asks for, or long where only a person can help."""
    if isinstance(error, Flood):
        return error.retry_after_s
    return settings.longest_pause_s if isinstance(error, InvalidToken) else 0.0
