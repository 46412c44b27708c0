"""One sandbox process: its start, its pipes, its namespace, and an end that leaves nothing behind.

Processes are started from the event loop's own thread, never from a worker: ``--die-with-parent`` means the *thread*
that forked (prctl(2), PR_SET_PDEATHSIG). Ends are seen through pidfds in the event loop; no thread waits for a child.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from agent.control.exceptions import ControlError, RequestInvalid
from agent.control.sandbox.base import SandboxUnavailable

#: One read; also the size of a pipe on Linux.
_READ_BYTES = 65_536

#: After this much without a pause the reader lets the event loop breathe, or ``yes`` would own it.
_BREATH_BYTES = 1024 * 1024
_BREATH_S = 0.002

#: How long output may still come once everything in the sandbox is dead. Only a process outside that was handed the
#: pipe could hold it longer.
_DRAIN_S = 0.5

#: How long the kernel may take to end a killed sandbox. Longer means a process stuck in the kernel.
_BURY_S = 10.0

_T = TypeVar("_T")

log = structlog.get_logger(__name__)


def install_child_watcher() -> None:
    """On Python 3.11 let asyncio wait for children through pidfds instead of one thread a child.

    Python 3.12 does so by itself. Call it once in the main thread before the event loop starts. Sandboxes do not depend
    on it; everything else that uses :mod:`asyncio` subprocesses does.
    """
    if sys.version_info < (3, 12):
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())


def sealed_file(content: bytes, name: str = "content") -> int:
    """A descriptor from which ``content`` can be read and which nobody can change; in memory, without a path."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.set_blocking(descriptor, False)
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


async def outlast(awaited: asyncio.Future[_T]) -> _T:
    """Await to the end even when cancelled meanwhile; the cancellation is raised afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not awaited.done():
        try:
            await asyncio.shield(awaited)
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        raise cancelled
    return awaited.result()


class Pump:
    """Hands what arrives on a pipe to ``sink`` until end of file, never blocking and never owning the loop."""

    def __init__(self, descriptor: int, sink: Callable[[bytes], None]) -> None:
        os.set_blocking(descriptor, False)
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._sink = sink
        self._since_breath = 0
        self._resume: asyncio.TimerHandle | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        self._since_breath += len(data)
        if self._since_breath >= _BREATH_BYTES:
            self._since_breath = 0
            self._loop.remove_reader(self._descriptor)
            self._resume = self._loop.call_later(_BREATH_S, self._loop.add_reader, self._descriptor, self._read)
        self._sink(data)

    def close(self) -> None:
        """Stop reading and close the pipe; does nothing the second time."""
        if self._descriptor < 0:
            return
        if self._resume is not None:
            self._resume.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        if not self.ended.done():
            self.ended.set_result(None)


class Death:
    """The end of a process as a future, and a signal that can only reach that very process."""

    def __init__(self, pid: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = os.pidfd_open(pid)
        self.seen: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._descriptor, self._ended)

    def _ended(self) -> None:
        self._loop.remove_reader(self._descriptor)
        if not self.seen.done():
            self.seen.set_result(None)

    def kill(self) -> None:
        """Send SIGKILL; does nothing when the process is gone."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def close(self) -> None:
        """Release the descriptor; reap the process if it became a child of ours (as for pid 1 of a container)."""
        self._loop.remove_reader(self._descriptor)
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED | os.WNOHANG)
        os.close(self._descriptor)
        self.seen.cancel()


@dataclass(frozen=True, slots=True)
class Command:
    """What to start.

    Attributes:
        prefix: the command that changes the user first; empty when the daemon is that user.
        options: for bubblewrap; handed over in a sealed file, so that no environment value shows in the process list.
        descriptors: open files that the options name.
        inner: the command inside.
        environment: of bubblewrap itself; the first process inside shows it, so it must hold nothing secret.
    """

    prefix: tuple[str, ...]
    binary: str
    options: tuple[str, ...]
    descriptors: tuple[int, ...]
    inner: tuple[str, ...]
    stdin: bytes
    environment: dict[str, str]


