"""kill -9 at any instant: every accepted message is answered, nothing runs twice, nothing without a decision."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from gateway.store.audit import verify
from tests.chaos.process import DaemonProcess
from tests.gateway.running import Client

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600), pytest.mark.may_block]

SESSIONS = 6


async def post(client: Client, session: str, message_id: str, text: str) -> bool:
    """Whether the message was accepted for certain."""
    try:
        status, _ = await client.call(
            "POST", f"/v1/sessions/{session}/messages", json={"text": text, "message_id": message_id}
        )
    except (aiohttp.ClientError, OSError):
        return False
    return status in {200, 202}


async def load(client: Client, accepted: set[tuple[str, str]], round_: int) -> None:
    """Write to several sessions until the daemon dies."""

    async def one(number: int) -> None:
        session = f"s{number}"
        for step in range(1_000):
            message_id = f"m-{round_}-{number}-{step}"
            text = (
                f"$ echo {message_id} >> log.txt"
                if step % 3
                else f"$ rm -rf d-{message_id}; echo {message_id} >> log.txt"
            )
            if not await post(client, session, message_id, text):
                return
            accepted.add((session, message_id))
            await asyncio.sleep(0.05)

    async def approve() -> None:
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                _, body = await client.call("GET", "/v1/asks")
                for ask in body.get("asks", []):
                    await client.answer(ask, random.choice(["once", "once", "deny"]))
            await asyncio.sleep(0.05)

    approving = asyncio.create_task(approve(), name="approve")
    try:
        await asyncio.gather(*(one(number) for number in range(SESSIONS)))
    finally:
        approving.cancel()
        await asyncio.wait([approving])


async def settle(client: Client, accepted: set[tuple[str, str]]) -> dict[str, str]:
    """Let everything end; the status of each accepted message's turn."""
    found: dict[str, str] = {}
    for session, message_id in sorted(accepted):
        while message_id not in found:
            _, body = await client.call(
                "POST",
                f"/v1/sessions/{session}/messages?wait=1",
                json={"text": "again", "message_id": message_id},
            )
            assert body.get("duplicate") is True, body
            if body["status"] in {"done", "failed", "cancelled"}:
                found[message_id] = body["status"]
                break
            _, asks = await client.call("GET", "/v1/asks")
            for ask in asks["asks"]:
                await client.answer(ask, "once")
    return found


def judged(home: Path) -> tuple[Counter[str], list[str], list[str], bool]:
    """Starts by request, requests started without a decision before it, without an outcome, and the chain's state."""
    conn = sqlite3.connect(f"file:{home}/state.db?mode=ro", uri=True)
    try:
        starts: Counter[str] = Counter()
        decided: set[str] = set()
        undecided: list[str] = []
        outcomes: set[str] = set()
        for kind, request_id in conn.execute("SELECT kind, request_id FROM audit ORDER BY seq"):
            if kind == "decision":
                decided.add(request_id)
            elif kind == "start":
                starts[request_id] += 1
                if request_id not in decided:
                    undecided.append(request_id)
            elif kind == "outcome":
                outcomes.add(request_id)
        open_ = [request_id for request_id in starts if request_id not in outcomes]
        chain = verify(conn, (home / "audit.key").read_bytes())
        return starts, undecided, open_, chain.ok
    finally:
        conn.close()


def lines_written(home: Path) -> Counter[str]:
    """How often each message's command has written its line."""
    found: Counter[str] = Counter()
    for file in (home / "workspaces").glob("*/log.txt"):
        found.update(file.read_text().split())
    return found


