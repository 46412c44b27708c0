from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.control.clock import ManualClock
from agent.control.sandbox.base import Ended, EngineStatus, Finished, Job, Output, OutputListener, SandboxUnavailable
from agent.control.sandbox.bubblewrap import Bubblewrap
from agent.control.sandbox.engines import Bounded, Engines, default_max_running
from tests.agent.control.sandbox.conftest import processes_with


class Scripted:
    """An engine that works or not as told, and holds its jobs until released."""

    def __init__(self, name: str = "bubblewrap", *, works: bool = True) -> None:
        self.name = name
        self.works = works
        self.probes = 0
        self.active = 0
        self.most = 0
        self.order: list[str] = []
        self.release = asyncio.Event()

    async def probe(self) -> EngineStatus:
        self.probes += 1
        await asyncio.sleep(0)
        if self.works:
            return EngineStatus(self.name, ok=True)
        return EngineStatus(self.name, ok=False, problem=f"{self.name} is broken.", fix=f"Mend {self.name}.")

    async def run(self, job: Job, on_output: OutputListener | None = None) -> Finished:
        if not self.works:
            raise SandboxUnavailable("It stopped working.")
        self.order.append(job.job_id)
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            await self.release.wait()
        finally:
            self.active -= 1
        return Finished(Ended.EXITED, 0, Output("", 0), 0.0)


def job(name: str = "job") -> Job:
    return Job(name, ("true",), Path("/nowhere"), 1.0)


class TestChoice:
    async def test_auto_takes_the_first_that_works(self) -> None:
        broken, good = Scripted("bubblewrap", works=False), Scripted("container")
        engines = Engines({"container": good, "bubblewrap": broken}, clock=ManualClock())
        assert (await engines.get()).name == "container"
        assert (broken.probes, good.probes) == (1, 1)

    async def test_auto_never_takes_ssh_before_others(self) -> None:
        engines = Engines({"ssh": Scripted("ssh"), "bubblewrap": Scripted("bubblewrap")}, clock=ManualClock())
        assert (await engines.get()).name == "bubblewrap"

    async def test_a_named_engine_is_the_only_one_tried(self) -> None:
        broken, good = Scripted("bubblewrap", works=False), Scripted("container")
        engines = Engines({"bubblewrap": broken, "container": good}, choice="bubblewrap", clock=ManualClock())
        with pytest.raises(SandboxUnavailable, match=r"bubblewrap is broken\. Mend bubblewrap\."):
            await engines.get()
        assert good.probes == 0

    @pytest.mark.parametrize("choice", ["container", "ssh"])
    async def test_an_engine_to_come_is_refused_as_such(self, choice: str) -> None:
        engines = Engines({"bubblewrap": Scripted()}, choice=choice, clock=ManualClock())
        with pytest.raises(SandboxUnavailable, match=f"{choice} is not part of this version.*auto or bubblewrap"):
            await engines.get()
        (status,) = await engines.status()
        assert not status.ok
        assert status.fix

    async def test_an_unknown_engine_is_refused(self) -> None:
        with pytest.raises(SandboxUnavailable, match="no sandbox engine 'host'"):
            await Engines({"bubblewrap": Scripted()}, choice="host", clock=ManualClock()).get()

    async def test_without_any_engine_nothing_runs(self) -> None:
        with pytest.raises(SandboxUnavailable, match="No sandbox engine"):
            await Engines({}, clock=ManualClock()).get()

    async def test_all_reasons_and_fixes_are_told(self) -> None:
        engines = Engines(
            {"bubblewrap": Scripted("bubblewrap", works=False), "container": Scripted("container", works=False)},
            clock=ManualClock(),
        )
        with pytest.raises(SandboxUnavailable) as caught:
            await engines.get()
        assert "bubblewrap is broken. container: container is broken." in str(caught.value)
        assert caught.value.fix == "Mend bubblewrap.\nMend container."


