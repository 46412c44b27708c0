"""One simple command as the rules see it: argv, redirections, and where it would run."""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from agent.control.guard.expressions import Expression
from agent.control.guard import programs
from agent.control.guard.marks import GLOBS, Stream, has_mark, visible
from agent.control.guard.state import State


_not_glob = Expression(f"[^{GLOBS}\x00-\ud7ff\uf900-\U0010ffff]")
_SIGNAL = Expression(
    r"-(?:SIG)?(?:HUP|INT|QUIT|ILL|TRAP|ABRT|BUS|FPE|KILL|USR[12]|SEGV|PIPE|ALRM|TERM|STKFLT|CHLD|CONT|STOP|TSTP|TTIN|TTOU|WINCH|\d+)\Z"
)


class Reach(enum.IntEnum):
    """What a command inside a container can reach."""

    HOST = 0
    CONTAINER = 1
    CONTAINER_WITH_HOST = 2


class Where(NamedTuple):
    """Where and as whom a command runs.

    Attributes:
        label: words that set its place apart for grants: ``sudo``, ``ssh web1``, ``docker web``.
        reach: whether it is confined to a container.
        mounts: host paths behind container paths.
        fed: its operands come from another program (xargs, find).
    """

    label: str = ""
    reach: Reach = Reach.HOST
    mounts: tuple[tuple[str, str], ...] = ()
    fed: bool = False

    def at(self, label: str) -> Where:
        """The same inside one more wrapper."""
        return self._replace(label=f"{self.label} {label}".strip())


HERE = Where()


class Redirect(NamedTuple):
    """One redirection.

    Attributes:
        operator: ``>``, ``>>``, ``<``, ``&>`` ...
        path: resolved target; empty for a here-document, a here-string or a descriptor.
        descriptor: the number before the operator, or the empty string.
    """

    operator: str
    path: str
    descriptor: str = ""

    @property
    def writes(self) -> bool:
        return bool(self.path) and ">" in self.operator


class Command:
    """A simple command after expansion.

    Attributes:
        name: base name of the program in lower case.
        argv: fields, marks for gaps in them; the first is the program.
        assigns: variables set for this command alone.
        stdin: what it would read.
        piped: whether its standard input was given (pipe, file or here-document).
        segment: the text as written.
    """

    __slots__ = ("_options", "_text", "argv", "assigns", "name", "operands", "piped", "redirects", "segment", "spec", "state", "stdin", "where")

    def __init__(
        self,
        argv: list[str],
        state: State,
        *,
        segment: str,
        stdin: Stream,
        piped: bool = False,
        assigns: dict[str, str] | None = None,
        redirects: tuple[Redirect, ...] = (),
        where: Where = HERE,
    ) -> None:
        self.argv = argv
        self.state = state
        self.segment = segment
        self.stdin = stdin
        self.piped = piped
        self.assigns = assigns or {}
        self.redirects = redirects
        self.where = where
        self.name = base_name(argv[0]) if argv else ""
        self.spec = programs.spec_of(self.name)
        self._options: list[tuple[str, str | None]] | None = None
        self._text: str | None = None
        self.operands: list[str] = []
        if argv:
            self._options, self.operands = parse_options(self._arguments(), self.spec, self.name)

    def _arguments(self) -> list[str]:
        """The arguments; options in lower case where the program's name was not (the base set ignores case)."""
        arguments = self.argv[1:]
        if self.argv[0] != self.argv[0].lower() and "/" not in self.argv[0]:
            return [one.lower() if one.startswith("-") else one for one in arguments]
        return arguments

    @property
    def options(self) -> list[tuple[str, str | None]]:
        """Every option with its value, in order."""
        return self._options or []

    def has(self, *names: str) -> bool:
        """Whether one of these options is given; a long one also shortened, as getopt allows."""
        for given, _ in self._options or ():
            if given in names:
                return True
            if len(given) > 3 and given.startswith("--") and any(name.startswith(given) for name in names):
                return True
        return False

    def values(self, *names: str) -> list[str]:
        """The values of these options."""
        return [value for given, value in self._options or () if given in names and value is not None]

    def value(self, *names: str) -> str | None:
        """The last value of these options."""
        found = self.values(*names)
        return found[-1] if found else None

    @property
    def inert(self) -> bool:
        """Whether a switch makes it print help or only say what it would do."""
        for given, value in self._options or ():
            if given in programs.ALWAYS_INERT or given in self._inert_options():
                return True
            if given in programs.DRY_RUN and value not in ("none", "false"):
                return True
        return False

    def _inert_options(self) -> frozenset[str]:
        if self.spec.verbs and self.operands:
            return self.spec.inert | programs.VERBS.get(self.name, {}).get(self.operands[0], programs.PLAIN).inert
        return self.spec.inert

    @property
    def only_talks(self) -> bool:
        """Whether it asks the program for its help or version."""
        return any(given in programs.ALWAYS_INERT for given, _ in self._options or ())

    def text(self) -> str:
        """The command on one line, for people."""
        if self._text is None:
            self._text = visible(" ".join(self.argv))
        return self._text

    @property
    def resolved(self) -> bool:
        """Whether every field is known and literal, globs aside."""
        return not any(has_mark(one) and _not_glob.search(one) for one in self.argv)


def base_name(word: str) -> str:
    """The program's name without folder and ending, lower case."""
    name = word.rsplit("/", 1)[-1].rsplit("\\", 1)[-1].lower()
    return name[:-4] if name.endswith(".exe") else name


def parse_options(arguments: list[str], spec: programs.Spec, program: str = "") -> tuple[list[tuple[str, str | None]], list[str]]:
    """Split arguments into options with their values, and operands."""
    options: list[tuple[str, str | None]] = []
    operands: list[str] = []
    index, count = 0, len(arguments)
    verb: str | None = None if spec.verbs else ""
    while index < count:
        word = arguments[index]
        index += 1
        if word == "--":
            operands += arguments[index:]
            break
        if len(word) < 2 or word[0] != "-":
            operands.append(word)
            if verb is None:
                verb = word
                spec = programs.VERBS.get(program, {}).get(word, programs.PLAIN)
                continue
            if spec.stops:
                operands += arguments[index:]
                break
        elif spec.signals and _SIGNAL.match(word):
            options.append((word, None))
        elif word[1] == "-" or spec.long_dash:
            name, equals, value = word.partition("=")
            if not equals and (name in spec.values or (spec.long_dash and f"-{name}" in spec.values)) and index < count:
                options.append((name, arguments[index]))
                index += 1
            else:
                options.append((name, value if equals else None))
        else:
            index += _cluster(word, arguments, index, spec, options)
    return options, operands


def _cluster(word: str, arguments: list[str], index: int, spec: programs.Spec, options: list[tuple[str, str | None]]) -> int:
    """Split ``-rf`` into its options; the number of further words taken as a value."""
    for at in range(1, len(word)):
        name = f"-{word[at]}"
        if name in spec.values:
            rest = word[at + 1 :]
            if rest:
                options.append((name, rest))
                return 0
            if index < len(arguments):
                options.append((name, arguments[index]))
                return 1
        options.append((name, None))
    return 0
