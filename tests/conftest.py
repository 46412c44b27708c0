"""What every test gets: a clean environment, a guard against blocking calls, a check that nothing is left behind."""

from __future__ import annotations

import asyncio
import asyncio.runners
import contextlib
import importlib
import inspect
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
import structlog
from blockbuster import BlockBuster
from hypothesis import settings

# A machine that is busy with other tests says nothing about the code.
settings.register_profile("ostiary", deadline=None)
settings.load_profile("ostiary")

#: Packages whose calls on the event loop are judged; tests may read a file where they like.
OURS = ["gateway", "agent", "adapters"]

#: Calls that ask the kernel about a path or move a name, and do not wait for a disk to move data.
QUICK = [
    "os.stat", "os.access", "os.getcwd", "os.mkdir", "os.rmdir", "os.unlink", "os.remove", "os.rename", "os.replace",
    "os.readlink", "os.link", "os.symlink", "os.listdir", "os.scandir", "os.path.abspath", "os.path.islink",
    "os.path.ismount", "os.path.samestat", "os.path.sameopenfile", "os.statvfs",
]  # fmt: skip

TESTS = str(Path(__file__).parent)
ROOMS = tuple(str(importlib.import_module(name).__path__[0]) for name in OURS)
ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

#: Fixtures of the session that keep a process for all tests.
LASTING = ("playwright", "browser")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No setting of the person who runs the tests reaches them, and nothing of theirs reaches that person's home."""
    for name in [*os.environ]:
        if name.startswith("OSTIARY_") or name in {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "DOCKER_HOST"}:
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home", numbered=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    # the many short processes of the tests should find compiled code
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    for proxy in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    """Unless a test sets the log up itself, events go nowhere: the default would write to a stream on the loop."""
    structlog.configure(logger_factory=lambda *_: structlog.ReturnLogger(), cache_logger_on_first_use=False)
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def no_blocking_calls(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test fails where our code blocks the event loop; mark it ``may_block`` where that is what it is about."""
    if request.node.get_closest_marker("may_block"):
        yield
        return
    guard = BlockBuster(OURS)
    for name in QUICK:
        guard.functions.pop(name, None)
    for function in guard.functions.values():
        function.can_block_predicate = _or_called_by_a_test(function.can_block_predicate)
    # the kernel's own figures under /proc, which no disk is behind
    for name in ("io.BufferedReader.read", "io.TextIOWrapper.read"):
        guard.functions[name].can_block_in("prometheus_client/process_collector.py", {"collect"})
    # starting a process waits until the kernel has replaced the child's program
    guard.functions["os.read"].can_block_in("subprocess.py", {"_execute_child"})
    guard.activate()
    try:
        yield
    finally:
        guard.deactivate()


def _or_called_by_a_test(allowed: Callable[..., bool]) -> Callable[..., bool]:
    """Allow as well what a test does itself, or asks of a function of ours that is meant for a worker thread."""

    def may_block(*args: object, **kwargs: object) -> bool:
        return allowed(*args, **kwargs) or _called_by_a_test()

    return may_block


def _called_by_a_test() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith(TESTS):
            return True
        if frame.f_code.co_flags & ASYNC and frame.f_code.co_filename.startswith(ROOMS):
            return False
        frame = frame.f_back
    return False


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test fails where it leaves a task or a child process behind."""
    left: list[str] = []
    cancel_all = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined]

    def noted(loop: asyncio.AbstractEventLoop) -> None:
        left.extend(task.get_name() for task in asyncio.all_tasks(loop))
        cancel_all(loop)

    monkeypatch.setattr(asyncio.runners, "_cancel_all_tasks", noted)
    before = children()
    yield
    if left:
        pytest.fail(f"tasks were left running: {', '.join(left)}")
    if any(name in LASTING for name in request.fixturenames):
        return
    new = _lasting_children(before)
    found = ", ".join(_described(pid) for pid in new)  # while they live: a killed one has no name any more
    for pid in new:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if new:
        pytest.fail(f"child processes were left running: {found}")


def children() -> set[int]:
    """The living children of this process."""
    found: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found.update(map(int, task.read_text().split()))
    return {pid for pid in found if _state(pid) not in {"Z", "X", ""}}


def _lasting_children(before: set[int]) -> set[int]:
    """Children that are still there after a moment of grace, in which a killed one disappears."""
    end = time.monotonic() + 2
    while new := children() - before:
        if time.monotonic() > end:
            return new
        time.sleep(0.01)
    return set()


def _state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    return ""


def _described(pid: int) -> str:
    with contextlib.suppress(OSError):
        return f"{pid} ({Path(f'/proc/{pid}/cmdline').read_text().replace(chr(0), ' ').strip()[:80]})"
    return str(pid)
