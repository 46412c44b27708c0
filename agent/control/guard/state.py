"""What a shell would know while it runs a command: variables, directory, functions, and files written so far."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.control.guard import paths
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import EMPTY, GATEWAY, JOB, SECRET, UNKNOWN, Stream
from agent.control.guard.verdict import Assumptions

if TYPE_CHECKING:
    import tree_sitter

    from agent.control.guard.parse import Unit

#: A variable's value: text, the elements of an array, or what it may be after branches.
Value = str | list[str] | tuple[str, ...]

_SECRET_NAME = Expression(
    r"(?:^|_)(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?|AUTH_?KEY"
    r"|PGPASSWORD"
    r"|MYSQL_PWD)(?:_|$)|SECRET_ACCESS_KEY|(?:^|_)PAT$",
    re.IGNORECASE,
)


@dataclass(slots=True)
class World:
    """What outlives a subshell: files, links and names made in this command."""

    files: dict[str, Stream] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    hashed: dict[str, str] = field(default_factory=dict)
    channels: list[Stream] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """One shell's view; :meth:`copy` makes that of a subshell."""

    assume: Assumptions
    world: World
    cwd: str
    variables: dict[str, Value] = field(default_factory=dict)
    positional: list[str] | None = None
    functions: dict[str, tuple[Unit, tree_sitter.Node]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    stdin: Stream = EMPTY
    pick: int = 0
    choices: int = 1

    @classmethod
    def initial(cls, assume: Assumptions) -> State:
        """The state in which a command starts."""
        return cls(assume, World(), paths.normal(assume.workdir))

    def copy(self) -> State:
        """A subshell's state: the same world, its own variables."""
        return State(
            self.assume,
            self.world,
            self.cwd,
            dict(self.variables),
            self.positional,
            dict(self.functions),
            dict(self.aliases),
            set(self.exported),
            self.stdin,
            self.pick,
            self.choices,
        )

    def resolve(self, word: str) -> str:
        """The absolute, normalised path that a word names here, links of this command followed."""
        return paths.through_links(paths.join(self.cwd, word), self.world.links)

    def lookup(self, name: str) -> Value:
        """A variable's value, or a mark for what is not known."""
        value = self.variables.get(name)
        if value is None:
            return self._inherited(name)
        if isinstance(value, tuple):
            self.choices = max(self.choices, len(value))
            return value[self.pick % len(value)]
        return value

    def is_set(self, name: str) -> bool | None:
        """Whether a variable has a value that is not empty; None when the text does not tell."""
        value = self.lookup(name)
        if isinstance(value, list):
            return bool(value)
        if value in (UNKNOWN, SECRET):
            return None
        return bool(value)

    def _inherited(self, name: str) -> Value:
        assume = self.assume
        pid = assume.gateway_pid_variable
        if name in ("PPID", pid):
            return GATEWAY
        known = {
            "HOME": assume.home,
            "USER": assume.user,
            "LOGNAME": assume.user,
            "PWD": self.cwd,
            "SHELL": "/bin/bash",
            "BASH": "/bin/bash",
            "IFS": " \t\n",
            f"{pid.removesuffix('_PID')}_HOME": assume.gateway_home,
        }.get(name)
        if known is not None:
            return known
        if name in ("!", "$", "BASHPID"):
            return JOB
        if name in ("0",):
            return "bash"
        return SECRET if _SECRET_NAME.search(name) else UNKNOWN

    def assign(self, name: str, value: Value, *, append: bool = False) -> None:
        """Set a variable; ``append`` is ``+=``."""
        if append:
            before = self.variables.get(name, "")
            if isinstance(before, list):
                value = before + (value if isinstance(value, list) else [str(value)])
            elif isinstance(before, str) and isinstance(value, str):
                value = before + value
        self.variables[name] = value

    def merge(self, branches: list[State]) -> None:
        """Become what holds after one of several branches ran; which one is not known."""
        names = {name for branch in branches for name in branch.variables}
        for name in names:
            values: dict[str, None] = {}
            for branch in branches:
                value = branch.variables.get(name)
                if isinstance(value, tuple):
                    values.update(dict.fromkeys(value))
                elif isinstance(value, str):
                    values[value] = None
                elif value is not None:
                    self.variables[name] = value
            if len(values) > 1:
                self.variables[name] = tuple(list(values)[:8])
            elif values:
                self.variables[name] = next(iter(values))
        for branch in branches:
            self.functions.update(branch.functions)
            self.aliases.update(branch.aliases)
            self.exported |= branch.exported
            if branch.cwd != self.cwd:
                self.cwd = branch.cwd
                break
