"""The default engine on Linux: one bubblewrap sandbox a command, unprivileged, without a daemon of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.control.clock import Clock, SystemClock
from agent.control.exceptions import ControlError
from agent.control.sandbox.base import (
    Ended,
    EngineStatus,
    Finished,
    Job,
    Limits,
    OutputListener,
    Profile,
    SandboxUnavailable,
)
from agent.control.sandbox.binaries import bwrap_version, find_bwrap, find_prlimit, user_change
from agent.control.sandbox.diagnosis import diagnose, is_callers_fault
from agent.control.sandbox.layout import INNER_UID, PIDS_HEADROOM, Layout, layout, look_around
from agent.control.sandbox.orphans import owner_environment
from agent.control.sandbox.output import OutputCollector
from agent.control.sandbox.process import Child, Command, outlast, sealed_file
from agent.control.sandbox.supervisor import INTERVAL_S, DiskMeter, Supervisor
from agent.control.sandbox.workspace import (
    DEFAULT_UID,
    Identity,
    check_capabilities,
    prepare_workspace,
    sandbox_identity,
)

#: Who holds the sums of memory, tasks and disk. A delegated cgroup is not used.
LIMITS_BY = "supervisor"

_PROBE_TIMEOUT_S = 10.0
_PROBE_LIMITS = Limits(memory_mb=64, pids=8, disk_mb=1)

#: Run once to see that the promises hold here, not only that something starts.
_PROBE = f"""
[ "$(id -u)" = {INNER_UID} ] || {{ echo "runs as uid $(id -u)"; exit 1; }}
prlimit --nproc --noheadings --output SOFT | grep -qx ' *{_PROBE_LIMITS.pids + PIDS_HEADROOM} *' ||
  {{ echo "the limit of processes is not in force"; exit 1; }}
for place in / /dev /usr /etc; do
  if (: > "$place/ostiary-probe") 2>/dev/null; then echo "$place is writable"; exit 1; fi
