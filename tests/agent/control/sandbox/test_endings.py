"""How jobs end, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx

from agent.control.clock import ManualClock
from agent.control.sandbox.base import Ended, Job
from agent.control.sandbox.bubblewrap import Bubblewrap
from agent.control.sandbox.orphans import sweep_orphans
from agent.control.sandbox.process import install_child_watcher
from tests.agent.control.sandbox.conftest import Run, processes_with

#: Leaves the process group, the session and the terminal, and ignores every polite signal.
STUBBORN = "trap '' TERM HUP INT; setsid sleep {0} & nohup sleep {0} >/dev/null 2>&1 & (sleep {0} &) ; sleep {0}"


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def started(marker: str, count: int = 1) -> None:
    while len(processes_with(f"sleep {marker}".replace(" ", "\0"))) < count:
        await asyncio.sleep(0.01)


class TestExit:
    async def test_status_output_and_duration(self, sh: Run) -> None:
        finished = await sh("echo out; echo err >&2; exit 7")
        assert (finished.ended, finished.exit_code, finished.output.text) == (Ended.EXITED, 7, "out\nerr\n")
        assert finished.duration_s > 0
        assert finished.limits_by == "supervisor"

    async def test_a_signal_is_128_and_its_number(self, sh: Run) -> None:
        assert (await sh("kill -SEGV $$")).exit_code == 128 + signal.SIGSEGV

    async def test_standard_input_is_given_and_ends(self, sh: Run) -> None:
        data = bytes(range(256)) * 4096
        finished = await sh("sha256sum | cut -c1-64", stdin=data)
        assert finished.output.text.strip() == hashlib.sha256(data).hexdigest()
        assert (await sh("cat; echo end")).output.text == "end\n"

    async def test_order_of_arrival_is_kept(self, sh: Run) -> None:
        finished = await sh("for i in 1 2 3 4; do echo o$i; echo e$i >&2; done")
        assert finished.output.text.split() == ["o1", "e1", "o2", "e2", "o3", "e3", "o4", "e4"]

    async def test_the_listener_gets_every_byte_as_it_comes(self, sh: Run) -> None:
        heard = bytearray()
        finished = await sh("seq 1 100000", on_output=heard.extend)
        assert len(heard) == finished.output.total_bytes
        assert heard.split() == [str(n).encode() for n in range(1, 100_001)]

    async def test_endless_output_is_bounded(self, sh: Run) -> None:
        finished = await sh("seq 1 9000000")
        assert finished.exit_code == 0
        assert finished.output.total_bytes == 70_888_896
        assert finished.output.text.startswith("1\n2\n")
        assert finished.output.text.endswith("\n9000000\n")
        assert "[... 70,823,360 bytes left out ...]" in finished.output.text

    async def test_bytes_that_are_no_text_do_not_break_the_run(self, sh: Run) -> None:
        finished = await sh(r"printf '\200\376\000\033[31mx\033[0m'; head -c 1000 /dev/urandom")
        assert finished.exit_code == 0
        assert finished.output.text.startswith("\ufffd\ufffd\u2400x")

    async def test_a_daemon_killed_from_outside_is_reported_as_its_signal(self, sh: Run, marker: str) -> None:
        running = asyncio.ensure_future(sh(f"sleep {marker}"))
        await started(marker)
        outer = min(processes_with(marker))
        os.kill(outer, signal.SIGKILL)
        finished = await running
        assert (finished.ended, finished.exit_code) == (Ended.EXITED, 137)
        assert not processes_with(marker)


class TestBackground:
    async def test_a_background_child_that_holds_the_pipe_does_not_hold_the_call(self, sh: Run, marker: str) -> None:
        finished = await sh(f"(sleep {marker} &); echo ok")
        assert (finished.ended, finished.exit_code, finished.output.text) == (Ended.EXITED, 0, "ok\n")
        assert not processes_with(marker)

    async def test_a_child_in_its_own_session_does_not_either(self, sh: Run, marker: str) -> None:
        finished = await sh(f"setsid sleep {marker} & sleep 0.05; echo ok")
        assert (finished.ended, finished.output.text) == (Ended.EXITED, "ok\n")
        assert not processes_with(marker)

    async def test_a_double_forked_daemon_is_gone(self, sh: Run, marker: str) -> None:
        command = f'perl -e \'fork and exit; setpgrp; fork and exit; exec "sleep", "{marker}"\'; sleep 0.1; echo ok'
        finished = await sh(command)
        assert finished.output.text == "ok\n"
        assert not processes_with(marker)


class TestTimeOut:
    async def test_kills_everything(self, sh: Run, marker: str) -> None:
        finished = await sh(f"echo before; {STUBBORN.format(marker)}", timeout_s=0.5)
        assert (finished.ended, finished.exit_code, finished.output.text) == (Ended.TIMED_OUT, None, "before\n")
        assert not processes_with(marker)

    async def test_is_taken_from_the_clock(self, ground: Path, workspace: Path, marker: str) -> None:
        clock = ManualClock()
        engine = Bubblewrap(bin_dir=ground / "bin", clock=clock)
        running = asyncio.ensure_future(engine.run(Job("job", ("sleep", marker), workspace, 120.0)))
        await started(marker)
        await clock.advance(119.0)
        assert processes_with(marker)
        await clock.advance(1.0)
        assert (await running).ended is Ended.TIMED_OUT
        assert not processes_with(marker)
        engine.close()


class TestCancellation:
    async def test_kills_everything_and_waits_for_the_end(self, sh: Run, marker: str) -> None:
        running = asyncio.ensure_future(sh(STUBBORN.format(marker)))
        await started(marker, 4)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not processes_with(marker)

    async def test_again_and_again_does_not_shorten_the_end(self, sh: Run, marker: str) -> None:
        running = asyncio.ensure_future(sh(STUBBORN.format(marker)))
        await started(marker, 4)
        while not running.done():
            running.cancel()
            await asyncio.sleep(0)
        assert running.cancelled()
        assert not processes_with(marker)

    async def test_at_every_moment_leaves_nothing(self, sh: Run, marker: str) -> None:
        await sh("true")
        descriptors = open_descriptors()
        for step in range(40):
            running = asyncio.ensure_future(sh(f"sleep {marker}"))
            await asyncio.sleep(step * 0.0005)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert not processes_with(marker)
        assert open_descriptors() == descriptors

    async def test_before_the_first_step_starts_nothing(self, sh: Run, marker: str) -> None:
        running = asyncio.ensure_future(sh(f"sleep {marker}"))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not processes_with(marker)


class TestResources:
    async def test_no_thread_for_each_child(self, engine: Bubblewrap, workspace: Path, marker: str) -> None:
        job = Job(
            "job",
            ("sleep", marker),
            workspace,
            60.0,
        )
        before = threading.active_count()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(engine.run(job)) for _ in range(50)]
            while len(processes_with(f"sleep\0{marker}")) < 50:
                await asyncio.sleep(0.01)
            assert threading.active_count() - before <= 10
            for task in tasks:
                task.cancel()
        assert not processes_with(marker)

    async def test_descriptors_are_given_back(self, sh: Run) -> None:
        await sh("true")
        before = open_descriptors()
        for command in ("true", "exit 3", "seq 1 100000", "sleep 0.2", "(sleep 60 &)"):
            await sh(command)
        await sh("sleep 60", timeout_s=0.1)
        assert open_descriptors() == before

    async def test_no_zombie_is_left(self, sh: Run) -> None:
        for _ in range(5):
            await sh("true")
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


PARENT = """
import asyncio, sys
from pathlib import Path
from agent.control.sandbox.base import Job
from agent.control.sandbox.bubblewrap import Bubblewrap