async def test_killed_at_random_instants_under_load(home_path: Path, kills: int) -> None:
    accepted: set[tuple[str, str]] = set()
    daemon = DaemonProcess(home_path, ("approvals.timeout_s=60",))
    async with aiohttp.ClientSession() as web:
        for round_ in range(kills):
            await daemon.start()
            writing = asyncio.create_task(load(daemon.client(web), accepted, round_), name="load")
            await asyncio.sleep(random.uniform(0.02, 0.6))
            await daemon.kill()
            await writing
        await daemon.start()
        statuses = await settle(daemon.client(web), accepted)
        assert await daemon.stop() == 0
    assert set(statuses) == {message_id for _, message_id in accepted}, "every accepted message was answered"
    starts, undecided, open_, chain_ok = judged(home_path)
    assert [request for request, count in starts.items() if count > 1] == [], "nothing was started twice"
    assert undecided == [], "nothing was started without a decision"
    assert open_ == [], "every start has an outcome, known or not"
    assert chain_ok
    assert [line for line, count in lines_written(home_path).items() if count > 1] == [], "nothing ran twice"


async def test_a_card_that_was_open_works_after_however_many_kills(home_path: Path) -> None:
    daemon = DaemonProcess(home_path)
    async with aiohttp.ClientSession() as web:
        await daemon.start()
        client = daemon.client(web)
        await client.say("$ mkdir build")
        (before,) = await client.begin("$ rm -rf build")
        for _ in range(4):
            await daemon.kill()
            await daemon.start()
        client = daemon.client(web)
        (after,) = await client.asks(1)
        assert (after["id"], after["expires_at"]) == (before["id"], before["expires_at"])
        assert (await client.answer(after, "once"))[0] == 200
        await client.ended()
        assert "gone" in (await client.say("$ test -e build || echo gone"))["reply"]
        assert await daemon.stop() == 0


async def test_a_command_that_ran_at_the_kill_is_not_run_again_and_the_person_is_told(home_path: Path) -> None:
    daemon = DaemonProcess(home_path)
    async with aiohttp.ClientSession() as web:
        await daemon.start()
        client = daemon.client(web)
        await client.say("$ echo x >> runs.txt; sleep 60", wait=None, message_id="long")
        runs = home_path / "workspaces" / "person%3Ahttp%3Aowner" / "runs.txt"
        async with asyncio.timeout(20):
            while not runs.exists():
                await asyncio.sleep(0.02)
        await daemon.kill()
        await daemon.start()
        client = daemon.client(web)
        answer = await client.say("again", message_id="long", wait=20)
        assert "outcome is unknown" in answer["reply"]
        assert runs.read_text() == "x\n"
        assert await daemon.stop() == 0


async def test_a_second_daemon_is_told_who_holds_the_home(home_path: Path) -> None:
    first, second = DaemonProcess(home_path), DaemonProcess(home_path)
    await first.start()
    try:
        with pytest.raises(AssertionError):
            await second.start()
        assert second.process is not None
        assert await second.process.wait() == 1
        assert first.process is not None
        assert str(first.process.pid) in "\n".join(second.errors)
    finally:
        await first.stop()


async def test_a_turn_that_was_killed_three_times_is_given_up_with_every_start_accounted_for(home_path: Path) -> None:
    daemon = DaemonProcess(home_path)
    folder = home_path / "workspaces" / "person%3Ahttp%3Aowner"
    async with aiohttp.ClientSession() as web:
        await daemon.start()
        client = daemon.client(web)
        script = "\n".join(f"$ echo x > up{number}; sleep 60" for number in range(5))
        await client.say(script, wait=None, message_id="m")
        for number in range(3):
            async with asyncio.timeout(20):
                while not (folder / f"up{number}").exists():
                    await asyncio.sleep(0.02)
            await daemon.kill()
            await daemon.start()
        client = daemon.client(web)
        answer = await client.say("again", message_id="m", wait=20)
        assert answer["status"] == "failed"
        assert "crashed 3 times" in answer["reply"]
        assert (await client.say("$ echo next"))["status"] == "done"
        assert await daemon.stop() == 0
    starts, undecided, open_, chain_ok = judged(home_path)
    assert len(starts) == 4, "three that were killed, and the one after"
    assert (undecided, open_, chain_ok) == ([], [], True)