class Child:
    """A running bubblewrap: the outer process, and the first process of its namespace.

    The kernel ends a pid namespace with its first process and reports that process as ended only when all others are
    gone, so waiting for it is waiting for everything that the command ever started, detached or not.

    bubblewrap asks the kernel to be killed with its parent, but only once it runs; a daemon that dies before would
    leave an orphan that nobody limits. So it waits for a permit on a pipe, and gets it after it has said that it is up.
    It holds both ends of that pipe: the end of the daemon is no permit.

    Attributes:
        namespace: resolves to the host pid of the namespace's first process.
        exit_code: what the command ended with; None until then, and for ever when it never started or was killed.
    """

    def __init__(self, command: Command, sink: Callable[[bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        self.namespace: asyncio.Future[int] = loop.create_future()
        self.exit_code: int | None = None
        self._status = b""
        self._first: Death | None = None
        with contextlib.ExitStack() as stack:
            output, output_end = _pipe(stack)
            status, status_end = _pipe(stack)
            permit, self._permit = _pipe(stack)
            os.set_blocking(self._permit, False)
            self._process = _start(command, output_end, status_end, (permit, self._permit))
            try:
                self._outer = Death(self._process.pid)
            except OSError as exc:
                self._process.kill()
                self._process.wait()
                raise SandboxUnavailable(
                    f"This kernel has no pidfds: {exc}.", fix="Linux 5.3 or newer is needed."
                ) from exc
            stack.pop_all()
        for end in (output_end, status_end, permit):
            os.close(end)
        self._output_pump = Pump(output, sink)
        self._status_pump = Pump(status, self._on_status)

    @property
    def ended(self) -> asyncio.Future[None]:
        """Done when the command itself is over; what it left in the background may still be dying."""
        return self._outer.seen

    @property
    def status(self) -> int | None:
        """How the outer process ended; None while it runs."""
        return self._process.returncode

    def _on_status(self, data: bytes) -> None:
        self._status += data
        while b"\n" in self._status:
            line, self._status = self._status.split(b"\n", 1)
            report = json.loads(line)
            if "child-pid" in report:
                self._enter(report["child-pid"], report.get("pid-namespace"))
            if "exit-code" in report:
                self.exit_code = report["exit-code"]

    def _enter(self, pid: int, namespace: int | None) -> None:
        try:
            first = Death(pid)
        except ProcessLookupError:
            return
        # Had that process ended already, its number could be somebody else's by now.
        if not _is_first(pid, namespace, self._process.pid):
            first.close()
            return
        self._first = first
        self._begin()
        if not self.namespace.done():
            self.namespace.set_result(pid)

    def _begin(self) -> None:
        """Let the command begin: from here on the death of the daemon is the death of the sandbox."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._permit, b"\n")
        self._close_permit()

    def _close_permit(self) -> None:
        if self._permit >= 0:
            os.close(self._permit)
            self._permit = -1

    def kill(self) -> None:
        """SIGKILL the process group and the namespace; does nothing for what has ended."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._outer.kill()
        if self._first is not None:
            self._first.kill()

    async def bury(self) -> None:
        """Wait until everything is gone, take what is left in the pipes, release all descriptors."""
        try:
            async with asyncio.timeout(_BURY_S):
                await self._outer.seen
                self._process.wait()
                await asyncio.wait({self._status_pump.ended}, timeout=_DRAIN_S)
                if self._first is not None:
                    self._first.kill()
                    await self._first.seen
        except TimeoutError:
            log.exception("sandbox_process_stuck", pid=self._process.pid, waited_s=_BURY_S)
        try:
            async with asyncio.timeout(_DRAIN_S):
                await asyncio.wait({self._output_pump.ended, self._status_pump.ended})
        except TimeoutError:
            log.warning("sandbox_pipe_held", pid=self._process.pid)
        finally:
            self._close()

    def _close(self) -> None:
        self._output_pump.close()
        self._status_pump.close()
        self._close_permit()
        self._outer.close()
        if self._first is not None:
            self._first.close()
        self.namespace.cancel()


def _pipe(stack: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe2(os.O_CLOEXEC)
    for end in ends:
        stack.callback(os.close, end)
    return ends


def _start(command: Command, output: int, status: int, permit: tuple[int, int]) -> subprocess.Popen[bytes]:
    waiting = ("--block-fd", str(permit[0]), "--sync-fd", str(permit[1]))
    with contextlib.ExitStack() as stack:
        options = _held(stack, b"".join(map(_encoded, (*waiting, *command.options))))
        given = _held(stack, command.stdin) if command.stdin else subprocess.DEVNULL
        argv = (*command.prefix, command.binary, "--args", str(options), "--json-status-fd", str(status), "--")
        try:
            # Without user= and preexec_fn Python uses vfork: the loop waits a tenth of a millisecond, where a fork
            # would copy the page tables of the whole daemon first.
            return subprocess.Popen(  # noqa: S603 - this is the one place where commands start, each in a sandbox
                (*argv, *command.inner),
                stdin=given,
                stdout=output,
                stderr=output,
                pass_fds=(options, status, *permit, *command.descriptors),
                env=command.environment,
                cwd="/",
                start_new_session=True,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as exc:
            raise _start_failure(command, exc) from exc


def _held(stack: contextlib.ExitStack, content: bytes) -> int:
    descriptor = sealed_file(content)
    stack.callback(os.close, descriptor)
    return descriptor


def _encoded(part: str) -> bytes:
    """One option as bubblewrap reads it from a file: ended by NUL, so that a NUL inside would begin another option."""
    try:
        encoded = os.fsencode(part)
    except UnicodeEncodeError as exc:
        raise RequestInvalid("A path or variable of the command is not valid Unicode.") from exc
    if b"\0" in encoded:
        raise RequestInvalid("A path or variable of the command holds a NUL character.")
    return encoded + b"\0"


def _start_failure(command: Command, exc: Exception) -> ControlError:
    if isinstance(exc, ValueError):
        return RequestInvalid(f"The command cannot be started: {exc}.")
    if isinstance(exc, OSError) and exc.errno == errno.E2BIG:
        return RequestInvalid("The command is too long for this system.", fix="Write it to a file and run that.")
    return SandboxUnavailable(
        f"The sandbox program {command.binary} cannot be started: {exc}.",
        fix="Install bubblewrap from your distribution (apt install bubblewrap).",
    )


def _is_first(pid: int, namespace: int | None, outer: int) -> bool:
    """Whether ``pid`` is the first process of the namespace that bubblewrap reported."""
    if namespace is not None:
        try:
            descriptor = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError):
            return False
        except PermissionError:
            return _parent_of(pid) == outer
        try:
            return os.fstat(descriptor).st_ino == namespace
        finally:
            os.close(descriptor)
    return _parent_of(pid) == outer


def _parent_of(pid: int) -> int:
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return 0
    try:
        # The name in parentheses may itself hold spaces and parentheses: count from the last one.
        return int(os.read(descriptor, 4096).rpartition(b")")[2].split()[1])
    except ProcessLookupError:
        return 0
    finally:
        os.close(descriptor)
