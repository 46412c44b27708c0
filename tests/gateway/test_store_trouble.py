"""A store that is locked for a while, at every step that happens by itself: it is waited for, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from adapters.base import Conversation, Part, Sent, Uncertain
from adapters.testing import MemoryAdapter
from agent.control.clock import ManualClock
from agent.models.base import ModelEvent, ModelRequest, Working
from gateway.session import StopReason
from tests.gateway.joined import Joined, joined
from tests.gateway.running import settings


class DeafModel:
    """A model that hears neither its silence limit nor that of its request, and then hangs."""

    name = "deaf"

    def __init__(self) -> None:
        self.cut = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Never answer."""
        for _ in range(2):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cut = True
        await asyncio.Event().wait()
        yield Working()


SILENT = settings(
    gateway={"inactivity_warn_s": 20, "inactivity_cancel_s": 40},
    limits={"model_silence_s": 5},
    model={"request_s": 10},
)


async def until_unhealthy(gateway: Joined) -> None:
    await gateway.until(lambda: not gateway.db.healthy)


async def test_a_deadline_that_passes_meanwhile_denies_afterwards(home_path: Path) -> None:
    async with joined(home_path, config=settings(approvals={"timeout_s": 1})) as gateway:
        await gateway.adapter.say("$ rm -rf build")
        await gateway.until(gateway.adapter.cards)
        with gateway.locked():
            await until_unhealthy(gateway)
        await gateway.until(gateway.adapter.texts)
        assert "in time" in gateway.adapter.texts()[0]
        assert gateway.rows("SELECT state FROM asks") == [("timed_out",)]


async def test_a_turn_that_hangs_is_warned_about_and_then_ended(home_path: Path) -> None:
    model = DeafModel()
    async with joined(home_path, config=SILENT, clock=ManualClock(), model=model) as gateway:
        await gateway.adapter.say("hello")
        await gateway.until(lambda: gateway.core.sessions.live() and gateway.core.sessions.live()[0].turn)
        await gateway.advance(10 + 20 + 3)
        assert model.cut, "its own limits came first, in vain"
        await gateway.until(gateway.adapter.texts)
        assert "Nothing has happened" in gateway.adapter.texts()[0]
        await gateway.advance(30)
        await gateway.until(lambda: len(gateway.adapter.texts()) == 2)
        assert "I stopped this" in gateway.adapter.texts()[1]
        assert gateway.rows("SELECT state FROM turns") == [("cancelled",)]
        assert gateway.rows("SELECT count(*) FROM messages WHERE final") == [(1,)]


async def test_a_warning_of_the_watchdog_is_said_afterwards(home_path: Path) -> None:
    async with joined(home_path, config=SILENT, clock=ManualClock(), model=DeafModel()) as gateway:
        await gateway.adapter.say("hello")
        await gateway.until(lambda: gateway.core.sessions.live() and gateway.core.sessions.live()[0].turn)
        with gateway.locked():
            await gateway.advance(10 + 20 + 3)
            await until_unhealthy(gateway)
        await gateway.until(lambda: gateway.db.healthy)
        await gateway.advance(30)
        await gateway.until(lambda: len(gateway.adapter.texts()) == 2)
        assert "Nothing has happened" in gateway.adapter.texts()[0]


async def test_a_word_of_control_is_handled_afterwards(home_path: Path) -> None:
    async with joined(home_path) as gateway:
        await gateway.adapter.say("$ sleep 60")
        await gateway.until(lambda: gateway.rows("SELECT 1 FROM audit WHERE kind = 'start'"))
        receipt = await gateway.adapter.say("/stop")
        with gateway.locked():
            await until_unhealthy(gateway)
        await gateway.until(lambda: len(gateway.adapter.texts()) == 2)
        assert {text.split()[0].strip(".") for text in gateway.adapter.texts()} == {"Stopping", "Stopped"}, receipt


