"""What the guard says about a command, and the shape by which a grant recognises it again."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.IntEnum):
    """The three answers, ordered so that ``max`` takes the worse."""

    SAFE = 0
    APPROVE = 1
    REFUSE = 2

    @property
    def label(self) -> str:
        """The word used in output and in the corpus: ``safe``, ``approve`` or ``refuse``."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Shape:
    """How a command looks with its operands taken away.

    Attributes:
        program: base name of the program, lower case.
        words: leading subcommand words (``("reset",)`` of ``git reset --hard``).
        options: every option given, sorted, clusters split (``-rf`` is ``-f`` and ``-r``), values kept.
    """

    program: str
    words: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def text(self) -> str:
        """One line for people and for ``allowlist.json``: ``rm -f -r``."""
        return " ".join((self.program, *self.words, *self.options))


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason to ask or to refuse.

    Attributes:
        rule: dotted id, ``git.reset-hard``.
        cls: class of the labelling rules, ``A1`` to ``A22`` or ``H1`` to ``H8``.
        category: category of the corpus, ``file-deletion``.
        verdict: APPROVE or REFUSE.
        reason: a short plain sentence for the card.
        segment: the part of the command that triggered, as written.
        resolved: what it comes to after expansion, if that differs; else the empty string.
        alternative: a safer way to the same end; empty where there is none.
        shape: None when the segment could not be resolved: then no grant can cover it.
        paths: absolute, normalised paths of the operands; a grant's path scope.
        grantable: False where "always" is never offered (remote code, sending, inline programs, the unreadable).
    """

    rule: str
    cls: str
    category: str
    verdict: Verdict
    reason: str
    segment: str
    resolved: str = ""
    alternative: str = ""
    shape: Shape | None = None
    paths: tuple[str, ...] = ()
    grantable: bool = True


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one command, with every finding, worst first.

    Attributes:
        scripts: absolute paths of workspace files that the command names as program or script.
    """

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    scripts: tuple[str, ...] = ()

    @property
    def category(self) -> str | None:
        """Category of the worst finding; None when safe."""
        return self.findings[0].category if self.findings else None

    @property
    def rules(self) -> tuple[str, ...]:
        """Rule ids, worst first, each once."""
        return tuple(dict.fromkeys(finding.rule for finding in self.findings))

    @property
    def why(self) -> str:
        """The reason of the worst finding; empty when safe."""
        return self.findings[0].reason if self.findings else ""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the guard takes for granted about the place where commands run.

    The names are configuration: the daemon fills them from its own home and sandbox profile, the corpus brings its own
    in ``commands.assume.yaml`` (same keys).
    """

    user: str = "agent"
    home: str = "/workspace"
    workdir: str = "/workspace"
    scratch: tuple[str, ...] = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - judged, not written
    gateway_name: str = "ostiary"
    gateway_home: str = "/var/lib/ostiary"
    gateway_pid_variable: str = "OSTIARY_PID"
    gateway_pid_file: str = "/run/ostiary.pid"
    audit_paths: tuple[str, ...] = ()
    policy_paths: tuple[str, ...] = ()
    secret_paths: tuple[str, ...] = ()
