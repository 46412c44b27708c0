"""A fake Bot API, and the whole gateway in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.testing.telegram import FakeTelegram
from tests.gateway.conftest import home_path

__all__ = ["home_path"]


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    """A server on loopback."""
    async with FakeTelegram.running() as fake:
        yield fake