async def test_stopped_is_stopped_though_its_records_failed(home_path: Path) -> None:
    """The card cannot be cancelled while the store is locked; the turn does not go on for that."""
    async with joined(home_path) as gateway:
        await gateway.adapter.say("$ rm -rf build")
        await gateway.until(gateway.adapter.cards)
        (session,) = gateway.core.sessions.live()
        with gateway.locked():
            assert session.stop(StopReason.PERSON, "Stopped by a test.")
            await until_unhealthy(gateway)
        await gateway.until(gateway.adapter.texts)
        assert gateway.adapter.texts() == ["Stopped by a test."]
        assert gateway.rows("SELECT state FROM asks") == [("cancelled",)]
        assert gateway.rows("SELECT state FROM turns") == [("cancelled",)]


async def test_the_outcome_of_what_ran_is_kept(home_path: Path) -> None:
    async with joined(home_path) as gateway:
        await gateway.adapter.say("$ sleep 0.3; echo done > done; cat done")
        await gateway.until(lambda: gateway.rows("SELECT 1 FROM audit WHERE kind = 'start'"))
        with gateway.locked():
            await until_unhealthy(gateway)
        await gateway.until(gateway.adapter.texts)
        assert "done" in gateway.adapter.texts()[0]
        assert gateway.rows("SELECT kind FROM audit ORDER BY seq") == [("decision",), ("start",), ("outcome",)]


class Locking(MemoryAdapter):
    """Somebody locks the database in the middle of each send."""

    def __init__(self) -> None:
        super().__init__()
        self.sending, self.go = asyncio.Event(), asyncio.Event()

    async def send(self, conversation: Conversation, part: Part) -> Sent:
        self.sending.set()
        await self.go.wait()
        return await super().send(conversation, part)


async def test_a_chat_goes_on_after_a_send_that_could_not_be_noted_at_once(home_path: Path) -> None:
    adapter = Locking()
    async with joined(home_path, adapter=adapter) as gateway:
        await adapter.say("hello")
        await adapter.sending.wait()
        with gateway.locked():
            adapter.go.set()
            await until_unhealthy(gateway)
        await gateway.until(lambda: gateway.db.healthy)
        await adapter.say("$ echo two")
        await gateway.until(lambda: len(adapter.texts()) == 2)
        assert adapter.calls == ["send", "send"], "nothing was sent twice"
        assert {state for (state,) in gateway.rows("SELECT state FROM outbox")} in ({"sent"}, {"sending", "sent"})


class Faulty(MemoryAdapter):
    """An adapter with a bug: the first sends raise what no adapter may raise."""

    def __init__(self, faults: int) -> None:
        super().__init__()
        self._faults = faults

    async def send(self, conversation: Conversation, part: Part) -> Sent:
        if self._faults:
            self._faults -= 1
            raise TypeError("a bug")
        return await super().send(conversation, part)


async def test_a_fault_in_an_adapter_ends_neither_the_daemon_nor_the_chat(home_path: Path) -> None:
    adapter = Faulty(2)
    async with joined(home_path, adapter=adapter) as gateway:
        await adapter.say("hello")
        await gateway.until(lambda: gateway.rows("SELECT 1 FROM outbox WHERE state = 'dead'"))
        await adapter.say("$ echo two")
        await gateway.until(adapter.texts)
        assert "two" in adapter.texts()[0]


async def test_where_a_card_stands_is_known_as_soon_as_it_counts_as_sent(home_path: Path) -> None:
    adapter = MemoryAdapter()
    adapter.fail_next(Uncertain("cut"))
    async with joined(home_path, adapter=adapter) as gateway:
        await adapter.say("$ rm -rf build")
        await gateway.until(lambda: gateway.rows("SELECT 1 FROM outbox WHERE kind = 'card' AND state = 'sent'"))
        ((shown,),) = gateway.rows("SELECT shown FROM asks")
        assert shown != "[]"
