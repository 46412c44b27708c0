"""A Bot API server on loopback, for tests of whatever speaks to Telegram: stateful, with the API's documented limits.

:class:`FakeTelegram` is the server and the control interface; :class:`Person`, :class:`Chat` and :class:`Message` are
what a test plays with. It needs nothing but aiohttp.
"""

from __future__ import annotations

from adapters.testing.telegram.people import Chat, Message, Person, Tap
from adapters.testing.telegram.server import TOKEN, USERNAME, Call, FakeTelegram

__all__ = ["TOKEN", "USERNAME", "Call", "Chat", "FakeTelegram", "Message", "Person", "Tap"]
