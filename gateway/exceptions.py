"""Errors of the daemon's own services.

::

    GatewayError
    +-- ConfigError           the configuration cannot be used; exit status 78
    +-- DaemonUnreachable     nobody answers on the control socket
    +-- DaemonRefused         the daemon answered with an error
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class GatewayError(Exception):
    """Root of this package's errors."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with the configuration. Never holds a configured value.

    Attributes:
        source: where it stands: ``/etc/x.yaml:3``, ``environment variable OSTIARY_...`` or ``--set``.
        key: dotted path; empty where the source as a whole is meant.
        reason: one sentence.
        suggestion: what to do, or what was probably meant; may be empty.
    """

    source: str
    key: str
    reason: str
    suggestion: str = ""

    def __str__(self) -> str:
        lines = [("file", self.source), ("key", self.key), ("reason", self.reason), ("suggestion", self.suggestion)]
        return "\n".join(f"  {name + ':':<12}{text}" for name, text in lines if text)


class ConfigError(GatewayError):
    """The configuration cannot be used; nothing was started.

    Attributes:
        problems: all that were found, at least one.
    """

    def __init__(self, problems: Sequence[Problem] | Problem) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("the configuration cannot be used")

    @property
    def first(self) -> Problem:
        """The first problem."""
        return self.problems[0]

    def __str__(self) -> str:
        return "The configuration cannot be used.\n" + "\n\n".join(str(problem) for problem in self.problems)


class DaemonUnreachable(GatewayError):
    """Nobody answers on the control socket; the message says how to start a daemon."""


class DaemonRefused(GatewayError):
    """The daemon answered with an error.

    Attributes:
        status: HTTP status.
        code: the machine-readable code of the answer, ``not_found`` and so on.
    """

    def __init__(self, message: str, *, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
