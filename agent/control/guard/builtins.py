"""Builtins and file programs that change what later commands see."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.control.guard.expressions import Expression
from agent.control.guard.command import Command
from agent.control.guard.marks import EMPTY, UNKNOWN, Stream, has_mark
from agent.control.guard.streams import file_content

if TYPE_CHECKING:
    from agent.control.guard.evaluate import Evaluator

_ASSIGN = Expression(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)


def run(command: Command, evaluator: Evaluator) -> Stream | None:
    """Apply a builtin to its state; None for programs that are none."""
    del evaluator
    builtin = _BUILTINS.get(command.name)
    return builtin(command) if builtin else None


def _cd(command: Command) -> Stream:
    state = command.state
    words = [one for one in command.argv[1:] if one not in ("-L", "-P", "-e", "-@", "-n", "--")]
    if command.name == "popd":
        state.cwd = state.assume.workdir
        return EMPTY
    if not words:
        home = state.lookup("HOME")
        state.cwd = state.resolve(home if isinstance(home, str) else UNKNOWN) if command.name == "cd" else UNKNOWN
        return EMPTY
    if words[0] == "-":
        before = state.variables.get("OLDPWD")
        target = before if isinstance(before, str) else state.assume.workdir
    else:
        target = words[0]
    state.variables["OLDPWD"], state.cwd = state.cwd, state.resolve(target)
    return EMPTY


def _declare(command: Command) -> Stream:
    state = command.state
    exports = command.name == "export" or (command.name in ("declare", "typeset", "readonly") and command.has("-x"))
    for word in command.operands:
        match = _ASSIGN.match(word)
        name = match[1] if match else word
        if match:
            state.assign(name, match[3], append=bool(match[2]))
        if exports:
            state.exported.add(name)
    return EMPTY


def _unset(command: Command) -> Stream:
    for name in command.operands:
        command.state.variables[name] = ""
        command.state.functions.pop(name, None)
    return EMPTY


def _alias(command: Command) -> Stream:
    for word in command.argv[1:]:
        name, equals, value = word.partition("=")
        if equals:
            command.state.aliases[name] = value
    return EMPTY


def _set(command: Command) -> Stream:
    words = command.argv[1:]
    if "--" in words:
        command.state.positional = words[words.index("--") + 1 :]
    elif words and not words[0].startswith(("-", "+")):
        command.state.positional = words
    return EMPTY


def _shift(command: Command) -> Stream:
    count = int(command.operands[0]) if command.operands and command.operands[0].isdigit() else 1
    if command.state.positional is not None:
        command.state.positional = command.state.positional[count:]
    return EMPTY


def _read(command: Command) -> Stream:
    state = command.state
    skip = {"-a", "-d", "-i", "-n", "-N", "-p", "-t", "-u"}
    names: list[str] = []
    words = command.argv[1:]
    index = 0
    while index < len(words):
        if words[index] in skip and words[index] != "-a":
            index += 1
        elif not words[index].startswith("-"):
            names.append(words[index])
        index += 1
    names = names or ["REPLY"]
    line = command.stdin.text.split("\n", 1)[0] if command.stdin.text else None
    if line is None:
        for name in names:
            state.assign(name, command.stdin.value() if command.stdin.traits else UNKNOWN)
        return EMPTY
    parts = line.split(None, len(names) - 1)
    for index, name in enumerate(names):
        state.assign(name, parts[index].rstrip() if index < len(parts) else "")
    return EMPTY


def _mapfile(command: Command) -> Stream:
    name = command.operands[-1] if command.operands else "MAPFILE"
    text = command.stdin.text
    command.state.assign(name, text.splitlines()[:256] if text is not None else UNKNOWN)
    return EMPTY


def _printf(command: Command) -> Stream | None:
    if command.argv[1:2] != ["-v"] or len(command.argv) < 4:
        return None
    from agent.control.guard.streams import output

    inner = Command(["printf", *command.argv[3:]], command.state, segment=command.segment, stdin=command.stdin)
    command.state.assign(command.argv[2], output(inner).value())
    return EMPTY


def _hash(command: Command) -> Stream:
    words = command.argv[1:]
    if words[:1] == ["-p"] and len(words) > 2:
        command.state.world.hashed[words[2]] = words[1]
    return EMPTY


def _ln(command: Command) -> Stream:
    state = command.state
    if len(command.operands) >= 1 and not command.inert and command.has("-s", "--symbolic"):
        source = command.operands[0]
        name = command.operands[-1] if len(command.operands) > 1 else source.rstrip("/").rsplit("/", 1)[-1]
        link, target = state.resolve(name), state.resolve(source)
        if not has_mark(link) and link != target and not target.startswith(f"{link}/"):
            state.world.links[link] = target
    return EMPTY


def _copy(command: Command) -> Stream:
    state = command.state
    if len(command.operands) == 2:
        source, target = (state.resolve(one) for one in command.operands)
        known = command.stdin if source == "/dev/stdin" else state.world.files.get(source)
        if known is not None and not has_mark(target):
            state.world.files[target] = known
    return EMPTY


def _dd(command: Command) -> Stream | None:
    state = command.state
    given = dict(one.split("=", 1) for one in command.operands if "=" in one)
    source = file_content(state.resolve(given["if"]), state) if "if" in given else command.stdin
    if "of" not in given:
        return source
    path = state.resolve(given["of"])
    if not has_mark(path):
        state.world.files[path] = source
    return EMPTY


_BUILTINS: dict[str, Callable[[Command], Stream | None]] = {
    "cd": _cd,
    "pushd": _cd,
    "popd": _cd,
    "chdir": _cd,
    "export": _declare,
    "declare": _declare,
    "typeset": _declare,
    "local": _declare,
    "readonly": _declare,
    "unset": _unset,
    "alias": _alias,
    "set": _set,
    "shift": _shift,
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "printf": _printf,
    "hash": _hash,
    "ln": _ln,
    "cp": _copy,
    "mv": _copy,
    "install": _copy,
    "dd": _dd,
}
