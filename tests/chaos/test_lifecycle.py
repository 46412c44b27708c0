"""Stops and stalls of the daemon as a process: a stuck log, a frozen loop, long commands at the stop."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import sqlite3
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.chaos.process import DaemonProcess
from tests.gateway.running import PATIENCE_S, Client

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180), pytest.mark.may_block]


def processes_with(mark: str) -> list[int]:
    """Living processes whose command line holds ``mark``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "cmdline").read_text(errors="replace") and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


async def until_process(mark: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not processes_with(mark):
            await asyncio.sleep(0.02)


async def until_none(mark: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while processes_with(mark):
            await asyncio.sleep(0.02)


def outcomes(home: Path) -> list[str]:
    """How the commands ended, by the record."""
    conn = sqlite3.connect(f"file:{home}/state.db?mode=ro", uri=True)
    try:
        rows = conn.execute("SELECT body FROM audit WHERE kind = 'outcome' ORDER BY seq").fetchall()
        return [json.loads(body)["ended"] for (body,) in rows]
    finally:
        conn.close()


async def approved(client: Client, text: str) -> str:
    """What the command says. Where the guard asks it is let through: the sandbox must hold all the same."""
    answer = await client.say(text, wait=2)
    while answer["status"] in {"running", "waiting"}:
        for ask in answer["asks"]:
            await client.answer(ask, "once")
        answer = await client.say(text, message_id=answer["message_id"], wait=2)
    return str(answer["reply"])


async def test_a_log_that_nobody_reads_stops_neither_the_daemon_nor_its_end(home_path: Path) -> None:
    """Standard error is a pipe of one page that nobody empties."""
    read, write = os.pipe()
    try:
        room = fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4_096)
        daemon = DaemonProcess(home_path, ("log.level=debug",), log_to=write)
        await daemon.start()
        async with aiohttp.ClientSession() as web:
            client = daemon.client(web)
            for number in range(10):
                answer = await client.say(f"$ echo {number}")
                assert answer["status"] == "done"
            (ask,) = await client.begin("$ rm -rf build")
            assert (await client.answer(ask, "deny"))[0] == 200
            await client.ended()
            os.set_blocking(write, False)
            with pytest.raises(BlockingIOError):  # it has been full for long
                os.write(write, b"x" * room)
            os.set_blocking(write, True)
            async with web.get(f"{daemon.base}/healthz") as response:
                assert response.status == 200
            assert await daemon.stop() == 0
    finally:
        os.close(read)
        os.close(write)


async def test_a_frozen_loop_is_noticed_and_its_stacks_are_told(home_path: Path, tmp_path: Path) -> None:
    """The service manager misses the sign of life and aborts; the place of the blocking call is in the log."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        daemon = DaemonProcess(
            home_path,
            variables={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"},
            program=("-m", "tests.chaos.frozen"),
        )
        await daemon.start()
        loop = asyncio.get_running_loop()
        told = b""
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout(3):  # ten intervals
                    told += await loop.sock_recv(manager, 4_096)
        assert b"WATCHDOG=1" in told
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGABRT)
        assert await daemon.over() == -signal.SIGABRT
    log = "\n".join(daemon.errors)
    assert "Fatal Python error: Aborted" in log
    assert "in block_for_good" in log


async def test_a_long_command_does_not_hold_the_stop(home_path: Path) -> None:
    """It is killed when the drain is over, its outcome is written, and the next start tells what became of it."""
    mark = f"sleep 61{os.getpid()}"
    options = ("gateway.drain_s=1", "limits.terminal_s=600")
    daemon = DaemonProcess(home_path, options)
    await daemon.start()
    async with aiohttp.ClientSession() as web:
        posted = await daemon.client(web).say(f"$ trap '' TERM; setsid {mark} & {mark}; echo over", wait=None)
        await until_process(mark)
        assert await daemon.stop() == 0
    assert processes_with(mark) == []
    assert outcomes(home_path) == ["cancelled"]
    events = [json.loads(line)["event"] for line in daemon.errors]
    assert events.index("drain_cut") < events.index("turn_suspended") < events.index("daemon_stopped")
    await daemon.start()
    async with aiohttp.ClientSession() as web:
        answer = await daemon.client(web).say("again", message_id=posted["message_id"])
        assert answer["duplicate"] is True
        assert answer["status"] == "done"
        assert "Stopped before its end" in answer["reply"]
    assert await daemon.stop() == 0
    assert outcomes(home_path) == ["cancelled"], "it was not run again"


async def test_the_second_signal_ends_it_at_once_and_nothing_is_lost(home_path: Path) -> None:
    mark = f"sleep 62{os.getpid()}"
    daemon = DaemonProcess(home_path, ("gateway.drain_s=600",))
    await daemon.start()
    async with aiohttp.ClientSession() as web:
        client = daemon.client(web)
        running = await client.say(f"$ {mark}", wait=None)
        queued = await client.say("$ echo next", wait=None)
        await until_process(mark)
    assert daemon.process is not None
    daemon.process.terminate()
    async with asyncio.timeout(PATIENCE_S):
        while not any("daemon_draining" in line for line in daemon.errors):
            await asyncio.sleep(0.02)
    daemon.process.terminate()
    assert await daemon.over() == 1
    assert "stopped at once" in daemon.errors[-1]
    await until_none(mark)
    await daemon.start()
    async with aiohttp.ClientSession() as web:
        client = daemon.client(web)
        answers = [await client.say("again", message_id=one["message_id"]) for one in (running, queued)]
    assert [answer["status"] for answer in answers] == ["done", "done"]
    assert "outcome is unknown" in answers[0]["reply"].lower()
    assert "next" in answers[1]["reply"]
    assert await daemon.stop() == 0


async def test_what_the_daemon_knows_as_a_secret_reaches_no_command_and_no_answer(home_path: Path) -> None:
    """By where it came from, not by its name: the environment, and a file that the configuration refers to."""
    home_path.mkdir(mode=0o711)
    (home_path / "pin").write_text("from-a-file-7c1f\n")
    (home_path / "config.yaml").write_text(
        "model:\n  api_key: ${FOO}\n"
        f"adapters:\n  http:\n    tokens:\n      - {{token: '${{file:{home_path}/pin}}', user: ann}}\n"
    )
    secrets = ("innocent-name-9b2e", "postgres://u:pw-5d1c@h/db", "from-a-file-7c1f")
    daemon = DaemonProcess(home_path, variables={"FOO": secrets[0], "DATABASE_URL": secrets[1]})
    await daemon.start()
    async with aiohttp.ClientSession() as web:
        client = daemon.client(web)
        inside = await approved(client, "$ env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; echo seen")
        assert "seen" in inside
        assert not any(secret in inside for secret in secrets)
        assert "DATABASE_URL" not in inside
        echoed = await client.say(f"$ echo is {secrets[0]} {secrets[2]} here")
        assert "is" in echoed["reply"]
        assert not any(secret in echoed["reply"] for secret in (secrets[0], secrets[2]))
    assert await daemon.stop() == 0
    log = "\n".join(daemon.errors)
    assert not any(secret in log for secret in secrets)


async def test_a_command_reaches_neither_the_daemon_nor_its_files(home_path: Path) -> None:
    """The command line started by the agent, the control socket, the API and the configuration are out of its reach."""
    daemon = DaemonProcess(home_path)
    await daemon.start()
    (home_path / "config.yaml").write_text("approvals: {mode: manual}\n")
    port = daemon.base.rpartition(":")[2]
    files = ("config.yaml", "state.db", "http_token", "audit.key", "allowlist.json", "control.sock")
    probes = [
        f"ls -d {home_path} && echo REACHED-home",
        *(f"test -e {home_path}/{name} && echo REACHED-{name}" for name in files),
        f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo REACHED-port",
        "command -v ostiary && echo REACHED-cli",
        "find / -xdev \\( -name control.sock -o -name http_token -o -name state.db \\) 2>/dev/null",
        "python3 -m gateway config show 2>/dev/null && echo REACHED-config",
        "echo tried",
    ]
    async with aiohttp.ClientSession() as web:
        client = daemon.client(web)
        for probe in probes:
            said = await approved(client, f"$ {probe}; true")
            assert not any(line.startswith("REACHED") for line in said.splitlines()), said
            assert not any(line.startswith("/") and line.endswith(files) for line in said.splitlines()), said
        assert "tried" in said
    assert await daemon.stop() == 0
    assert (home_path / "config.yaml").read_text() == "approvals: {mode: manual}\n"


async def test_commands_that_read_beside_the_daemon_take_nothing_from_it(home_path: Path) -> None:
    """They open and close the database while the daemon writes; afterwards it dies, and everything is there."""
    daemon = DaemonProcess(home_path)
    await daemon.start()

    async def read(*arguments: str) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", *arguments, "--home", str(home_path), stdout=asyncio.subprocess.DEVNULL
        )
        return await process.wait()

    async with aiohttp.ClientSession() as web:
        client = daemon.client(web)
        written = asyncio.create_task(write(client, 20))
        statuses = [
            await read(*arguments)
            for arguments in (("doctor",), ("sessions", "list"), ("audit", "verify"), ("approvals", "list"))
        ]
        ids = await written
        assert statuses[1:] == [0, 0, 0]
        assert (home_path / "state.db-wal").exists()
        after = await client.say("$ echo last", message_id="after")
        assert after["status"] == "done"
        await daemon.kill()
    await daemon.start()
    async with aiohttp.ClientSession() as web:
        client = daemon.client(web)
        for message_id in [*ids, "after"]:
            answer = await client.say("again", message_id=message_id)
            assert (answer["duplicate"], answer["status"]) == (True, "done")
    assert await daemon.stop() == 0


async def write(client: Client, count: int) -> list[str]:
    """So many messages, each answered; their ids."""
    ids = [f"m{number}" for number in range(count)]
    for message_id in ids:
        assert (await client.say(f"$ echo {message_id}", message_id=message_id))["status"] == "done"
    return ids


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_in_the_middle_of_the_start_ends_it(home_path: Path, number: signal.Signals) -> None:
    """Whatever was open by then is closed, and nothing keeps the next start away."""
    daemon = DaemonProcess(home_path)
    for tenths in range(3, 9):
        await daemon.spawn()
        assert daemon.process is not None
        await asyncio.sleep(tenths / 10)
        daemon.process.send_signal(number)
        assert await daemon.over() in {0, 1, -number}
    await daemon.start()
    assert await daemon.stop() == 0