async def main():
    engine = Bubblewrap(bin_dir=Path(sys.argv[1]))
    await engine.run(Job("job", ("/bin/sh", "-c", sys.argv[3]), Path(sys.argv[2]), 600.0))

asyncio.run(main())
"""


@pytest.mark.chaos
async def test_kill_9_of_the_daemon_leaves_nothing(ground: Path, workspace: Path, marker: str) -> None:
    daemon = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PARENT,
        str(ground / "bin"),
        str(workspace),
        STUBBORN.format(marker),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
    )
    await started(marker, 4)
    daemon.kill()
    await daemon.wait()
    while processes_with(marker):
        await asyncio.sleep(0.01)


@pytest.mark.chaos
async def test_kill_9_of_the_daemon_at_any_moment_leaves_no_command(ground: Path, workspace: Path, marker: str) -> None:
    """The moments around the start are the dangerous ones: the sandbox may not yet know that it must die."""
    for step in range(12):
        daemon = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PARENT, str(ground / "bin"), str(workspace), f"sleep {marker}"),
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
        )
        while not processes_with("bwrap") and not processes_with(marker + "\0"):
            await asyncio.sleep(0)
        await asyncio.sleep(step * 0.0005)
        daemon.kill()
        await daemon.wait()
    while processes_with(f"sleep\0{marker}"):
        await asyncio.sleep(0.01)
    await asyncio.to_thread(sweep_orphans)
    while processes_with(marker):
        await asyncio.sleep(0.01)


async def test_sweeping_kills_the_orphans_and_nobody_else(sh: Run, marker: str) -> None:
    """An orphan carries the mark of a process that is gone; a stranger carries none."""
    gone = await asyncio.create_subprocess_exec("true")
    await gone.wait()
    orphan = await asyncio.create_subprocess_exec("sleep", "60", env={"OSTIARY_SANDBOX_OWNER": f"{gone.pid}:1"})
    reused = await asyncio.create_subprocess_exec("sleep", "60", env={"OSTIARY_SANDBOX_OWNER": f"{os.getpid()}:1"})
    stranger = await asyncio.create_subprocess_exec("sleep", "60", env={})
    own = asyncio.ensure_future(sh(f"sleep {marker}"))
    await started(marker)
    swept = await asyncio.to_thread(sweep_orphans)
    # not asserted to be in ``swept``: a daemon that another test starts may have been quicker
    assert await orphan.wait() == await reused.wait() == -signal.SIGKILL
    assert stranger.pid not in swept
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()
    assert processes_with(f"sleep\0{marker}")
    own.cancel()
    with pytest.raises(asyncio.CancelledError):
        await own


SUBREAPER = """
import asyncio, ctypes, os, sys
from pathlib import Path
from agent.control.sandbox.base import Job
from agent.control.sandbox.bubblewrap import Bubblewrap

