"""Limits in force inside real sandboxes, of each process and of each sandbox as a whole."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent.control.sandbox.base import Ended, Job, Limits, Profile
from agent.control.sandbox.bubblewrap import Bubblewrap
from tests.agent.control.sandbox.conftest import Run, processes_with

#: Starts sleepers until fork fails or 300 are there, and says how many there are.
FORK_ALL = """
perl -e '
  my $n = 0;
  while ($n < 300) {{ my $pid = fork; last unless defined $pid; if (!$pid) {{ exec "sleep", "{0}" }} $n++ }}
  print "$n\\n"; sleep 1'
"""

#: Goes on when fork fails; a shell's bomb falls over by itself.
FORK_BOMB = "perl -e 'fork while 1'"

#: Takes 30 MB in each of six processes: each is within the limit, the sum is not.
SHARED_HOG = """
i=0; while [ $i -lt 6 ]; do perl -e '$a = "x" x 30_000_000; sleep 60' & i=$((i+1)); done; wait
"""


async def test_a_fork_bomb_ends_its_own_sandbox_only(sh: Run) -> None:
    neighbour = asyncio.ensure_future(sh("sleep 0.5; for i in 1 2 3 4 5; do (echo $i); done"))
    finished = await sh(FORK_BOMB, limits=Limits(pids=32))
    assert finished.ended is Ended.OVER_PIDS
    assert (await neighbour).output.text.split() == ["1", "2", "3", "4", "5"]


async def test_the_kernel_counts_processes_for_each_sandbox_apart(ground: Path, workspace: Path, marker: str) -> None:
    """Set outside the namespace, the limit would be shared by all sandboxes of the user; under root, void."""
    engine = Bubblewrap(bin_dir=ground / "bin", interval_s=3600.0)  # the supervisor stays out of it
    job = Job("job", ("/bin/sh", "-c", FORK_ALL.format(marker)), workspace, 20.0, Profile(limits=Limits(pids=64)))
    first, second = await asyncio.gather(engine.run(job), engine.run(job))
    for finished in (first, second):
        assert 64 <= int(finished.output.text.split()[0]) <= 64 + 16
    assert not processes_with(marker)
    engine.close()


async def test_memory_of_all_processes_together(sh: Run) -> None:
    finished = await sh(SHARED_HOG, limits=Limits(memory_mb=96))
    assert finished.ended is Ended.OVER_MEMORY
    assert finished.exit_code is None


async def test_memory_of_one_process(sh: Run) -> None:
    finished = await sh("perl -e '$a = \"x\" x 200_000_000; print length $a'", limits=Limits(memory_mb=96))
    assert "200000000" not in finished.output.text
    assert finished.exit_code != 0


async def test_memory_that_is_shared_after_a_fork_counts_once(sh: Run) -> None:
    """Resident sizes add up to far more than there is: proportional ones decide."""
    command = 'perl -e \'$a = "x" x 40_000_000; fork; fork; fork; sleep 1; print "ok"\''
    finished = await sh(command, limits=Limits(memory_mb=128))
    assert finished.ended is Ended.EXITED
    assert "ok" in finished.output.text


async def test_temporary_files_are_memory_too(sh: Run) -> None:
    fill = "head -c 30000000 /dev/zero > /tmp/a; head -c 15000000 /dev/zero > /dev/shm/b; sleep 60"
    finished = await sh(f"perl -e '$a = \"x\" x 15_000_000; sleep 60' & {fill}", limits=Limits(memory_mb=60))
    assert finished.ended is Ended.OVER_MEMORY


async def test_a_single_file_is_bounded_by_the_kernel(sh: Run) -> None:
    finished = await sh("head -c 9000000 /dev/zero > big; wc -c < big", limits=Limits(disk_mb=4))
    assert int(finished.output.text.split()[-1]) <= 4 * 1024 * 1024


async def test_the_workspace_as_a_whole_is_bounded(sh: Run, workspace: Path) -> None:
    fill = "i=0; while [ $i -lt 64 ]; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done; sleep 60"
    finished = await sh(fill, limits=Limits(disk_mb=8))
    assert finished.ended is Ended.OVER_DISK


async def test_empty_files_count_too(sh: Run) -> None:
    finished = await sh("seq -f e%g 1 4000 | xargs touch; sleep 60", limits=Limits(disk_mb=2))
    assert finished.ended is Ended.OVER_DISK


async def test_a_full_workspace_can_still_be_read_and_cleaned(sh: Run, workspace: Path) -> None:
    await sh("head -c 5000000 /dev/zero > a; head -c 5000000 /dev/zero > b")
    finished = await sh("ls; rm a b; sleep 0.3; ls", limits=Limits(disk_mb=6))
    assert (finished.ended, finished.output.text.split()) == (Ended.EXITED, ["a", "b"])
    await sh("head -c 5000000 /dev/zero > a; head -c 5000000 /dev/zero > b")
    finished = await sh("sleep 0.3; head -c 2000000 /dev/zero > c; sleep 60", limits=Limits(disk_mb=6))
    assert finished.ended is Ended.OVER_DISK


async def test_processor_time_of_one_process(sh: Run) -> None:
    limits = await sh("prlimit --cpu --noheadings --output SOFT,HARD", timeout_s=10.0, limits=Limits(cpus=2.0))
    assert limits.output.text.split() == ["21", "21"]


async def test_open_files_and_core_files(sh: Run) -> None:
    finished = await sh("ulimit -n; ulimit -Hn; ulimit -c", limits=Limits(open_files=99))
    assert finished.output.text.split() == ["99", "99", "0"]


async def test_no_limit_can_be_raised_inside(sh: Run) -> None:
    finished = await sh("ulimit -n 2000 || prlimit --pid $$ --nofile=2000 && ulimit -n")
    assert "2000" not in finished.output.text.splitlines()