class TestMemory:
    async def test_a_success_is_kept(self) -> None:
        engine = Scripted()
        engines = Engines({"bubblewrap": engine}, clock=ManualClock())
        assert await engines.get() is await engines.get()
        assert engine.probes == 1

    async def test_many_at_once_share_one_trial(self) -> None:
        engine = Scripted()
        engines = Engines({"bubblewrap": engine}, clock=ManualClock())
        await asyncio.gather(*(engines.get() for _ in range(20)))
        assert engine.probes == 1

    async def test_a_failure_is_tried_again_only_after_the_pause(self) -> None:
        clock, engine = ManualClock(), Scripted(works=False)
        engines = Engines({"bubblewrap": engine}, clock=clock, retry_s=30.0)
        for _ in range(5):
            with pytest.raises(SandboxUnavailable, match="Mend"):
                await engines.get()
        assert engine.probes == 1
        engine.works = True
        await clock.advance(29.0)
        with pytest.raises(SandboxUnavailable):
            await engines.get()
        await clock.advance(1.0)
        assert (await engines.get()).name == "bubblewrap"
        assert engine.probes == 2

    async def test_an_engine_that_stops_working_is_tried_anew(self) -> None:
        engine = Scripted()
        engines = Engines({"bubblewrap": engine}, clock=ManualClock())
        sandbox = await engines.get()
        engine.works = False
        with pytest.raises(SandboxUnavailable):
            await sandbox.run(job())
        with pytest.raises(SandboxUnavailable, match="Mend"):
            await engines.get()
        assert engine.probes == 2

    async def test_a_cancelled_trial_does_not_block_the_next(self) -> None:
        engines = Engines({"bubblewrap": Scripted()}, clock=ManualClock())
        first = asyncio.ensure_future(engines.get())
        await asyncio.sleep(0)
        first.cancel()
        assert (await engines.get()).name == "bubblewrap"

    async def test_status_tries_everything_afresh(self) -> None:
        one, two = Scripted("bubblewrap"), Scripted("container", works=False)
        engines = Engines({"bubblewrap": one, "container": two}, clock=ManualClock())
        await engines.get()
        assert [status.ok for status in await engines.status()] == [True, False]
        assert (one.probes, two.probes) == (2, 1)


class TestBound:
    async def test_no_more_than_the_limit_run_and_the_rest_keep_their_order(self) -> None:
        inner = Scripted()
        bounded = Bounded(inner, 3)
        tasks = [asyncio.ensure_future(bounded.run(job(str(n)))) for n in range(10)]
        await asyncio.sleep(0)
        assert (inner.active, bounded.running) == (3, 3)
        inner.release.set()
        await asyncio.gather(*tasks)
        assert inner.most == 3
        assert inner.order == [str(n) for n in range(10)]
        assert bounded.running == 0

    async def test_waiting_for_a_place_can_be_cancelled(self) -> None:
        inner = Scripted()
        bounded = Bounded(inner, 1)
        first = asyncio.ensure_future(bounded.run(job("first")))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(bounded.run(job("second")))
        third = asyncio.ensure_future(bounded.run(job("third")))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        inner.release.set()
        await asyncio.gather(first, third)
        assert inner.order == ["first", "third"]

    async def test_the_bound_holds_over_the_engines_life(self) -> None:
        inner = Scripted()
        engines = Engines({"bubblewrap": inner}, clock=ManualClock(), max_running=2)
        tasks = [asyncio.ensure_future((await engines.get()).run(job())) for _ in range(5)]
        await asyncio.sleep(0)
        assert inner.active == 2
        inner.release.set()
        await asyncio.gather(*tasks)

    def test_the_default_is_two_a_core(self) -> None:
        assert default_max_running() >= 2
        assert default_max_running() % 2 == 0

    async def test_real_sandboxes_wait_too(self, engine: Bubblewrap, workspace: Path, marker: str) -> None:
        bounded = Bounded(engine, 2)
        waiting = Job("job", ("sleep", marker), workspace, 60.0)
        tasks = [asyncio.ensure_future(bounded.run(waiting)) for _ in range(4)]
        while len(processes_with(f"sleep\0{marker}")) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert bounded.running == 2
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not processes_with(marker)


class TestForReal:
    async def test_the_probe_runs_a_sandbox_and_leaves_no_folder(self, ground: Path) -> None:
        scratch = ground / "scratch"
        scratch.mkdir(mode=0o711)
        engine = Bubblewrap(bin_dir=ground / "bin", scratch=scratch)
        (status,) = await Engines({"bubblewrap": engine}, clock=ManualClock()).status()
        assert (status.ok, status.engine, status.problem, status.fix) == (True, "bubblewrap", "", "")
        assert status.version.startswith("0.")
        assert status.limits_by == "supervisor"
        assert not list(scratch.iterdir())
        engine.close()

    async def test_a_missing_scratch_folder_is_a_problem_and_no_crash(self, ground: Path) -> None:
        engine = Bubblewrap(bin_dir=ground / "bin", scratch=ground / "none")
        status = await engine.probe()
        assert not status.ok
        assert "none" in status.problem
        engine.close()
