"""An adapter on a real socket, behind a listener that takes the user from a header."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from adapters.base import Intake
from adapters.http import HttpAdapter
from adapters.http.ports import CALLER, Caller
from adapters.http.wire import MAX_BODY
from adapters.testing import MemoryDesk
from tests.adapters.http.events import EventReader


class WallClock:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def advance(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class NoIntake:
    """HTTP speaks to its desk; whoever calls this has lost the way."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the HTTP adapter called intake.{name}")


@dataclass
class Api:
    """One running adapter and a client of it."""

    desk: MemoryDesk
    adapter: HttpAdapter
    server: TestServer
    client: TestClient[web.Request, web.Application]
    clock: WallClock
    readers: list[EventReader] = field(default_factory=list)

    async def request(self, method: str, path: str, *, user: str | None = "alice", **kwargs: Any) -> ClientResponse:
        headers = dict(kwargs.pop("headers", {}))
        if user is not None:
            headers["X-User"] = user
        return await self.client.request(method, path, headers=headers, **kwargs)

    async def json(self, method: str, path: str, *, status: int = 200, **kwargs: Any) -> Any:
        response = await self.request(method, path, **kwargs)
        body = await response.json()
        assert response.status == status, body
        return body

    async def say(self, text: str, session: str = "main", *, user: str = "alice", message_id: str | None = None) -> Any:
        body = {"text": text} if message_id is None else {"text": text, "message_id": message_id}
        response = await self.request("POST", f"/v1/sessions/{session}/messages", user=user, json=body)
        assert response.status in {200, 202}, await response.text()
        return await response.json()

    async def listen(self, session: str = "main", *, user: str = "alice", last: str | None = None) -> EventReader:
        headers = {} if last is None else {"Last-Event-ID": last}
        response = await self.request("GET", f"/v1/sessions/{session}/events", user=user, headers=headers)
        assert response.status == 200, await response.text()
        reader = EventReader(response)
        self.readers.append(reader)
        return reader


@web.middleware
async def by_header(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    if user := request.headers.get("X-User"):
        request[CALLER] = Caller(user=user)
    return await handler(request)


@dataclass
class ApiMaker:
    """Makes adapters with settings of the test's own."""

    made: list[Api] = field(default_factory=list)

    async def __call__(
        self, *, keep_events: int = 1000, queue_max: int = 100, desk: MemoryDesk | None = None, **settings: Any
    ) -> Api:
        clock = WallClock()
        desk = desk or MemoryDesk(now=clock, keep_events=keep_events, queue_max=queue_max)
        adapter = HttpAdapter(desk, **settings)
        app = web.Application(middlewares=[by_header], client_max_size=MAX_BODY)
        app.add_routes(adapter.routes())
        server = TestServer(app)
        await server.start_server(access_log=None)
        client = TestClient(server)
        intake: Intake = NoIntake()
        await adapter.start(intake)
        api = Api(desk, adapter, server, client, clock)
        self.made.append(api)
        return api


@pytest.fixture
async def make_api() -> AsyncIterator[ApiMaker]:
    maker = ApiMaker()
    yield maker
    for api in maker.made:
        await api.adapter.stop()
        for reader in api.readers:
            reader.close()
        await api.client.close()
        await api.desk.aclose()


@pytest.fixture
async def api(make_api: ApiMaker) -> Api:
    return await make_api()
