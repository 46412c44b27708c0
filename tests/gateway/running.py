"""A daemon in this process, over a home of its own, and a client that speaks its HTTP API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from adapters.base import Adapter
from agent.control.clock import Clock, SystemClock
from agent.control.ports import Role
from agent.control.redact import Redactor
from gateway.config import Config
from gateway.daemon import Daemon
from gateway.home import Home
from gateway.metrics import Metrics

#: Longest that a test waits for something to happen; only ever reached when it fails.
PATIENCE_S = 30.0

Json = dict[str, Any]


@dataclass
class Client:
    """One user's view of the API."""

    base: str
    token: str
    session: aiohttp.ClientSession

    async def call(self, method: str, path: str, **kwargs: Any) -> tuple[int, Json]:
        """A request's status and JSON."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self.session.request(method, f"{self.base}{path}", headers=headers, **kwargs) as response:
            raw = await response.read()
            return response.status, json.loads(raw) if raw else {}

    async def say(self, text: str, *, session: str = "main", wait: float | None = 20, message_id: str = "") -> Json:
        """Post a message; with ``wait`` the answer says how its turn stands then."""
        body: Json = {"text": text}
        if message_id:
            body["message_id"] = message_id
        query = "" if wait is None else f"?wait={wait}"
        status, answer = await self.call("POST", f"/v1/sessions/{session}/messages{query}", json=body)
        assert status in {200, 202}, (status, answer)
        return answer

    async def begin(self, text: str, *, session: str = "main") -> list[Json]:
        """Post a message whose commands need approval; returns the open asks once they are all there."""
        await self.say(text, session=session, wait=None)
        wanted = sum(line.startswith("$ ") for line in text.splitlines())
        return await self.asks(wanted)

    async def asks(self, wanted: int) -> list[Json]:
        """The open asks, once there are ``wanted`` of them."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                status, answer = await self.call("GET", "/v1/asks")
                assert status == 200
                if len(answer["asks"]) == wanted:
                    return list(answer["asks"])
                await asyncio.sleep(0.01)

    async def answer(self, ask: Json | str, choice: str, **more: Any) -> tuple[int, Json]:
        """Answer an ask."""
        ask_id = ask if isinstance(ask, str) else ask["id"]
        return await self.call("POST", f"/v1/asks/{ask_id}", json={"choice": choice, **more})

    async def ended(self, session: str = "main") -> Json:
        """The last message of the session, once nothing runs there any more."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                _, listed = await self.call("GET", "/v1/sessions")
                states = {row["session"]: row["state"] for row in listed["sessions"]}
                _, history = await self.call("GET", f"/v1/sessions/{session}/messages?limit=50")
                last = history["messages"][-1] if history.get("messages") else {}
                if states.get(session) == "idle" and last.get("role") == "assistant":
                    return dict(last)
                await asyncio.sleep(0.01)

    @asynccontextmanager
    async def events_after_first(self, session: str = "main") -> AsyncIterator[Stream]:
        """The stream of a session that is made for it first."""
        await self.say("hello", session=session)
        async with self.events(session) as stream:
            yield stream

    @asynccontextmanager
    async def events(self, session: str = "main", after: int | None = None) -> AsyncIterator[Stream]:
        """The session's stream."""
        headers = {"Authorization": f"Bearer {self.token}"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        url = f"{self.base}/v1/sessions/{session}/events"
        async with self.session.get(url, headers=headers) as response:
            assert response.status == 200, await response.text()
            yield Stream(response)


@dataclass
class Stream:
    """Server-sent events as they come."""

    response: aiohttp.ClientResponse
    seen: list[tuple[str, Json]] = field(default_factory=list)
    last_id: int = 0

    async def until(self, wanted: Callable[[str, Json], bool]) -> Json:
        """Read on until an event is as ``wanted``; returns its data."""
        kind, data = "", ""
        async with asyncio.timeout(PATIENCE_S):
            async for raw in self.response.content:
                line = raw.decode().rstrip("\n")
                name, _, value = line.partition(": ")
                if name == "id":
                    self.last_id = int(value)
                elif name == "event":
                    kind = value
                elif name == "data":
                    data = value
                elif not line and data:
                    event = (kind, json.loads(data))
                    kind, data = "", ""
                    self.seen.append(event)
                    if wanted(*event):
                        return dict(event[1])
        raise AssertionError(f"the stream ended: {self.seen}")

    async def until_type(self, kind: str) -> Json:
        """Read on until an event of that type."""
        return await self.until(lambda seen, _: seen == kind)


@dataclass
class Running:
    """A daemon that serves, and its owner's client."""

    daemon: Daemon
    home: Home
    base: str
    link: str
    owner: Client
    web: aiohttp.ClientSession
    task: asyncio.Task[int]

    def client(self, token: str) -> Client:
        """Another user's client."""
        return Client(self.base, token, self.web)

    async def stop(self) -> int:
        """Drain; the exit status."""
        self.daemon.stop()
        return await self.task


def settings(**sections: Json) -> Config:
    """A configuration with a free port and ``sections`` on top, as a file would give them."""
    data: Json = {"adapters": {"http": {"port": 0}}, "gateway": {"drain_s": 5}}
    for name, section in sections.items():
        merged = data.setdefault(name, {})
        for key, value in section.items():
            merged[key] = {**merged[key], **value} if isinstance(merged.get(key), dict) else value
    return msgspec.convert(data, Config)


@asynccontextmanager
async def running(
    path: Path,
    config: Config | None = None,
    clock: Clock | None = None,
    adapters: Sequence[Adapter] = (),
    people: Mapping[str, Mapping[str, Role]] | None = None,
) -> AsyncIterator[Running]:
    """Serve the home at ``path`` until the block ends."""
    home = Home(path)
    daemon = Daemon(
        config or settings(),
        home,
        redactor=Redactor(()),
        metrics=Metrics(),
        clock=clock or SystemClock(),
        adapters=adapters,
        people=people,
    )
    lines: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(daemon.run(lines.put_nowait), name="daemon")
    first = asyncio.create_task(lines.get(), name="first-line")
    done, _ = await asyncio.wait([task, first], return_when=asyncio.FIRST_COMPLETED)
    if first not in done:
        first.cancel()
        task.result()
    link = first.result().removeprefix("open ")
    base = link.split("/login")[0]
    async with aiohttp.ClientSession() as web:
        try:
            yield Running(daemon, home, base, link, Client(base, home.http_token(), web), web, task)
        finally:
            daemon.stop()
            await asyncio.wait([task])
    if not task.cancelled():
        task.result()
