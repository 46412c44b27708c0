"""Programs that start another one for what they find or read: xargs, parallel, find, fd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.control.guard import find, shells, wrappers
from agent.control.guard.command import Command, parse_options
from agent.control.guard.contents import file_content
from agent.control.guard.marks import (
    EMPTY,
    OUTPUT,
    UNKNOWN,
    Stream,
    has_mark,
)

if TYPE_CHECKING:
    from agent.control.guard.evaluate import Evaluator


def _items(command: Command, *, lines: bool) -> list[str]:
    """What xargs reads, as far as it is known; a gap where it is not."""
    stream = command.stdin
    file = command.value("-a", "--arg-file")
    if file:
        stream = file_content(command.state.resolve(file), command.state)
    if stream.text is None:
        return [stream.value() if stream.traits else OUTPUT]
    text = stream.text
    items = text.splitlines() if lines else text.replace("\0", "\n").split()
    return items[:128] or []


def xargs(command: Command, evaluator: Evaluator) -> Stream | None:
    """``xargs``: the items become operands where they are known."""
    if command.only_talks:
        return EMPTY
    argv = list(command.operands) or ["echo"]
    replace = command.value("-I", "--replace-str", "-i", "--replace")
    items = _items(command, lines=replace is not None or command.has("-d", "--delimiter", "-0", "--null", "-L"))
    where = command.where._replace(fed=True)
    if replace is None:
        return evaluator.argv([*argv, *items], command, where, EMPTY)
    out = EMPTY
    for item in items[:16]:
        out = out.plus(evaluator.argv([word.replace(replace, item) for word in argv], command, where, EMPTY))
    return out


def parallel(command: Command, evaluator: Evaluator) -> Stream | None:
    """GNU ``parallel``."""
    words = command.argv[1:]
    items: list[str] = []
    for marker in (":::", ":::+"):
        if marker in words:
            at = words.index(marker)
            items = [one for one in words[at + 1 :] if not one.startswith(":::")]
            words = words[:at]
    _, argv = parse_options(
        words,
        wrappers.WRAPPERS["timeout"].spec._replace(
            values=frozenset(
                (
                    "-j",
                    "--jobs",
                    "-S",
                    "--sshlogin",
                    "-a",
                    "--arg-file",
                    "--colsep",
                    "-d",
                    "--results",
                    "--joblog",
                    "--delay",
                    "--timeout",
                    "--retries",
                    "-N",
                    "-n",
                    "-I",
                )
            )
        ),
    )
    items = items or ([command.stdin.value()] if command.piped else [])
    where = command.where._replace(fed=True)
    texts = [" ".join(argv)] if argv else []
    if not texts:
        for item in items:
            shells.run_text(item, command, evaluator, where)
        return EMPTY
    text = texts[0]
    for item in items[:16] or [UNKNOWN]:
        filled = text.replace("{}", item) if "{}" in text else f"{text} {item}"
        shells.run_text(filled, command, evaluator, where)
    return EMPTY


def searched(command: Command, evaluator: Evaluator) -> Stream:
    """``find``: the commands of ``-exec`` and its like."""
    search = find.read(command)
    where = command.where._replace(fed=True)
    for argv in search.runs:
        filled: list[str] = []
        for word in argv:
            if word == "{}":
                filled += search.targets()
            elif "{}" in word:
                filled.append(word.replace("{}", search.targets()[0]))
            else:
                filled.append(word)
        if filled:
            evaluator.argv(filled, command, where, EMPTY)
    text = None if any(has_mark(one) for one in search.starts) else OUTPUT
    return Stream(text)


def fd(command: Command, evaluator: Evaluator) -> Stream | None:
    """``fd`` with ``--exec``."""
    words = command.argv[1:]
    for flag in ("-x", "--exec", "-X", "--exec-batch"):
        if flag in words:
            argv = [word.replace("{}", OUTPUT) for word in words[words.index(flag) + 1 :] if word != ";"]
            if not any(OUTPUT in word for word in argv):
                argv.append(OUTPUT)
            return evaluator.argv(argv, command, command.where._replace(fed=True), EMPTY)
    return None


def busybox(command: Command, evaluator: Evaluator) -> Stream | None:
    """``busybox`` and ``toybox``: the applet is the program."""
    return (
        evaluator.argv(command.argv[1:], command)
        if len(command.argv) > 1 and not command.argv[1].startswith("-")
        else EMPTY
    )
