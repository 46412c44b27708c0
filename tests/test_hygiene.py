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


async def test_bad_blocking():
    # a frame of a module of ours that blocks, which none of them should have
    exec(compile("import time; time.sleep(0.001)", SystemClock.now.__code__.co_filename, "exec"))
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
    result.assert_outcomes(passed=5, failed=1, errors=2)
    result.stdout.fnmatch_lines_random(
        [
            "*tasks were left running: forgotten*",
            "*child processes were left running: *sleep 60*",
            "*BlockingError*time.sleep*",
        ]
    )