done
[ -w /workspace ] && [ -w /tmp ] || {{ echo "/workspace or /tmp is not writable"; exit 1; }}
if grep -q '^CapEff:.*[1-9a-f]' /proc/self/status; then echo "capabilities are left"; exit 1; fi
"""


@dataclass(frozen=True, slots=True)
class _Programs:
    user_change: tuple[str, ...]
    bwrap: Path
    prlimit: Path
    environment: dict[str, str]


class Bubblewrap:
    """Runs jobs with bubblewrap.

    Must be used from the thread of the event loop, as the sandboxes die with the thread that started them.

    Args:
        uid: the user for sandboxes under a root daemon; an ordinary user runs them as itself.
        bin_dir: where the bundled ``bwrap`` is copied when that user cannot reach it.
        protected: folders of the daemon that no declared mount may show.
        scratch: where probes make their short-lived workspace; default the system's folder for temporary files.
    """

    name = "bubblewrap"

    def __init__(
        self,
        *,
        uid: int = DEFAULT_UID,
        bin_dir: Path | None = None,
        protected: tuple[Path, ...] = (),
        scratch: Path | None = None,
        clock: Clock | None = None,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._uid = uid
        self._bin_dir = bin_dir
        self._protected = protected
        self._scratch = scratch
        self._clock = clock or SystemClock()
        self._supervisor = Supervisor(self._clock, interval_s)
        self._programs: _Programs | None = None

    def close(self) -> None:
        """Let the worker threads of the supervisor end. Nothing may be running."""
        self._supervisor.close()

    @property
    def identity(self) -> Identity:
        """The host user that sandboxes run as.

        Raises:
            SandboxUnavailable: see :func:`~agent.control.sandbox.workspace.sandbox_identity`.
        """
        return sandbox_identity(self._uid)

    def prepare_workspace(self, path: Path) -> None:
        """Make or check a workspace folder for this engine's user. Blocks; call it in a worker thread.

        Raises:
            SandboxUnavailable: see :func:`~agent.control.sandbox.workspace.prepare_workspace`.
        """
        prepare_workspace(path, self.identity)

    async def run(self, job: Job, on_output: OutputListener | None = None) -> Finished:
        """Run ``job`` to its end; see :class:`~agent.control.sandbox.base.Sandbox`.

        Raises:
            SandboxUnavailable: the sandbox could not be set up; nothing ran.
            RequestInvalid: the command cannot be expressed (NUL characters, too long, bad variable names).
        """
        programs = self._programs or (await asyncio.to_thread(self._locate))[0]
        return await self._run(programs, job, on_output)

    async def probe(self) -> EngineStatus:
        """Try each ``bwrap`` there is with a real job, and keep the first that works for the jobs to come."""
        problem = fix = ""
        try:
            candidates = await asyncio.to_thread(self._locate)
            for programs in candidates:
                try:
                    await self._try(programs)
                except ControlError as exc:
                    if not problem:
                        problem, fix = exc.args[0], exc.fix
                    continue
                self._programs = programs
                version = ".".join(map(str, await asyncio.to_thread(bwrap_version, programs.bwrap)))
                return EngineStatus(self.name, True, f"{version} ({programs.bwrap})", limits_by=LIMITS_BY)
        except (ControlError, OSError) as exc:
            problem, fix = str(exc.args[0] if isinstance(exc, ControlError) else exc), getattr(exc, "fix", "")
        self._programs = None
        return EngineStatus(self.name, False, problem=problem, fix=fix)

    def _locate(self) -> list[_Programs]:
        identity = self.identity
        check_capabilities(identity)
        change, prlimit = user_change(identity), find_prlimit()
        look_around()
        return [_Programs(change, bwrap, prlimit, owner_environment()) for bwrap in find_bwrap(identity, self._bin_dir)]

    async def _try(self, programs: _Programs) -> None:
        workspace = await asyncio.to_thread(self._make_scratch)
        try:
            profile = Profile(name="probe", limits=_PROBE_LIMITS)
            finished = await self._run(
                programs, Job("probe", ("/bin/sh", "-c", _PROBE), workspace, _PROBE_TIMEOUT_S, profile), None
            )
        finally:
            await asyncio.to_thread(shutil.rmtree, workspace.parent, ignore_errors=True)
        if finished.ended is not Ended.EXITED or finished.exit_code != 0:
            said = finished.output.text.strip() or finished.ended.value
            raise SandboxUnavailable(
                f"A trial sandbox does not hold what it must: {said}.",
                fix="Report it with the output of `ostiary doctor --json`; commands are refused meanwhile.",
            )

    def _make_scratch(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="ostiary-probe-", dir=self._scratch))
        try:
            folder.chmod(0o711)
            self.prepare_workspace(folder / "workspace")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder / "workspace"

    async def _run(self, programs: _Programs, job: Job, on_output: OutputListener | None) -> Finished:
        if job.profile.mounts:
            plan = await asyncio.to_thread(layout, job, programs.prlimit, self._protected)
        else:
            plan = layout(job, programs.prlimit)
        collector = OutputCollector(job.profile.limits.output_bytes)

        def sink(data: bytes) -> None:
            collector.add(data)
            if on_output is not None:
                on_output(data)

        limits = job.profile.limits
        disk = self._supervisor.meter(job.workspace, limits) if job.profile.workspace_writable else None
        started = self._clock.monotonic()
        try:
            child = _start(programs, plan, job, sink)
            try:
                ended = await self._until_over(child, job, disk)
            finally:
                child.kill()
                await outlast(asyncio.ensure_future(child.bury()))
        finally:
            if disk is not None:
                disk.stop()
        duration = self._clock.monotonic() - started
        return _result(child, ended, collector, duration, str(programs.bwrap))

    async def _until_over(self, child: Child, job: Job, disk: DiskMeter | None) -> Ended:
        watch = asyncio.create_task(
            self._supervisor.watch(child.namespace, job.profile.limits, disk), name=f"sandbox-watch:{job.job_id}"
        )
        both: set[asyncio.Future[Any]] = {child.ended, watch}
        try:
            async with self._clock.timeout(job.timeout_s):
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return watch.result() if watch.done() else Ended.EXITED
        except TimeoutError:
            return Ended.TIMED_OUT
        finally:
            watch.cancel()
            await outlast(asyncio.ensure_future(_settled(watch)))


async def _settled(task: asyncio.Task[Ended]) -> None:
    await asyncio.wait({task})


def _start(programs: _Programs, plan: Layout, job: Job, sink: OutputListener) -> Child:
    with contextlib.ExitStack() as stack:
        options = list(plan.options)
        descriptors: list[int] = []
        for path, content in plan.files.items():
            descriptor = sealed_file(content)
            stack.callback(os.close, descriptor)
            descriptors.append(descriptor)
            options += ["--perms", "0444", "--file", str(descriptor), path]
        command = Command(
            programs.user_change,
            str(programs.bwrap),
            (*options, *plan.closing),
            tuple(descriptors),
            (*plan.limits, *job.argv),
            job.stdin,
            programs.environment,
        )
        return Child(command, sink)


def _result(child: Child, ended: Ended, collector: OutputCollector, duration_s: float, binary: str) -> Finished:
    output = collector.output()
    if ended is not Ended.EXITED:
        return Finished(ended, None, output, duration_s, LIMITS_BY)
    if child.exit_code is not None:
        return Finished(ended, child.exit_code, output, duration_s, LIMITS_BY)
    if child.status is not None and child.status < 0:  # bubblewrap itself was killed from outside
        return Finished(ended, 128 - child.status, output, duration_s, LIMITS_BY)
    if is_callers_fault(output.text):
        return Finished(ended, child.status, output, duration_s, LIMITS_BY)
    raise diagnose(output.text, binary)
