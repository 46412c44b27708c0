"""A gateway that notes what it is given and answers as it is told; the adapter in front of it is the real one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from adapters.base import Amendment, Inbound, Receipt, Tap, TapResult, TapVerdict, Verdict
from adapters.telegram.adapter import TelegramAdapter
from adapters.testing.telegram import FakeTelegram
from agent.control.clock import Clock, SystemClock
from tests.adapters.telegram.whole import telegram_settings
from tests.gateway.running import PATIENCE_S


class Notebook:
    """Fulfils :class:`adapters.base.Intake`.

    Attributes:
        receipts: answers to the next messages; ACCEPTED, or DUPLICATE for a known key, once there are none.
        amendments: answers to the next changes.
        broken: what :meth:`accept` raises for a text.
    """

    def __init__(self) -> None:
        self.messages: list[Inbound] = []
        self.changes: list[Inbound] = []
        self.taps: list[Tap] = []
        self.letters: list[tuple[str, bytes, str]] = []
        self.receipts: deque[Receipt] = deque()
        self.amendments: deque[Amendment] = deque()
        self.result = TapResult(TapVerdict.SETTLED, "approved", "once", text="Approved once.")
        self.broken: dict[str, Exception] = {}
        self._changed = asyncio.Event()

    @property
    def texts(self) -> list[str]:
        """What was accepted, in order."""
        return [message.text for message in self.messages]

    async def accept(self, inbound: Inbound) -> Receipt:
        if inbound.text in self.broken:
            raise self.broken[inbound.text]
        receipt = self.receipts.popleft() if self.receipts else Receipt(Verdict.ACCEPTED)
        if receipt.verdict is Verdict.ACCEPTED:
            if any(one.event_key == inbound.event_key for one in self.messages):
                return Receipt(Verdict.DUPLICATE)
            self.messages.append(inbound)
        self._tell()
        return receipt

    async def amend(self, inbound: Inbound) -> Amendment:
        answer = self.amendments.popleft() if self.amendments else Amendment.CHANGED
        if answer is Amendment.CHANGED:
            self.changes.append(inbound)
        self._tell()
        return answer

    async def tap(self, tap: Tap) -> TapResult:
        self.taps.append(tap)
        self._tell()
        return self.result

    async def dead_letter(self, platform: str, event_key: str, raw: bytes, reason: str) -> None:
        assert platform == "telegram"
        self.letters.append((event_key, raw, reason))
        self._tell()

    async def until(self, condition: Callable[[Notebook], bool]) -> None:
        """Wait until ``condition`` holds; looked at after each call."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition(self):
                await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


@asynccontextmanager
async def connected(
    fake: FakeTelegram, notebook: Notebook, *, clock: Clock | None = None, **more: Any
) -> AsyncIterator[TelegramAdapter]:
    """The adapter between the fake server and the notebook."""
    adapter = TelegramAdapter(telegram_settings(fake, **more), clock or SystemClock())
    await adapter.start(notebook)
    try:
        yield adapter
    finally:
        await adapter.stop()


async def until_health(adapter: TelegramAdapter, *, ready: bool, says: str = "") -> None:
    """Wait until the adapter is so, for a reason that holds ``says``."""
    async with asyncio.timeout(PATIENCE_S):
        while adapter.health().ready is not ready or says not in adapter.health().reason:
            await asyncio.sleep(0.01)
