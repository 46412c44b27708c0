"""The whole gateway with the real Telegram adapter, against the fake server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.settings import TelegramSettings
from adapters.testing.telegram import Chat, FakeTelegram, Message, Person
from agent.control.clock import SystemClock
from agent.control.ports import Role
from gateway.config import Config
from tests.gateway.running import PATIENCE_S, Running, running, settings


def telegram_settings(fake: FakeTelegram, **more: Any) -> TelegramSettings:
    """One bot at the fake server, with pauses fit for a test."""
    quick = TelegramSettings(
        token=fake.token, base_url=fake.base_url, poll_s=1.0, first_pause_s=0.02, longest_pause_s=0.1
    )
    return replace(quick, **more)


@asynccontextmanager
async def chatting(
    home: Path,
    fake: FakeTelegram,
    people: dict[Person, Role],
    *,
    config: Config | None = None,
    **more: Any,
) -> AsyncIterator[Running]:
    """A gateway whose one platform is the fake; ``people`` may write to it."""
    adapter = TelegramAdapter(telegram_settings(fake, **more), SystemClock())
    roles = {"telegram": {str(person.id): role for person, role in people.items()}}
    async with running(home, config or settings(), adapters=[adapter], people=roles) as daemon:
        yield daemon


def configured(fake: FakeTelegram, *allowed: str, **sections: Any) -> Config:
    """A configuration as an owner would write it."""
    section = {"enabled": True, "token": fake.token, "base_url": fake.base_url, "allowed_users": list(allowed)}
    base = msgspec.to_builtins(settings(**sections))
    base["adapters"]["telegram"] = section
    return msgspec.convert(base, Config)


async def answered(chat: Chat, wanted: int = 1) -> list[str]:
    """The bot's texts in a chat, once there are ``wanted`` of them."""
    await chat.until(lambda seen: len(seen.texts) >= wanted, patience_s=PATIENCE_S)
    return chat.texts


async def card_in(chat: Chat, number: int = 0) -> Message:
    """The card with that number among the open ones, once it is there."""
    await chat.until(lambda seen: len(seen.cards) > number, patience_s=PATIENCE_S)
    return chat.cards[number]


async def tapped(person: Person, card: Message, label: str) -> str:
    """Tap, again while the place of the card is not stored yet: that is what a person would do."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            text = await person.taps(card, label).answered()
            if "not yours" not in text:
                return text
            await asyncio.sleep(0.01)
