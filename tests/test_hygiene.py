"""The guards of ``conftest.py`` are guarded: each is shown to fail a test that deserves it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = (Path(__file__).parent / "conftest.py").read_text()

CASES = """
import asyncio
import os
import subprocess
import sys
import time

from agent.control.clock import SystemClock

keep = []


async def test_good_tasks():
    task = asyncio.create_task(asyncio.sleep(0))
    await task
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await process.wait()


def test_good_child():
    subprocess.run([sys.executable, "-c", ""], check=True)


def test_good_environment():
    assert not [name for name in os.environ if name.startswith("OSTIARY_")]
    assert os.environ["HOME"] != HOME_BEFORE


async def test_bad_task():
    keep.append(asyncio.create_task(asyncio.sleep(60), name="forgotten"))


def test_bad_child():
    keep.append(subprocess.Popen(["sleep", "60"]))


def of_ours(text):
    # as if it stood in a module of ours, which must not block
    names = {}
    exec(compile(text, SystemClock.now.__code__.co_filename, "exec"), names)
    return names["block"]


async def test_good_blocking_of_a_test():
    time.sleep(0.001)
    of_ours("import time\\ndef block(): time.sleep(0.001)")()


async def test_bad_blocking():
    await of_ours("import time\\nasync def block(): time.sleep(0.001)")()


async def test_bad_blocking_in_a_callback():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    block = of_ours("import time\\ndef block(): time.sleep(0.001)")
    loop.set_exception_handler(lambda _, context: done.set_exception(context["exception"]))
    loop.call_soon(block)
    await done
"""


def test_guards(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Good tests pass; a task, a child and a blocking call each fail theirs."""
    monkeypatch.setenv("OSTIARY_LOG__LEVEL", "debug")
    pytester.makeconftest(CONFTEST)
    pytester.makeini(
        """
        [pytest]
        asyncio_mode = auto
        asyncio_default_fixture_loop_scope = function
        filterwarnings = error
        markers =
            may_block: blocks on purpose
        """
    )
    pytester.makepyfile(CASES.replace("HOME_BEFORE", repr(os.environ["HOME"])))
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=6, failed=2, errors=2)
    result.stdout.fnmatch_lines_random(
        [
            "*tasks were left running: forgotten*",
            "*child processes were left running: *sleep 60*",
            "*BlockingError*time.sleep*",
        ]
    )
