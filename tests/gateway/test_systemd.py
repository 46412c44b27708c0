from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.control.clock import ManualClock
from gateway.systemd import Notifier


class Manager:
    """The service manager's end of the socket."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.socket.setblocking(False)

    def received(self) -> list[str]:
        messages = []
        while True:
            try:
                messages.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return messages


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@ostiary-test-{os.getpid()}-{id(request)}"
    manager = Manager(address)
    yield manager
    manager.socket.close()


def test_messages(manager: Manager) -> None:
    notifier = Notifier(manager.address)
    notifier.ready("listening on\n127.0.0.1:8642")
    notifier.status("2 turns")
    notifier.stopping()
    assert manager.received() == [
        "READY=1\nSTATUS=listening on 127.0.0.1:8642",
        "STATUS=2 turns",
        "STOPPING=1\nSTATUS=draining",
    ]


async def test_watchdog_twice_an_interval(manager: Manager) -> None:
    clock = ManualClock()
    task = asyncio.create_task(Notifier(manager.address, watchdog_s=10).watch(clock))
    await clock.advance(0)
    assert manager.received() == ["WATCHDOG=1"]
    await clock.advance(10)
    assert manager.received() == ["WATCHDOG=1"] * 2
    task.cancel()
    await asyncio.wait([task])


async def test_nobody_watches(manager: Manager) -> None:
    await Notifier(manager.address).watch(ManualClock())
    await Notifier(watchdog_s=10).watch(ManualClock())
    assert manager.received() == []


def test_without_a_manager(tmp_path: Path) -> None:
    Notifier().ready()
    Notifier(str(tmp_path / "gone")).stopping()


async def test_environment_is_taken_and_emptied(manager: Manager) -> None:
    environ = {
        "NOTIFY_SOCKET": manager.address,
        "WATCHDOG_USEC": "10000000",
        "WATCHDOG_PID": str(os.getpid()),
        "A": "b",
    }
    notifier = Notifier.from_environment(environ)
    assert environ == {"A": "b"}
    task = asyncio.create_task(notifier.watch(ManualClock()))
    await asyncio.sleep(0)
    assert manager.received() == ["WATCHDOG=1"]
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("environ", [{"WATCHDOG_PID": "1", "WATCHDOG_USEC": "10"}, {"WATCHDOG_USEC": "x"}, {}])
async def test_watchdog_meant_for_somebody_else(manager: Manager, environ: dict[str, str]) -> None:
    await Notifier.from_environment({"NOTIFY_SOCKET": manager.address, **environ}).watch(ManualClock())
    assert manager.received() == []
