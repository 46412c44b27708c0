"""The same promises for a daemon that is no root: it runs sandboxes as itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.control.sandbox.conftest import processes_with

UID = 23456

#: Imports everything first: the interpreter's own files may lie where this user cannot read.
SCRIPT = """
import asyncio, json, os, sys
from pathlib import Path
from agent.control.sandbox.base import Job, Limits, Profile
from agent.control.sandbox.bubblewrap import Bubblewrap

ground, marker, uid = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
os.setgroups([])
os.setgid(uid)
os.setuid(uid)

BOMB = "perl -e 'fork while 1'"
HOG = "i=0; while [ $i -lt 6 ]; do perl -e '$a = \\"x\\" x 30_000_000; sleep 60' & i=$((i+1)); done; wait"
COUNT = f'''perl -e 'my $n = 0;
while ($n < 300) {{ my $p = fork; last unless defined $p; if (!$p) {{ exec "sleep", "{marker}" }} $n++ }}
print "$n"; sleep 1' '''

async def main():
    engine = Bubblewrap()
    unwatched = Bubblewrap(interval_s=3600.0)
    workspace = ground / "workspaces" / "own"
    engine.prepare_workspace(workspace)

    async def run(command, engine=engine, **limits):
        profile = Profile(limits=Limits(**limits))
        return await engine.run(Job("job", ("/bin/sh", "-c", command), workspace, 20.0, profile))

    status = await engine.probe()
    counts = await asyncio.gather(*(run(COUNT, unwatched, pids=64) for _ in range(2)))
    print(json.dumps({
        "probe": [status.ok, status.problem],
        "user": (await run("id -un; touch file")).output.text,
        "owner": (workspace / "file").stat().st_uid,
        "bomb": (await run(BOMB, pids=32)).ended.value,
        "hog": (await run(HOG, memory_mb=96)).ended.value,
        "counts": [int(finished.output.text) for finished in counts],
        "left": (await run(f"setsid sleep {marker} & sleep 0.1; echo ok")).output.text,
    }))

asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the whole suite shows it already")
def test_limits_and_endings_hold_without_root(ground: Path, marker: str) -> None:
    ground.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ground), marker, str(UID)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    counts = answer.pop("counts")
    assert answer == {
        "probe": [True, ""],
        "user": "agent\n",
        "owner": UID,
        "bomb": "over_pids",
        "hog": "over_memory",
        "left": "ok\n",
    }
    assert all(64 <= count <= 80 for count in counts)
    assert not processes_with(marker)