ctypes.CDLL(None).prctl(36, 1)

async def main():
    engine = Bubblewrap(bin_dir=Path(sys.argv[1]))
    for command in ("true", "(sleep 60 &)", "sleep 60"):
        await engine.run(Job("job", ("/bin/sh", "-c", command), Path(sys.argv[2]), 0.5))
    try:
        print(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        print("nothing left")

asyncio.run(main())
"""


async def test_a_daemon_that_inherits_orphans_reaps_its_own(ground: Path, workspace: Path) -> None:
    """As pid 1 of a container it becomes the parent of what bubblewrap leaves to the kernel."""
    daemon = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SUBREAPER, str(ground / "bin"), str(workspace)),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
        stdout=asyncio.subprocess.PIPE,
    )
    assert (await daemon.communicate())[0] == b"nothing left\n"


async def test_the_loop_is_never_blocked(engine: Bubblewrap, workspace: Path) -> None:
    with blockbuster_ctx() as guard:
        # As for asyncio's own start of a process: the read ends when vfork does.
        guard.functions["os.read"].can_block_in("agent/control/sandbox/process.py", "_start")
        assert (await engine.probe()).ok
        for command in ("cat", "seq 1 100000", "sleep 0.2; (sleep 60 &)"):
            await engine.run(Job("job", ("/bin/sh", "-c", command), workspace, 10.0, stdin=b"x" * 500_000))
        await engine.run(Job("job", ("sleep", "60"), workspace, 0.2))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="newer ones do so by themselves")
def test_other_children_need_no_thread_either_once_the_watcher_is_installed() -> None:
    async def children() -> int:
        processes = [await asyncio.create_subprocess_exec("sleep", "60") for _ in range(20)]
        threads = threading.active_count()
        for process in processes:
            process.kill()
            await process.wait()
        return threads

    before = threading.active_count()
    try:
        install_child_watcher()
        assert asyncio.run(children()) <= before
    finally:
        if sys.version_info < (3, 12):
            asyncio.set_child_watcher(None)  # type: ignore[arg-type]
