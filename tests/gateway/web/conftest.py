"""A whole listener on a free port and a socket in a short folder, with the gateway played in memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, UnixConnector

from adapters.base import Amendment, Health, Inbound, Receipt, Tap, TapResult
from adapters.http import HttpAdapter
from adapters.testing import MemoryDesk
from agent.control.clock import ManualClock
from gateway.web.auth import Auth, Token
from gateway.web.server import WebServer

OWNER_TOKEN = "owner-token-0123456789"
ALICE_TOKEN = "alice-token-0123456789"


class NoIntake:
    """The HTTP adapter speaks to its desk alone."""

    async def accept(self, inbound: Inbound) -> Receipt:
        raise AssertionError

    async def amend(self, inbound: Inbound) -> Amendment:
        raise AssertionError

    async def tap(self, tap: Tap) -> TapResult:
        raise AssertionError

    async def dead_letter(self, platform: str, event_key: str, raw: bytes, reason: str) -> None:
        raise AssertionError


@dataclass
class House:
    """A listener and what stands behind it."""

    server: WebServer
    desk: MemoryDesk
    clock: ManualClock
    auth: Auth
    http: HttpAdapter
    control: HttpAdapter
    client: ClientSession
    socket_path: Path
    health: dict[str, Health] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    async def request(self, method: str, path: str, *, token: str | None = None, **kwargs: Any) -> ClientResponse:
        headers = dict(kwargs.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        response = await self.client.request(method, self.url + path, headers=headers, **kwargs)
        await response.read()
        return response

    async def status(self, method: str, path: str, **kwargs: Any) -> int:
        return (await self.request(method, path, **kwargs)).status

    async def log_in(self) -> str:
        """The value of a fresh cookie of the owner's."""
        code = self.server.login_url().partition("code=")[2]
        response = await self.request("GET", f"/login?code={code}")
        assert response.status == 200
        return response.cookies["ostiary_session"].value


@dataclass
class HouseMaker:
    """Makes listeners with settings of the test's own."""

    folder: Path
    made: list[House] = field(default_factory=list)

    async def build(self, **settings: Any) -> House:
        """A listener that is not started."""
        clock = settings.pop("clock", None) or ManualClock()
        tokens = settings.pop("tokens", (Token(ALICE_TOKEN, "alice"),))
        auth = Auth(owner_token=settings.pop("owner_token", OWNER_TOKEN), tokens=tokens, clock=clock, cookie_days=30)
        desk = MemoryDesk(now=clock.now)
        http, control = HttpAdapter(desk), HttpAdapter(desk)
        health = {"http": Health(ready=True)}
        path = self.folder / f"control{len(self.made)}.sock"
        arguments: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": 0,
            "control_path": path,
            "auth": auth,
            "routes": http.routes(),
            "control_routes": control.routes(),
            "checks": {name: lambda name=name: health[name] for name in ("http", "store")},
            "metrics": lambda: "ostiary_messages_total 3\n",
            "before_stop": (http.stop, control.stop),
        }
        health["store"] = Health(ready=True)
        server = WebServer(**(arguments | settings))
        house = House(server, desk, clock, auth, http, control, ClientSession(), path, health)
        self.made.append(house)
        return house

    async def __call__(self, **settings: Any) -> House:
        house = await self.build(**settings)
        for adapter in (house.http, house.control):
            await adapter.start(NoIntake())
        await house.server.start()
        return house


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for the name of a socket."""
    folder = Path(tempfile.mkdtemp(prefix="ost-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
async def make_house(short_folder: Path) -> AsyncIterator[HouseMaker]:
    maker = HouseMaker(short_folder)
    yield maker
    for house in maker.made:
        await house.client.close()
        await house.server.stop()
        await house.desk.aclose()


@pytest.fixture
async def house(make_house: HouseMaker) -> House:
    return await make_house()


@pytest.fixture
async def owner(house: House) -> AsyncIterator[ClientSession]:
    """A client on the control socket."""
    async with ClientSession(connector=UnixConnector(str(house.socket_path)), base_url="http://ostiary") as session:
        yield session
