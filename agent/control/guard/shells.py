"""Shells: text that they read from an argument, a pipe or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.control.guard import interpreters
from agent.control.guard.command import Command, Where
from agent.control.guard.contents import file_content
from agent.control.guard.exceptions import OverLimit, Unreadable
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import (
    DECODED,
    EMPTY,
    FETCHED,
    NOTHING_KNOWN,
    OUTPUT,
    REMOTE,
    SETTINGS,
    TRUSTED,
    UNKNOWN,
    Stream,
    has_gap,
    has_mark,
    literal,
)
from agent.control.guard.paths import below, is_channel, normal

if TYPE_CHECKING:
    from agent.control.guard.evaluate import Evaluator

_SHEBANG = Expression(r"#!\s*(?:/\S*/)?(?:env\s+(?:-S\s+)?)?(\S+)")


def run_text(
    text: str,
    command: Command,
    evaluator: Evaluator,
    where: Where | None = None,
    positional: list[str] | None = None,
    *,
    here: bool = False,
) -> Stream:
    """Evaluate text that a shell would read. ``here``: in the same shell (``eval``)."""
    text = literal(text)
    if not text.strip():
        return EMPTY
    if REMOTE in text:
        evaluator.judge.fact("remote.shell", command)
    if SETTINGS in text:
        return EMPTY
    if text.strip(f"{UNKNOWN}{OUTPUT} \n;") == "":
        evaluator.judge.fact("unreadable.text", command)
        return NOTHING_KNOWN
    state = command.state if here else command.state.copy()
    if not here:
        state.positional = positional if positional is not None else state.positional
        state.stdin = command.stdin
        for name, value in command.assigns.items():
            state.assign(name, value)
    try:
        return evaluator.text(text, state, where or command.where)
    except OverLimit:
        raise
    except Unreadable:
        evaluator.judge.fact("unreadable.syntax", command, text)
        return NOTHING_KNOWN


def run_stream(
    stream: Stream, command: Command, evaluator: Evaluator, where: Where | None = None, *, here: bool = False
) -> Stream:
    """Evaluate what flows into a shell."""
    if FETCHED in stream.traits:
        evaluator.judge.fact("remote.shell", command)
    if TRUSTED in stream.traits:
        return EMPTY
    if DECODED in stream.traits:
        evaluator.judge.fact("unreadable.decoded", command, stream.text or "")
    if stream.text is None:
        if not stream.traits & {FETCHED, DECODED}:
            evaluator.judge.fact("unreadable.text", command)
        return NOTHING_KNOWN
    before, command.stdin = command.stdin, EMPTY
    out = run_text(stream.text, command, evaluator, where, here=here)
    command.stdin = before
    return out


def run_file(  # noqa: PLR0911 - one way out a case
    word: str, arguments: list[str], command: Command, evaluator: Evaluator, *, language: str = "", here: bool = False
) -> Stream:
    """Evaluate a file that is run as a program or script, if this command made it; note workspace files."""
    state = command.state
    path = state.resolve(word)
    stdin = path in ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0")
    if stdin or is_channel(path):
        stream = command.stdin if stdin else file_content(path, state)
        if language:
            return interpreters.program(stream, command, evaluator, language)
        return run_stream(stream, command, evaluator, here=here)
    if has_gap(path) or not path.startswith("/"):
        if word and has_gap(word.rsplit("/", 1)[-1]):
            evaluator.judge.fact("unreadable.script", command)
        return NOTHING_KNOWN
    known = state.world.files.get(path)
    if known is None:
        if below(path, normal(state.assume.workdir)) and not has_mark(path):
            evaluator.scripts[path] = None
        return NOTHING_KNOWN
    if FETCHED in known.traits:
        evaluator.judge.fact("remote.file", command)
    if known.text is None:
        if DECODED in known.traits:
            evaluator.judge.fact("unreadable.decoded", command)
        return NOTHING_KNOWN
    shebang = _SHEBANG.match(known.text)
    program = language or (shebang[1].rsplit("/", 1)[-1] if shebang else "")
    if program and interpreters.language_of(program):
        return interpreters.program(known, command, evaluator, interpreters.language_of(program) or program)
    if DECODED in known.traits:
        evaluator.judge.fact("unreadable.decoded", command, known.text)
    return run_text(known.text, command, evaluator, positional=arguments, here=here)


def shell(command: Command, evaluator: Evaluator) -> Stream | None:
    """``bash``, ``sh`` and their like."""
    words = command.argv[1:]
    text = reads = False
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            index += 1
            break
        if len(word) < 2 or word[0] not in "-+":
            break
        index += 1
        if word.startswith("--"):
            if word in ("--help", "--version"):
                return EMPTY
            index += word in ("--rcfile", "--init-file")
        else:
            if "n" in word and word[0] == "-":
                return EMPTY
            text = text or ("c" in word and word[0] == "-")
            reads = reads or ("s" in word and word[0] == "-")
            index += word[-1] in "oO"
    rest = words[index:]
    if text:
        if not rest:
            return EMPTY
        return run_text(rest[0], command, evaluator, positional=rest[2:] if rest[1:] else None)
    if rest and rest[0] != "-" and not reads:
        return run_file(rest[0], rest[1:], command, evaluator)
    return run_stream(command.stdin, command, evaluator) if command.piped else None


def evaluated(command: Command, evaluator: Evaluator) -> Stream:
    """``eval``: its words joined, in this shell."""
    text = " ".join(one for one in command.argv[1:] if one != "--")
    return run_text(text, command, evaluator, here=True)


def sourced(command: Command, evaluator: Evaluator) -> Stream:
    """``source`` and ``.``: a file, in this shell."""
    words = [one for one in command.argv[1:] if one != "--"]
    return run_file(words[0], words[1:], command, evaluator, here=True) if words else EMPTY


def trapped(command: Command, evaluator: Evaluator) -> Stream:
    """``trap``: text that runs later."""
    words = [one for one in command.argv[1:] if one != "--"]
    if len(words) > 1 and not words[0].startswith("-"):
        run_text(words[0], command, evaluator)
    return EMPTY


def deferred(command: Command, evaluator: Evaluator) -> Stream:
    """``at`` and ``batch``: the job comes from standard input or a file."""
    """``at`` and ``batch``: the job comes from standard input or a file."""
    file = command.value("-f")
    if file:
        return run_file(file, [], command, evaluator)
    if command.piped and not command.has("-l", "-r", "-d", "-c"):
        return run_stream(command.stdin, command, evaluator)
    return EMPTY
