"""Takes the picture of the page for the README: ``python -m tests.browser.picture docs/images/page.png [dark]``.

What it shows is a real daemon with the offline model; nothing is staged.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.gateway.running import running

SAID = (
    "$ mkdir -p build && head -c 3000 /dev/zero > build/app.o && ls -l build",
    "$ rm -rf build",
)


async def take(target: Path, scheme: str) -> None:
    """Talk up to an open card, and save the page as a PNG."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o711)
        async with running(Path(folder) / "home") as daemon, async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
            context = await browser.new_context(
                viewport={"width": 1180, "height": 760},
                device_scale_factor=1.5,
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page = await context.new_page()
            await page.goto(daemon.link)
            await page.wait_for_url(f"{daemon.base}/")
            for text, sign in zip(SAID, (".assistant pre", ".card .deny:not([disabled])"), strict=True):
                await page.fill("#text", text)
                await page.press("#text", "Enter")
                await page.wait_for_selector(sign)
            await page.screenshot(path=target)
            await browser.close()
            (ask,) = await daemon.owner.asks(1)
            await daemon.owner.answer(ask, "deny")


if __name__ == "__main__":
    asyncio.run(take(Path(sys.argv[1]), (sys.argv[2:] or ["light"])[0]))
