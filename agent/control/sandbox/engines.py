"""Which engine runs commands here, and how many at once. Never the bare host: without an engine nothing runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from agent.control.clock import Clock
from agent.control.sandbox.base import EngineStatus, Finished, Job, OutputListener, Sandbox, SandboxUnavailable

#: After a failed trial the next one is made no sooner than this.
RETRY_S = 30.0

#: Sandboxes at once for each core, unless ``sandbox.max_running`` says otherwise.
PER_CORE = 2

AUTO = "auto"

#: Engines that the configuration may name, in the order in which ``auto`` tries those that are built in.
KNOWN = ("bubblewrap", "container", "ssh")


def default_max_running() -> int:
    """Two sandboxes for each core that this process may use."""
    return PER_CORE * len(os.sched_getaffinity(0))


class Bounded:
    """An engine that runs a limited number of jobs at once; the others wait in order of arrival.

    A job's time limit begins when it has its place. Waiting ends by cancellation like everything else.
    """

    def __init__(self, inner: Sandbox, max_running: int) -> None:
        self.name = inner.name
        self.max_running = max_running
        self._inner = inner
        self._places = asyncio.Semaphore(max_running)
        self._running = 0
        self._failed = False

    @property
    def running(self) -> int:
        """Jobs that have a place now."""
        return self._running

    @property
    def failed(self) -> bool:
        """Whether the last job could not be started, so that the engine should be tried anew."""
        return self._failed

    async def probe(self) -> EngineStatus:
        """Try the engine; needs no place, so that a busy one is not taken for a broken one."""
        status = await self._inner.probe()
        self._failed = not status.ok
        return status

    async def run(self, job: Job, on_output: OutputListener | None = None) -> Finished:
        """Wait for a place, then run ``job`` to its end.

        Raises:
            SandboxUnavailable: the engine does not work; nothing ran.
        """
        async with self._places:
            self._running += 1
            try:
                finished = await self._inner.run(job, on_output)
            except SandboxUnavailable:
                self._failed = True
                raise
            finally:
                self._running -= 1
            self._failed = False
            return finished


class Engines:
    """Chooses an engine by configuration, finds out by a real run whether it works, and remembers it while it does.

    Args:
        built: the engines of this installation by name.
        choice: a name, or ``auto`` for the first of ``built`` that works.
        max_running: jobs at once over all sessions; default two a core.
        retry_s: pause between trials after a failure.
    """

    def __init__(
        self,
        built: Mapping[str, Sandbox],
        *,
        clock: Clock,
        choice: str = AUTO,
        max_running: int | None = None,
        retry_s: float = RETRY_S,
    ) -> None:
        places = max_running or default_max_running()
        self._engines = {name: Bounded(built[name], places) for name in KNOWN if name in built}
        self._choice = choice
        self._clock = clock
        self._retry_s = retry_s
        self._working: Bounded | None = None
        self._refusal: SandboxUnavailable | None = None
        self._next_trial = 0.0
        self._trial = asyncio.Lock()

    async def get(self) -> Sandbox:
        """The working engine.

        Tried once and kept; tried again after a job could not start, and after a failure when the pause is over.

        Raises:
            SandboxUnavailable: none works; the message says why and what to do.
        """
        if self._working is not None and not self._working.failed:
            return self._working
        async with self._trial:
            if self._working is not None and not self._working.failed:
                return self._working
            if self._refusal is not None and self._clock.monotonic() < self._next_trial:
                raise self._refused_again(self._refusal)
            return await self._choose()

    async def status(self) -> list[EngineStatus]:
        """Try every engine that the configuration allows now, whatever is remembered; for ``doctor`` and readiness."""
        try:
            candidates = self._candidates()
        except SandboxUnavailable as exc:
            return [EngineStatus(self._choice, ok=False, problem=exc.args[0], fix=exc.fix)]
        return [await engine.probe() for engine in candidates]

    async def _choose(self) -> Sandbox:
        self._working = None
        problems: list[EngineStatus] = []
        try:
            for engine in self._candidates():
                status = await engine.probe()
                if status.ok:
                    self._working = engine
                    self._refusal = None
                    return engine
                problems.append(status)
            raise _refusal(problems)
        except SandboxUnavailable as exc:
            self._refusal = exc
            self._next_trial = self._clock.monotonic() + self._retry_s
            raise

    def _candidates(self) -> list[Bounded]:
        if self._choice == AUTO:
            return list(self._engines.values())
        if self._choice in self._engines:
            return [self._engines[self._choice]]
        if self._choice in KNOWN:
            raise SandboxUnavailable(
                f"The sandbox engine {self._choice} is not part of this version.",
                fix=f"Set sandbox.engine to {' or '.join((AUTO, *self._engines))}.",
            )
        raise SandboxUnavailable(
            f"There is no sandbox engine {self._choice!r}.",
            fix=f"Set sandbox.engine to one of: {', '.join((AUTO, *self._engines))}.",
        )

    @staticmethod
    def _refused_again(refusal: SandboxUnavailable) -> SandboxUnavailable:
        # A new object each time: one that is raised twice collects the tracebacks of both.
        return SandboxUnavailable(refusal.args[0], fix=refusal.fix)


def _refusal(problems: list[EngineStatus]) -> SandboxUnavailable:
    if not problems:
        return SandboxUnavailable("No sandbox engine is built in here.", fix="Commands need Linux with bubblewrap.")
    reasons = " ".join(f"{status.engine}: {status.problem}" for status in problems)
    fixes = "\n".join(dict.fromkeys(status.fix for status in problems if status.fix))
    return SandboxUnavailable(f"Commands cannot run: no sandbox works here. {reasons}", fix=fixes)
