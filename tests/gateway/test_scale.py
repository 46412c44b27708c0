"""What does not grow: threads with open requests, threads with running commands, memory with idle sessions."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from tests.gateway.running import running, settings


async def test_two_hundred_open_requests_cost_no_thread_and_no_place(home_path: Path) -> None:
    async with running(home_path, settings(gateway={"max_running_turns": 4})) as daemon:
        await daemon.owner.say("$ echo warm")
        before = threading.active_count()
        for number in range(200):
            await daemon.owner.say("$ rm -rf build", session=f"s{number}", wait=None)
        asks = await daemon.owner.asks(200)
        assert threading.active_count() <= before + 1
        assert len({ask["id"] for ask in asks}) == 200
        assert (await daemon.owner.say("$ echo free", session="another"))["status"] == "done"
        for ask in asks:
            assert (await daemon.owner.answer(ask, "deny"))[0] == 200
        for number in range(200):
            assert "Denied" in (await daemon.owner.ended(f"s{number}"))["text"]


async def test_fifty_running_commands_cost_no_thread_each(home_path: Path) -> None:
    config = settings(sandbox={"max_running": 50})
    async with running(home_path, config) as daemon:
        await daemon.owner.say("$ echo warm")
        before = threading.active_count()
        for number in range(50):
            await daemon.owner.say(f"$ echo up >> up{number}; sleep 30", session=f"s{number}", wait=None)
        workspace = home_path / "workspaces" / "person%3Ahttp%3Aowner"
        async with asyncio.timeout(40):
            while len(list(workspace.glob("up*"))) < 50:
                await asyncio.sleep(0.05)
        assert threading.active_count() < before + 12, "worker threads are few and shared"
        for number in range(50):
            await daemon.owner.call("POST", f"/v1/sessions/s{number}/stop")
        for number in range(50):
            await daemon.owner.ended(f"s{number}")
