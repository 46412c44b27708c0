"""Takes the picture of the page for the README: ``python -m tests.browser.picture docs/images/page.png [dark]``."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

from adapters.testing import MemoryDesk, MemoryTurn
from tests.browser.conftest import CHROMIUM, FLAGS, build_site


async def _scene(turn: MemoryTurn) -> None:
    if "disk" in turn.text:
        turn.tool("terminal", "start")
        turn.tool("terminal", "end")
        turn.say(
            "The disk is 91 % full. Most of it is old builds:\n\n```\n1.2G  build\n310M  .cache\n48M   logs\n```\n"
            "I can delete the folder `build`; it is made anew by the next `make`.",
            final=True,
        )
        return
    ask = turn.ask(
        "rm -rf build",
        title="Delete a folder and everything in it",
        reason="rm with -r deletes folders and what is in them",
        rules=("fs.rm-recursive",),
        impact="37 files, 1.2 GB under the folder build; cannot be undone",
    )
    await ask.ended.wait()


async def take(target: Path, scheme: str) -> None:
    """Play a short conversation up to an open card, and save the page as a PNG."""
    desk = MemoryDesk(_scene)
    site = await build_site(Path(tempfile.gettempdir()), desk=desk)
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        context = await browser.new_context(
            viewport={"width": 1180, "height": 820},
            device_scale_factor=1.5,
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = await context.new_page()
        await page.goto(site.server.login_url())
        await page.wait_for_url(site.url)
        for text in ("why is the disk so full?", "yes, delete it"):
            await page.fill("#text", text)
            await page.press("#text", "Enter")
            await page.wait_for_selector(".assistant pre" if "disk" in text else ".card .deny:not([disabled])")
        await page.screenshot(path=target)
        await browser.close()
    await site.server.stop()
    await desk.aclose()


if __name__ == "__main__":
    asyncio.run(take(Path(sys.argv[1]), (sys.argv[2:] or ["light"])[0]))
