from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent.control.clock import ManualClock
from agent.control.sandbox.supervisor import DiskMeter, Namespace, TooDeep, _descendants, tree_bytes


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


class TestTreeBytes:
    def test_counts_blocks_folders_and_empty_files(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"x" * 100_000)
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "b").write_bytes(b"x" * 50_000)
        (tmp_path / "empty").touch()
        assert 150_000 < tree_bytes(tmp_path, threading.Event()) < 180_000

    def test_counts_a_hard_link_once_and_follows_no_link(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"x" * 100_000)
        os.link(tmp_path / "a", tmp_path / "b")
        (tmp_path / "c").symlink_to("/usr")
        assert tree_bytes(tmp_path, threading.Event()) < 120_000

    def test_a_sparse_file_counts_what_it_takes(self, tmp_path: Path) -> None:
        with (tmp_path / "sparse").open("wb") as stream:
            stream.truncate(1 << 40)
        assert tree_bytes(tmp_path, threading.Event()) < 100_000

    def test_paths_longer_than_the_system_allows_are_counted(self, tmp_path: Path) -> None:
        script = """
import os
for _ in range(100):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
open("f", "w").write("x" * 100_000)
"""
        subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
        assert tree_bytes(tmp_path, threading.Event()) > 100_000

    def test_absurd_nesting_is_refused(self, tmp_path: Path) -> None:
        script = "for i in $(seq 300); do mkdir d && cd d || exit 1; done"
        subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, check=True)
        with pytest.raises(TooDeep):
            tree_bytes(tmp_path, threading.Event())

    def test_can_be_stopped(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"x" * 100_000)
        stop = threading.Event()
        stop.set()
        assert tree_bytes(tmp_path, stop) == 0

    def test_a_missing_folder_is_empty(self, tmp_path: Path) -> None:
        assert tree_bytes(tmp_path / "none", threading.Event()) == 0


class TestDiskMeter:
    async def counted(self, meter: DiskMeter) -> bool:
        """Let the walk under way end, and look."""
        assert meter._walk is not None
        await asyncio.wait({meter._walk})
        return meter.over()

    async def test_growth_beyond_the_limit_is_over(self, tmp_path: Path, pool: ThreadPoolExecutor) -> None:
        clock = ManualClock()
        meter = DiskMeter(tmp_path, 50_000, pool, clock)
        assert not await self.counted(meter)
        (tmp_path / "a").write_bytes(b"x" * 60_000)
        meter.over()
        assert await self.counted(meter)

    async def test_what_was_there_before_is_not_held_against_a_job(
        self, tmp_path: Path, pool: ThreadPoolExecutor
    ) -> None:
        (tmp_path / "a").write_bytes(b"x" * 60_000)
        meter = DiskMeter(tmp_path, 50_000, pool, ManualClock())
        assert not await self.counted(meter)
        meter.over()
        assert not await self.counted(meter)
        (tmp_path / "b").write_bytes(b"x" * 10_000)
        meter.over()
        assert await self.counted(meter)

    async def test_rests_nine_times_as_long_as_it_walked(self, tmp_path: Path, pool: ThreadPoolExecutor) -> None:
        clock = ManualClock()
        meter = DiskMeter(tmp_path, 50_000, pool, clock)
        assert meter._walk is not None
        await asyncio.wait({meter._walk})
        await clock.advance(1.0)  # as if the walk had taken a second
        meter.over()
        await clock.advance(8.9)
        meter.over()
        assert meter._walk is None
        await clock.advance(0.2)
        meter.over()
        assert meter._walk is not None
        meter.stop()

    async def test_nesting_to_hide_is_over(self, tmp_path: Path, pool: ThreadPoolExecutor) -> None:
        script = "for i in $(seq 300); do mkdir d && cd d || exit 1; done"
        subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, check=True)
        meter = DiskMeter(tmp_path, 50_000_000, pool, ManualClock())
        assert await self.counted(meter)


class TestNamespace:
    def test_a_process_outside_any_sandbox_gives_no_reading(self) -> None:
        """While bubblewrap sets up, its root is still the host's: the host's processes must not be counted."""
        namespace = Namespace(os.getpid())
        assert namespace.usage(0) is None
        namespace.close()

    def test_a_process_that_is_gone_gives_no_reading(self) -> None:
        process = subprocess.Popen([sys.executable, "-c", ""])
        namespace = Namespace(process.pid)
        process.wait()
        assert namespace.usage(0) is None
        namespace.close()

    def test_the_tree_of_children_is_the_way_without_rights(self) -> None:
        process = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & sleep 60 & echo up; wait"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        children = _descendants(process.pid)
        assert len(children) == 2
        for child in children:
            os.kill(int(child), 9)
        process.wait()
        process.stdout.close()
