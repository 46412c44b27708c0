"""Follow a command into what it starts: one function a family of wrappers, one table for the plain ones."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.control.guard import code, containers, feeders, hosts, interpreters, prepass, shells, wrappers
from agent.control.guard.command import Command, Where, parse_options
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import (
    EMPTY,
    NOTHING_KNOWN,
    REMOTE,
    SETTINGS,
    Stream,
    has_gap,
    has_glob,
    has_mark,
    literal,
)

if TYPE_CHECKING:
    from agent.control.guard.evaluate import Evaluator

Follower = Callable[[Command, "Evaluator"], "Stream | None"]

_ASSIGN = Expression(r"[A-Za-z_]\w*=")

#: Tools that yarn and pnpm run by their bare name.
_PACKAGE_TOOLS = frozenset(
    (
        "rimraf",
        "del-cli",
        "prisma",
        "sequelize",
        "sequelize-cli",
        "knex",
        "typeorm",
        "mikro-orm",
        "drizzle-kit",
        "serverless",
        "sls",
        "cdk",
        "wrangler",
        "firebase",
        "vercel",
        "lerna",
        "semantic-release",
    )
)
#: Programs that a glob in command position may mean; the harmful ones are enough.
_GLOBBED = (
    "rm",
    "dd",
    "mkfs",
    "chmod",
    "chown",
    "shred",
    "bash",
    "sh",
    "kill",
    "reboot",
    "shutdown",
    "nc",
    "python3",
    "perl",
    "find",
)


def follow(command: Command, evaluator: Evaluator) -> Stream | None:  # noqa: PLR0911 - one way out a case
    """Evaluate what a command starts; None when it starts nothing that its arguments name."""
    name = command.name
    if not command.argv:
        return None
    if has_mark(name):
        return _unknown(command, evaluator)
    follower = FOLLOWERS.get(name)
    if follower is not None:
        return follower(command, evaluator)
    if name in wrappers.SHELLS:
        return shells.shell(command, evaluator)
    language = interpreters.language_of(name)
    if language is not None:
        return interpreters.follow(command, evaluator, language)
    if name in wrappers.CONTAINERS:
        return containers.follow(command, evaluator)
    wrapper = wrappers.WRAPPERS.get(name)
    if wrapper is not None:
        return _wrapped(command, evaluator, wrapper)
    code.option_payloads(command, evaluator)
    if "/" in command.argv[0]:
        shells.run_file(command.argv[0], command.argv[1:], command, evaluator)
    return None


def _unknown(command: Command, evaluator: Evaluator) -> Stream:
    """A command word that is not fully known."""
    name = command.name
    if SETTINGS in name:
        return EMPTY
    if REMOTE in name:
        evaluator.judge.fact("remote.shell", command)
        return NOTHING_KNOWN
    if has_glob(name) and not has_gap(name):
        hits = [one for one in _GLOBBED if fnmatch.fnmatchcase(one, literal(name))]
        for one in hits:
            evaluator.argv([one, *command.argv[1:]], command)
    evaluator.judge.fact("unreadable.word", command)
    return NOTHING_KNOWN


# -- wrappers of the table ---------------------------------------------------------------------------------------------


def _wrapped(command: Command, evaluator: Evaluator, wrapper: wrappers.Wrapper) -> Stream | None:
    options, operands = parse_options(command.argv[1:], wrapper.spec)
    given = dict(options)
    if any(name in ("--help", "--version") for name in given):
        return EMPTY
    where = command.where.at(wrapper.label) if wrapper.label else command.where
    out: Stream | None = None
    for name, value in options:
        if name in wrapper.text_options and value:
            out = shells.run_text(value, command, evaluator, where)
    if wrapper.verbs:
        if operands and command.name in ("yarn", "pnpm") and operands[0] in _PACKAGE_TOOLS:
            return evaluator.argv(operands, command)
        if not operands or operands[0] not in wrapper.verbs:
            code.option_payloads(command, evaluator)
            return None
        _, operands = parse_options(operands[1:], wrapper.spec)
    if command.name in wrappers.TEXT_OPERANDS:
        for word in operands:
            out = shells.run_text(word, command, evaluator, where)
        return out or EMPTY
    operands = operands[wrapper.leading :] if wrapper.leading else operands
    if wrapper.leading and operands[:1] == ["--"]:
        operands = operands[1:]
    return _inner(command, evaluator, wrapper, options, operands, where) or out


def _inner(
    command: Command,
    evaluator: Evaluator,
    wrapper: wrappers.Wrapper,
    options: list[tuple[str, str | None]],
    operands: list[str],
    where: Where,
) -> Stream | None:
    assigns: dict[str, str] = {}
    while wrapper.assigns and operands and _ASSIGN.match(operands[0]):
        name, _, value = operands[0].partition("=")
        assigns[name] = value
        operands = operands[1:]
    if command.name == "env":
        split = next((value for name, value in options if name in ("-S", "--split-string")), None)
        if split:
            return shells.run_text(" ".join((split, *operands)), command, evaluator, where)
    if not operands:
        return None
    if (
        command.name in ("exec", "command")
        and command.name == "command"
        and command.argv[1:2]
        and re.fullmatch(r"-[pvV]*[vV][pvV]*", command.argv[1])
    ):
        return Stream(f"/usr/bin/{operands[0]}\n")
    if wrapper.kind is wrappers.Kind.TEXT and not command.has("-x", "--exec"):
        return shells.run_text(" ".join(operands), command, evaluator, where)
    argv = [_package_program(operands[0], command.name), *operands[1:]]
    state = command.state
    inner = Command(
        argv,
        state,
        segment=command.segment,
        stdin=command.stdin,
        piped=command.piped,
        assigns={**command.assigns, **assigns},
        where=where,
    )
    return evaluator.nested(inner)


def _package_program(word: str, wrapper: str) -> str:
    if wrapper in ("npx", "bunx", "pnpx", "pnpm", "yarn", "npm", "uvx", "pipx") and "@" in word[1:]:
        return word[0] + word[1:].split("@", 1)[0]
    return word


def _su(command: Command, evaluator: Evaluator) -> Stream | None:
    text = command.value("-c", "--command", "--session-command")
    if text:
        return shells.run_text(text, command, evaluator, command.where.at("sudo"))
    return shells.run_stream(command.stdin, command, evaluator, command.where.at("sudo")) if command.piped else None


def _flock(command: Command, evaluator: Evaluator) -> Stream | None:
    options, operands = parse_options(command.argv[1:], wrappers.WRAPPERS["timeout"].spec)
    if len(operands) > 1 and operands[1] in ("-c", "--command"):
        return shells.run_text(" ".join(operands[2:]), command, evaluator)
    del options
    return evaluator.argv(operands[1:], command) if len(operands) > 1 else None


def split_words(text: str) -> list[str]:
    """The words of an array literal, quotes kept."""
    words: list[str] = []
    position = 0
    while position < len(text):
        if text[position] in " \t\n":
            position += 1
            continue
        end = prepass.end_of_word(text, position)
        words.append(text[position:end])
        position = max(end, position + 1)
    return words


FOLLOWERS: dict[str, Follower] = {
    "eval": shells.evaluated,
    "source": shells.sourced,
    ".": shells.sourced,
    "trap": shells.trapped,
    "at": shells.deferred,
    "batch": shells.deferred,
    "su": _su,
    "flock": _flock,
    "xargs": feeders.xargs,
    "gxargs": feeders.xargs,
    "parallel": feeders.parallel,
    "find": feeders.searched,
    "gfind": feeders.searched,
    "fd": feeders.fd,
    "fdfind": feeders.fd,
    "busybox": feeders.busybox,
    "toybox": feeders.busybox,
    "ssh": hosts.ssh,
    "mosh": hosts.ssh,
    "tmux": hosts.tmux,
    "screen": hosts.screen,
    "git": hosts.git,
    "make": hosts.make,
    "gmake": hosts.make,
    "ansible": hosts.ansible,
    "crontab": hosts.crontab,
}
