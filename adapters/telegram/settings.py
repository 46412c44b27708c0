"""What the adapter is told, and the time that it lives by."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

#: The public Bot API.
PUBLIC_API = "https://api.telegram.org/bot"


class Clock(Protocol):
    """Time for every limit of the adapter."""

    def monotonic(self) -> float:
        """Seconds that never step back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        """Raise ``TimeoutError`` out of the block after ``seconds``."""
        ...


@dataclass(frozen=True, slots=True)
class Webhook:
    """Updates by webhook.

    Attributes:
        url: the public address, whose path is served on the gateway's listener.
        secret: what the platform sends in ``X-Telegram-Bot-Api-Secret-Token``.
    """

    url: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Command:
    """One line of the bot's menu."""

    name: str
    help: str


@dataclass(frozen=True, slots=True)
class TelegramSettings:
    """One bot.

    Attributes:
        token: from BotFather.
        base_url: the part before the token; files come from it with ``/bot`` replaced by ``/file/bot``.
        require_mention: in groups, take only what mentions the bot or answers it.
        commands: the menu that is set at start; none leaves it as it is.
        webhook: None polls.
        poll_s: longest wait of one poll.
        first_pause_s: pause after the first failure; doubled up to ``longest_pause_s``, with jitter.
    """

    token: str = field(repr=False)
    base_url: str = PUBLIC_API
    require_mention: bool = True
    commands: tuple[Command, ...] = ()
    webhook: Webhook | None = None
    poll_s: float = 25.0
    first_pause_s: float = 1.0
    longest_pause_s: float = 30.0

    @property
    def file_url(self) -> str:
        """The part before the token of a file's address."""
        head, _, tail = self.base_url.rpartition("/bot")
        return f"{head}/file/bot{tail}"
