"""The guard: judges a shell command before anything runs."""

from __future__ import annotations

import threading
from collections import OrderedDict

from agent.control.guard import net, normalise, paths, patterns
from agent.control.guard.evaluate import Evaluator
from agent.control.guard.exceptions import OverLimit, Unreadable
from agent.control.guard.judge import Judge
from agent.control.guard.rules import facts, hardline_data
from agent.control.guard.state import State
from agent.control.guard.verdict import Assumptions, Finding, Judgement, Verdict

#: Characters of a command that are parsed; longer ones meet the net alone.
MAX_LENGTH = 32_768
#: Judgements remembered, by exact text: for retries.
CACHED = 1_024


class Guard:
    """Judges commands for one place where they would run.

    Pure: nothing is executed, opened or looked up. Safe to share between threads.

    Args:
        assume: user, home, working directory and the gateway's own names there.
    """

    def __init__(self, assume: Assumptions) -> None:
        self.assume = assume
        self._cache: OrderedDict[tuple[str, str], Judgement] = OrderedDict()
        self._lock = threading.Lock()

    def judge(self, command: str, workdir: str | None = None) -> Judgement:
        """The verdict on a command, with every finding, worst first. Never raises.

        Args:
            command: shell text, exactly what would run.
            workdir: where it starts, as the command sees it; the workspace where None. A relative one lies in the
                workspace. What counts as workspace does not change with it.
        """
        start = paths.join(paths.normal(self.assume.workdir), workdir or ".")
        key = (command, start)
        with self._lock:
            known = self._cache.get(key)
            if known is not None:
                self._cache.move_to_end(key)
                return known
        judgement = self._judge(command, start)
        if len(command) > MAX_LENGTH:
            return judgement
        with self._lock:
            self._cache[key] = judgement
            if len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        return judgement

    def _judge(self, command: str, workdir: str) -> Judgement:
        try:
            reading = normalise.read(command)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here, the command must ask
            return _of({("", "", ""): self._unreadable(command, type(error).__name__)}, ())
        findings, scripts = self._read(reading.text, workdir)
        if reading.folded is not None:
            folded, _ = self._read(reading.folded, workdir)
            findings = {**folded, **findings}
        if reading.hidden:
            hidden = self._fact(
                "unreadable.hidden",
                command,
                f"{facts.BY_NAME['unreadable.hidden'].reason[:-1]}: {', '.join(reading.hidden[:4])}.",
            )
            findings = {("hidden", "", ""): hidden, **findings}
        return _of(findings, scripts)

    def _read(self, text: str, workdir: str) -> tuple[dict[tuple[str, str, str], Finding], tuple[str, ...]]:
        """Findings and scripts of one form of the text."""
        if len(text) > MAX_LENGTH:
            return {("long", "", ""): self._unreadable(text, "it is too long to be read")}, ()
        judge = Judge(self.assume)
        evaluator = Evaluator(judge)
        findings: dict[tuple[str, str, str], Finding] = {}
        try:
            state = State.initial(self.assume)
            state.cwd = workdir
            evaluator.run(text, state)
        except (Unreadable, OverLimit) as error:
            findings["unreadable", "", ""] = self._unreadable(text, str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours must ask, never let through
            findings["unreadable", "", ""] = self._unreadable(text, f"the guard failed on it ({type(error).__name__})")
        for finding in list(judge.findings.values()):
            if finding.rule == "unreadable.syntax" and net.hit(finding.resolved, self.assume):
                findings["unreadable", "", ""] = self._unreadable(finding.resolved, "a part of it is no shell text")
        return {**findings, **judge.findings}, tuple(evaluator.scripts)

    def _unreadable(self, text: str, why: str) -> Finding:
        """What cannot be read asks; where the net finds a hardline subject, it is refused."""
        caught = net.hit(text, self.assume)
        if caught is not None:
            rule, part = caught
            reason = facts.BY_NAME.get(rule) or hardline_data.BY_NAME[rule]
            return Finding(
                reason.id,
                reason.cls,
                reason.category,
                Verdict.REFUSE,
                reason.reason,
                part,
                alternative=reason.alternative,
                grantable=False,
            )
        named = patterns.named_by(text[:MAX_LENGTH])
        if named is not None:
            return self._fact(
                "unreadable.syntax",
                text,
                f"This command cannot be read ({why}), and it looks like {named.description}.",
                named.category,
            )
        return self._fact("unreadable.syntax", text, f"This command cannot be read: {why}.")

    def _fact(self, name: str, text: str, reason: str, category: str = "") -> Finding:
        fact = facts.BY_NAME[name]
        return Finding(
            fact.id,
            fact.cls,
            category or fact.category,
            fact.verdict,
            reason,
            text[:400],
            alternative=fact.alternative,
            grantable=False,
        )


def _of(findings: dict[tuple[str, str, str], Finding], scripts: tuple[str, ...]) -> Judgement:
    ordered = sorted(findings.values(), key=lambda finding: -finding.verdict)
    return Judgement(ordered[0].verdict if ordered else Verdict.SAFE, tuple(ordered), scripts)
