"""What a call over our transport can fail with beside the library's own errors, and what delivery makes of it.

::

    telegram.error.TelegramError
    +-- Flood                 429: not sent, and when to try again
    +-- telegram.error.NetworkError
        +-- NotConnected      no connection came about: certainly not sent
        +-- Cut               the connection ended or nothing came in time: uncertain
        +-- ServerFault       5xx: uncertain
"""

from __future__ import annotations

from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, NetworkError, TelegramError

from adapters.base import DeliveryError, NotSent, Rejected, Uncertain


class Flood(TelegramError):
    """The platform's rate limit; ``retry_after_s`` is to be honoured in full."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"Telegram's rate limit: try again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class NotConnected(NetworkError):
    """Refused, unreachable, or no such name."""


class Cut(NetworkError):
    """The connection ended, or no answer came in time."""


class ServerFault(NetworkError):
    """An error of the platform's servers, or of a proxy before them."""


def not_modified(error: TelegramError) -> bool:
    """Whether an edit failed only because the message looks so already."""
    return isinstance(error, BadRequest) and "message is not modified" in error.message.lower()


def delivery_error(error: TelegramError) -> DeliveryError:
    """The same for the gateway: certain or uncertain, for now or for good."""
    match error:
        case Flood():
            return NotSent(str(error), retry_after_s=error.retry_after_s)
        case NotConnected() | ChatMigrated() | Conflict():
            return NotSent(error.message)
        case InvalidToken():
            # the library's own message may hold the token
            return NotSent("Telegram does not accept the bot's token")
        case BadRequest():
            return Rejected(error.message, formatting="can't parse entities" in error.message.lower())
        case Forbidden():
            return Rejected(error.message)
        case _:
            return Uncertain(error.message)


def reason(error: TelegramError) -> str:
    """Why the adapter is not connected, for its owner."""
    match error:
        case InvalidToken():
            return "Telegram does not accept the token. Check adapters.telegram.token (BotFather shows it)."
        case Conflict() if "webhook" in error.message:
            return "A webhook is set for this bot, so it cannot be polled. It is being removed."
        case Conflict():
            return "Another program polls with this bot's token. Stop it, or use a bot of its own."
        case Flood():
            return str(error)
        case _:
            return f"Telegram cannot be reached: {error.message}"
