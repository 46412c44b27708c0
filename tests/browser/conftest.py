"""Debian's chromium on the page of a real listener, with the gateway played in memory."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

from adapters.http import HttpAdapter
from adapters.testing import MemoryDesk, MemoryTurn
from agent.control.clock import SystemClock
from gateway.web.auth import Auth
from gateway.web.server import WebServer
from tests.browser.plays import play
from tests.gateway.web.conftest import NoIntake

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--disable-quic",
    "--disable-sync",
)

#: Seconds of patience; generous, because a busy machine is no fault of the page's.
expect.set_options(timeout=15_000)


@dataclass
class Site:
    """A listener and the gateway behind it."""

    desk: MemoryDesk
    http: HttpAdapter
    server: WebServer
    auth: Auth
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/"


@dataclass
class Tab:
    """A page of the browser, logged in, that notes whatever it complains about."""

    page: Page
    site: Site
    expected: str = ""
    complaints: list[str] = field(default_factory=list)

    def hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not (self.expected and self.expected in message.text):
            self.complaints.append(message.text)

    async def say(self, text: str) -> None:
        await self.page.fill("#text", text)
        await self.page.press("#text", "Enter")

    async def turn(self) -> MemoryTurn:
        """The running turn of the session main, once the message has arrived."""
        async with asyncio.timeout(15):
            while True:
                with contextlib.suppress(LookupError):
                    return self.site.desk.turn("owner", "main")
                await asyncio.sleep(0.01)

    async def open(self, session: str) -> None:
        await self.page.goto(f"{self.site.url}#{session}")
        await self.page.wait_for_function("name => document.querySelector('h1').textContent === name", arg=session)


async def build_site(folder: Path, *, port: int = 0, desk: MemoryDesk | None = None) -> Site:
    desk = desk or MemoryDesk(play)
    http = HttpAdapter(desk)
    await http.start(NoIntake())
    auth = Auth(owner_token="owner-token-0123456789", tokens=(), clock=SystemClock())
    server = WebServer(
        host="127.0.0.1",
        port=port,
        control_path=None,
        auth=auth,
        routes=http.routes(),
        checks={},
        metrics=lambda: "",
        before_stop=(http.stop,),
    )
    await server.start()
    return Site(desk, http, server, auth, folder)


@pytest_asyncio.fixture(loop_scope="package", scope="package")
async def browser() -> AsyncIterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.skip("chromium is missing: apt-get install chromium")
    async with async_playwright() as driver:
        chromium = await driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        await chromium.close()


@pytest_asyncio.fixture(loop_scope="package")
async def site() -> AsyncIterator[Site]:
    folder = Path(tempfile.mkdtemp(prefix="ost-"))
    made = await build_site(folder)
    yield made
    await made.server.stop()
    await made.desk.aclose()
    shutil.rmtree(folder)


@pytest_asyncio.fixture(loop_scope="package")
async def make_tab(browser: Browser, site: Site) -> AsyncIterator[Any]:
    """Opens pages in fresh contexts; at the end none may have complained, of scripts, policies or missing files."""
    made: list[Tab] = []

    async def make(*, log_in: bool = True, expected: str = "", **context: Any) -> Tab:
        page = await (await browser.new_context(**context)).new_page()
        page.set_default_timeout(15_000)
        tab = Tab(page, site, expected)
        page.on("console", tab.hear)
        page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        made.append(tab)
        if log_in:
            await page.goto(site.server.login_url())
            await page.wait_for_url(site.url)
        return tab

    yield make
    for tab in made:
        await tab.page.context.close()
        assert tab.complaints == []


@pytest_asyncio.fixture(loop_scope="package")
async def tab(make_tab: Any) -> Tab:
    made: Tab = await make_tab()
    return made
