"""A session's stream: pieces of text come once, in their place, whoever joins or lags when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

from adapters.base import Event
from adapters.http.ports import Caller
from agent.models.base import AssistantMessage, Done, ModelEvent, ModelRequest, StopReason, TextDelta, ToolCall
from gateway.access import Access
from gateway.web.desk import WebDesk
from tests.gateway.joined import PEOPLE, Joined, joined
from tests.gateway.running import running

ME = Caller("42")
WORDS = 40


class Wordy:
    """Says a numbered text along with a call, twice, and then its answer; a word at each round of the loop."""

    name = "wordy"

    def __init__(self) -> None:
        self.step = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """One step."""
        answered = sum(message.__class__.__name__ == "ToolMessage" for message in request.messages) % 3
        words = [f"{answered}.{number} " for number in range(WORDS)]
        for word in words:
            await asyncio.sleep(0)
            yield TextDelta(word)
        calls = (ToolCall("c", "terminal", json.dumps({"script": "true"})),) if answered < 2 else ()
        message = AssistantMessage("".join(words), calls)
        yield Done(message, StopReason.TOOL_CALLS if calls else StopReason.END)


def desk_of(gateway: Joined) -> WebDesk:
    core = gateway.core
    people = {**PEOPLE, "http": PEOPLE["memory"]}
    return WebDesk(
        db=gateway.db,
        clock=gateway.clock,
        access=Access(people),
        intake=core.intake,
        sessions_=core.sessions,
        hub=core.hub,
    )


async def read(desk: WebDesk, pause_s: float, after: int | None = None) -> list[Event]:
    """Read as a client does until the turn has finished, with ``pause_s`` after each event."""
    seen = []
    async for event in desk.events(ME, "memory:42", after):
        seen.append(event)
        if event.type == "turn.finished":
            return seen
        await asyncio.sleep(pause_s)
    return seen


def check(seen: list[Event]) -> None:
    """Each message is preceded by its own pieces from its beginning and nothing else; nothing comes twice."""
    text = ""
    for event in seen:
        if event.type == "delta":
            piece = str(event.data["text"])
            text = piece if event.data.get("replace") else text + piece
        elif event.type == "message":
            assert str(event.data["text"]).startswith(text.strip()), (text, event.data["text"])
            text = ""
    assert text == ""
    ids = [event.id for event in seen if event.id]
    assert ids == sorted(set(ids))


async def test_readers_who_join_and_lag_at_any_time_see_each_piece_once_in_its_place(home_path: Path) -> None:
    async with joined(home_path, model=Wordy()) as gateway:
        desk = desk_of(gateway)
        await gateway.adapter.say("/status")
        await gateway.until(gateway.adapter.texts)
        for _ in range(4):
            first = asyncio.create_task(read(desk, 0.001))
            await asyncio.sleep(0.02)
            await gateway.adapter.say("go")
            others = []
            for number in range(12):
                others.append(asyncio.create_task(read(desk, 0.0 if number % 2 else 0.001)))
                await asyncio.sleep(0.004)
            check(await first)
            done, late = await asyncio.wait(others, timeout=0.3)
            for task in late:  # joined after the end
                task.cancel()
            await asyncio.wait(others)
            for task in done:
                check(task.result())


async def test_an_id_that_the_session_never_had_is_reset_and_not_waited_for(home_path: Path) -> None:
    """As after a database was put back from a backup: the client knows ids that are in the future now."""
    async with running(home_path) as daemon:
        async with daemon.owner.events_after_first() as stream:
            await daemon.owner.say("again", wait=None)
            await stream.until_type("turn.finished")
            known = stream.last_id
        async with daemon.owner.events(after=known) as stream:
            await daemon.owner.say("more", wait=None)
            await stream.until_type("turn.finished")
            assert "reset" not in [kind for kind, _ in stream.seen]
        async with daemon.owner.events(after=known + 10**12) as stream:
            await stream.until_type("turn.finished")
            assert stream.seen[0][0] == "reset"
            assert [kind for kind, _ in stream.seen].count("turn.started") == 1
