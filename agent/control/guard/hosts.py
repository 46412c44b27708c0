"""Commands that start others on another host, in another terminal, or from a program with its own language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.control.guard import code, shells
from agent.control.guard.command import Command
from agent.control.guard.contents import file_content
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import EMPTY, Stream, visible

if TYPE_CHECKING:
    from agent.control.guard.evaluate import Evaluator

_CRON_LINE = Expression(r"\s*(?:@\w+|(?:[\w*/,-]+\s+){5})\s*(.+)")


def _remote(command: Command) -> Command:
    """The same command seen from the home directory of the other host."""
    state = command.state.copy()
    home = state.lookup("HOME")
    state.cwd = home if isinstance(home, str) else state.cwd
    state.functions, state.aliases = {}, {}
    return Command(
        command.argv, state, segment=command.segment, stdin=command.stdin, piped=command.piped, where=command.where
    )


def ssh(command: Command, evaluator: Evaluator) -> Stream | None:
    """``ssh HOST COMMAND``: the words are joined and read by the other side's shell."""
    code.option_payloads(command, evaluator)
    if not command.operands:
        return None
    host, words = command.operands[0], command.operands[1:]
    where = command.where.at(f"ssh {visible(host)}")
    if words[:1] == ["--"]:
        words = words[1:]
    remote = _remote(command)
    if words:
        return shells.run_text(" ".join(words), remote, evaluator, where)
    if command.piped and not command.has("-N", "-T", "-G", "-V"):
        return shells.run_stream(command.stdin, remote, evaluator, where)
    return None


def tmux(command: Command, evaluator: Evaluator) -> Stream | None:
    """Commands and keys given to a terminal multiplexer."""
    if not command.operands:
        return None
    verb, words = command.operands[0], command.operands[1:]
    options: list[str] = []
    while words and words[0].startswith("-"):
        takes = words[0][-1] in "tscnFxyebp"
        options += words[:1]
        words = words[2:] if takes else words[1:]
    if verb in ("send-keys", "send"):
        typed = [one for one in words if one not in ("Enter", "C-m", "KPEnter", "C-c", "Escape")]
        return shells.run_text(" ".join(typed), command, evaluator) if typed else EMPTY
    if verb in (
        "new",
        "new-session",
        "neww",
        "new-window",
        "splitw",
        "split-window",
        "respawn-pane",
        "run",
        "run-shell",
        "if-shell",
        "pipe-pane",
        "popup",
        "display-popup",
    ):
        if len(words) == 1:
            return shells.run_text(words[0], command, evaluator)
        return evaluator.argv(words, command) if words else EMPTY
    return None


def screen(command: Command, evaluator: Evaluator) -> Stream | None:
    """``screen`` with a command, or text stuffed into a window."""
    words = command.operands
    if command.has("-X"):
        if "stuff" in command.argv:
            typed = command.argv[command.argv.index("stuff") + 1 :]
            return shells.run_text(" ".join(typed).replace("^M", "").replace("\\n", ""), command, evaluator)
        return None
    return evaluator.argv(words, command) if words else None


def git(command: Command, evaluator: Evaluator) -> Stream | None:
    """Commands inside git's own: ``rebase --exec``, ``bisect run``, ``submodule foreach``, aliases with ``-c``."""
    code.option_payloads(command, evaluator)
    verb = command.operands[0] if command.operands else ""
    rest = command.operands[1:]
    for text in command.values("-c"):
        name, _, value = text.partition("=")
        if name.lower().startswith("alias.") and value.startswith("!"):
            shells.run_text(value[1:], command, evaluator)
    if verb == "rebase":
        for text in command.values("-x", "--exec"):
            shells.run_text(text, command, evaluator)
    elif verb == "bisect" and rest[:1] == ["run"]:
        evaluator.argv(command.argv[command.argv.index("run") + 1 :], command)
    elif verb == "submodule" and rest[:1] == ["foreach"]:
        words = [
            one
            for one in command.argv[command.argv.index("foreach") + 1 :]
            if one not in ("--recursive", "--quiet", "-q")
        ]
        shells.run_text(" ".join(words), command, evaluator)
    return None


def make(command: Command, evaluator: Evaluator) -> Stream | None:
    """Recipes of a makefile that stands in the command."""
    if command.inert:
        return None
    for file in command.values("-f", "--file", "--makefile"):
        source = (
            command.stdin if file in ("-", "/dev/stdin") else file_content(command.state.resolve(file), command.state)
        )
        if source.text:
            for line in source.text.splitlines():
                if line.startswith("\t") or ";" in line:
                    shells.run_text(line.split(";", 1)[-1].lstrip("\t@-+ "), command, evaluator)
    for text in command.values("--eval"):
        shells.run_text(text.split(";", 1)[-1], command, evaluator)
    return None


def ansible(command: Command, evaluator: Evaluator) -> Stream | None:
    """Shell text given to ansible's shell and command modules."""
    if (
        command.name == "ansible"
        and not command.inert
        and command.value("-m", "--module-name") in (None, "shell", "command", "raw")
    ):
        text = command.value("-a", "--args")
        if text:
            host = command.operands[0] if command.operands else "all"
            shells.run_text(text, _remote(command), evaluator, command.where.at(f"ansible {visible(host)}"))
    return None


def crontab(command: Command, evaluator: Evaluator) -> Stream | None:
    """Jobs of a table read from standard input."""
    if command.piped and not command.has("-l", "-r", "-e") and command.stdin.text:
        for line in command.stdin.text.splitlines():
            match = _CRON_LINE.match(line)
            if match and not line.lstrip().startswith("#"):
                shells.run_text(match[1], command, evaluator)
    return None
