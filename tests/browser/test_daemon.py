"""The page of a real daemon: one message, one turn, one card, in a real browser, with nothing played in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from gateway.config import Config
from tests.gateway.conftest import fresh_home
from tests.gateway.running import Running, running, settings

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]


@pytest.fixture
def home_path() -> Iterator[Path]:
    with fresh_home() as path:
        yield path


@asynccontextmanager
async def page_of(browser: Browser, home: Path, config: Config | None = None) -> AsyncIterator[tuple[Page, Running]]:
    """A daemon, and a browser that has followed its link."""
    async with running(home, config) as daemon:
        context = await browser.new_context()
        page = await context.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.goto(daemon.link)
        await page.wait_for_url(f"{daemon.base}/")
        yield page, daemon
        await context.close()
        assert complaints == []


async def say(page: Page, text: str) -> None:
    await page.fill("#text", text)
    await page.press("#text", "Enter")


def open_cards(page: Page) -> Locator:
    return page.locator(".card:not([data-outcome])")


async def answered(page: Page, wanted: str) -> None:
    """The last answer holds ``wanted``."""
    await expect(page.locator(".assistant").last).to_contain_text(wanted)


async def test_a_message_is_answered(browser: Browser, home_path: Path) -> None:
    async with page_of(browser, home_path) as (page, _):
        await say(page, "$ echo hi")
        await answered(page, "hi")


async def test_deny_once_and_session_do_what_they_say(browser: Browser, home_path: Path) -> None:
    async with page_of(browser, home_path) as (page, _):
        await say(page, "$ mkdir build; echo made")
        await answered(page, "made")
        await say(page, "$ rm -rf build")
        await expect(open_cards(page).locator("pre, code").first).to_have_text("rm -rf build")
        await open_cards(page).locator(".deny").click()
        await answered(page, "Denied")
        await say(page, "$ ls")
        await answered(page, "build")
        for choice in ("once", "session"):
            await say(page, "$ rm -rf build; echo gone")
            await open_cards(page).locator(f".choice.{choice}").click()
            await answered(page, "gone")
        await say(page, "$ rm -rf build; echo unasked")
        await answered(page, "unasked")
        await expect(open_cards(page)).to_have_count(0)


async def test_always_survives_a_restart(browser: Browser, home_path: Path) -> None:
    async with page_of(browser, home_path) as (page, _):
        await say(page, "$ rm -rf build; echo first")
        await open_cards(page).locator(".choice.always").click()
        await answered(page, "first")
    async with page_of(browser, home_path) as (page, _):
        await expect(page.locator(".assistant").last).to_contain_text("first")
        await say(page, "$ rm -rf build; echo second")
        await answered(page, "second")


async def test_silence_denies_and_the_card_says_so(browser: Browser, home_path: Path) -> None:
    async with page_of(browser, home_path, settings(approvals={"timeout_s": 2.5})) as (page, _):
        await say(page, "$ rm -rf build")
        await expect(page.locator(".card[data-outcome='timed_out'] .says")).to_contain_text("Timed out")
        await answered(page, "Nobody answered in time")


async def test_a_hardline_command_is_refused_without_a_card(browser: Browser, home_path: Path) -> None:
    async with page_of(browser, home_path) as (page, _):
        await say(page, "$ rm -rf /")
        await answered(page, "Refused, nothing ran")
        await expect(page.locator(".card")).to_have_count(0)


async def test_three_calls_are_three_cards_and_each_tap_settles_its_own(browser: Browser, home_path: Path) -> None:
    async with page_of(browser, home_path) as (page, _):
        await say(page, "$ mkdir a b c; echo made")
        await answered(page, "made")
        await page.fill("#text", "$ rm -rf a\n$ rm -rf b\n$ rm -rf c")
        await page.press("#text", "Enter")
        await expect(open_cards(page)).to_have_count(3)
        for name, choice in (("c", "once"), ("a", "deny"), ("b", "once")):
            card = page.locator(".card", has_text=f"rm -rf {name}")
            await card.locator(f".choice.{choice}").click()
            await expect(card).to_have_attribute("data-outcome", "denied" if choice == "deny" else "approved")
        await answered(page, "Denied")
        await say(page, "$ ls")
        await answered(page, "a")
        await expect(page.locator(".assistant").last).not_to_contain_text("b")


async def test_an_open_card_is_there_after_a_reload(browser: Browser, home_path: Path) -> None:
    async with page_of(browser, home_path) as (page, _):
        await say(page, "$ rm -rf build; echo ran")
        await expect(open_cards(page)).to_have_count(1)
        await page.reload()
        await expect(page.locator(".user").last).to_contain_text("rm -rf build")
        await open_cards(page).locator(".choice.once").click()
        await answered(page, "ran")
