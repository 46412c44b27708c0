"""What programs print that list processes, names and places."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent.control.guard.command import Command
from agent.control.guard.contents import file_content
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import (
    ENVIRON,
    LOCAL,
    OF_GATEWAY,
    PIDS,
    UNKNOWN,
    Stream,
    has_gap,
    literal,
)

#: Patterns that could take for ever: a repeated group with a repetition or a choice in it.
_COSTLY = Expression(r"\)[*+{?]|[*+}?][*+{]")


def names_gateway(pattern: str, command: Command, *, whole: bool = False) -> bool:
    """Whether a pattern over process names takes in the gateway because of its name."""
    name = command.state.assume.gateway_name
    if not pattern or has_gap(pattern) or len(pattern) > 256:
        return False
    if whole:
        return pattern == name
    if _COSTLY.search(pattern) or sum(pattern.count(char) for char in "*+{") > 6:
        return name in pattern
    try:
        expression = re.compile(literal(pattern), re.IGNORECASE)
    except re.error:
        return name in pattern
    decoy = "x" * len(name)
    lines = [
        line.format(name)
        for line in ("{0}", "{0} run", "/usr/bin/{0} run", "python3 -m {0} run", "python -m gateway.{0}")
    ]
    decoys = [
        line.format(decoy)
        for line in ("{0}", "{0} run", "/usr/bin/{0} run", "python3 -m {0} run", "python -m gateway.{0}")
    ]
    return any(
        expression.search(line) and not expression.search(other) for line, other in zip(lines, decoys, strict=True)
    )


def _ps(command: Command) -> Stream:
    user = command.value("-u", "-U", "--user")
    return Stream(None, frozenset((LOCAL, PIDS)) if user in (None, command.state.assume.user) else frozenset((LOCAL,)))


def _pgrep(command: Command) -> Stream:
    if any(names_gateway(one, command) for one in command.operands):
        return Stream(None, frozenset((OF_GATEWAY,)))
    if (
        command.value("-F", "--pidfile")
        and command.state.resolve(command.value("-F", "--pidfile") or "") == command.state.assume.gateway_pid_file
    ):
        return Stream(None, frozenset((OF_GATEWAY,)))
    everyone = command.value("-u", "-U", "--euid", "--uid") == command.state.assume.user and not command.operands
    return Stream(None, frozenset((PIDS,) if everyone or command.operands in (["."], [".*"]) else (LOCAL,)))


def _pidof(command: Command) -> Stream:
    gateway = any(names_gateway(one, command, whole=True) for one in command.operands)
    return Stream(None, frozenset((OF_GATEWAY if gateway else LOCAL,)))


def _grep(command: Command) -> Stream:
    patterns = command.values("-e", "--regexp") or command.operands[:1]
    files = command.operands if command.values("-e", "--regexp") else command.operands[1:]
    source = file_content(command.state.resolve(files[0]), command.state) if files else command.stdin
    traits = source.traits
    if PIDS in traits:
        inverse = command.has("-v", "--invert-match")
        if not inverse:
            traits = traits - {PIDS}
            if any(names_gateway(one, command) for one in patterns):
                traits |= {OF_GATEWAY}
    return Stream(None, traits | {LOCAL})


def _awk(command: Command) -> Stream:
    program = command.operands[0] if command.operands else ""
    traits = command.stdin.traits
    match = re.match(r"\s*/((?:[^/\\]|\\.)*)/", program)
    if PIDS in traits and match:
        traits = traits - {PIDS}
        if names_gateway(match[1], command):
            traits |= {OF_GATEWAY}
    return Stream(None, traits | {LOCAL})


def _systemctl(command: Command) -> Stream:
    unit = command.state.assume.gateway_name
    if command.operands[:1] == ["show"] and any(one in (unit, f"{unit}.service") for one in command.operands[1:]):
        return Stream(None, frozenset((OF_GATEWAY,)))
    return Stream(None, frozenset((LOCAL,)))


def _which(command: Command) -> Stream:
    words = command.operands[-1:] if command.operands else []
    return Stream(f"/usr/bin/{words[0]}\n") if words and not has_gap(words[0]) else Stream(UNKNOWN)


def _whoami(command: Command) -> Stream:
    if command.name == "id" and not command.has("-n", "-un", "--name"):
        return Stream(UNKNOWN)
    return Stream(f"{command.state.assume.user}\n")


def _pwd(command: Command) -> Stream:
    return Stream(f"{command.state.cwd}\n")


def _dirname(command: Command) -> Stream:
    if not command.operands or has_gap(command.operands[0]):
        return Stream(UNKNOWN)
    word = command.operands[0].rstrip("/")
    head, _, tail = word.rpartition("/")
    return Stream(f"{(head or ('/' if word.startswith('/') else '.')) if command.name == 'dirname' else tail}\n")


def _realpath(command: Command) -> Stream:
    words = command.operands[-1:]
    return Stream(f"{command.state.resolve(words[0])}\n") if words else Stream(UNKNOWN)


def _mktemp(command: Command) -> Stream:
    del command
    return Stream(f"/tmp/tmp.{UNKNOWN}\n")  # noqa: S108 - a name, never opened


def _seq(command: Command) -> Stream:
    numbers = [int(one) for one in command.operands if re.fullmatch(r"-?\d{1,4}", one)]
    if len(numbers) != len(command.operands) or not 1 <= len(numbers) <= 2 or command.options:
        return Stream(UNKNOWN)
    first, last = (1, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    return Stream("".join(f"{number}\n" for number in range(first, last + 1))) if last - first < 64 else Stream(UNKNOWN)


def _environ(command: Command) -> Stream:
    if command.name == "printenv" and command.operands:
        value = command.state.lookup(command.operands[0])
        return Stream(f"{value}\n" if isinstance(value, str) else None)
    return Stream(None, frozenset((LOCAL, ENVIRON)))


OUTPUTS: dict[str, Callable[[Command], Stream]] = {
    "ps": _ps,
    "pgrep": _pgrep,
    "pidof": _pidof,
    "grep": _grep,
    "egrep": _grep,
    "fgrep": _grep,
    "awk": _awk,
    "gawk": _awk,
    "systemctl": _systemctl,
    "which": _which,
    "whoami": _whoami,
    "id": _whoami,
    "pwd": _pwd,
    "dirname": _dirname,
    "basename": _dirname,
    "realpath": _realpath,
    "readlink": _realpath,
    "mktemp": _mktemp,
    "seq": _seq,
    "env": _environ,
    "printenv": _environ,
}
