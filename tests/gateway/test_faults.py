"""What the machine does to a gateway: a locked database, a full disk. It is said, and nothing is lost."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.running import PATIENCE_S, Running, running


async def readiness(daemon: Running) -> int:
    async with daemon.web.get(f"{daemon.base}/readyz") as response:
        return response.status


async def until_ready_is(daemon: Running, status: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await readiness(daemon) != status:
            await asyncio.sleep(0.02)


async def post(daemon: Running, message_id: str) -> int:
    status, _ = await daemon.owner.call(
        "POST", "/v1/sessions/main/messages", json={"text": f"$ echo {message_id} >> log", "message_id": message_id}
    )
    return status


async def test_a_locked_database_turns_new_work_away_and_loses_none_that_was_taken(home_path: Path) -> None:
    async with running(home_path) as daemon:
        assert await post(daemon, "before") == 202
        await daemon.owner.ended()
        locker = sqlite3.connect(home_path / "state.db", isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(post(daemon, "during"))
        await until_ready_is(daemon, 503)
        assert await post(daemon, "refused") == 503
        locker.execute("ROLLBACK")
        locker.close()
        during = await waiting
        assert during in {202, 503}
        await until_ready_is(daemon, 200)
        assert await post(daemon, "after") == 202
        answer = await daemon.owner.say("$ cat log")
        expected = ["before", *(["during"] if during == 202 else []), "after"]
        assert answer["reply"].split("```")[1].split() == expected


@pytest.fixture
def small_disk(home_path: Path) -> Iterator[Path]:
    """A home on a file system of 3 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    home_path.mkdir(mode=0o711)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0711", "tmpfs", str(home_path)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode().strip()}")
    yield home_path
    subprocess.run(["umount", "-l", str(home_path)], check=True)


def fill(path: Path) -> None:
    """Take all the room that is left."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(descriptor, b"x" * 4096):
            pass
    except OSError as error:
        assert error.errno == errno.ENOSPC  # noqa: PT017 - the loop has no other end
    finally:
        os.close(descriptor)


async def test_a_full_disk_is_said_and_what_was_taken_is_answered_once_there_is_room(small_disk: Path) -> None:
    async with running(small_disk) as daemon:
        assert await post(daemon, "before") == 202
        await daemon.owner.ended()
        filler = small_disk / "filler"
        fill(filler)
        status = 202
        accepted = []
        for number in range(200):
            status = await post(daemon, f"full-{number}")
            if status != 202:
                break
            accepted.append(f"full-{number}")
        assert status == 503
        await until_ready_is(daemon, 503)
        filler.unlink()
        await until_ready_is(daemon, 200)
        for message_id in accepted:
            answer = await daemon.owner.say("again", message_id=message_id)
            assert answer["duplicate"] is True
            assert answer["status"] == "done"
        assert (await daemon.owner.say("$ echo after"))["status"] == "done"
