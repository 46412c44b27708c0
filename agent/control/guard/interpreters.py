"""Interpreters: a program given inline, by a pipe, or as a file."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from agent.control.guard import code, shells
from agent.control.guard.command import Command
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import DECODED, EMPTY, FETCHED, NOTHING_KNOWN, REMOTE, Stream

if TYPE_CHECKING:
    from agent.control.guard.evaluate import Evaluator


class Language(NamedTuple):
    """How an interpreter takes its program.

    Attributes:
        inline: short option letters that carry a program.
        long: long options (and verbs) that carry one.
        values: short option letters that take a value.
        value_long: long options that take a value.
        checks: options with which it only checks or prints.
        module: the option that runs a library module.
        verbs: first words after which a file follows (``deno run``).
    """

    inline: str = ""
    long: tuple[str, ...] = ()
    values: str = ""
    value_long: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    module: str = ""
    verbs: tuple[str, ...] = ()


LANGUAGES: dict[str, Language] = {
    "python": Language("c", values="WXQ", checks=("-V", "--version", "-h", "--help"), module="m"),
    "perl": Language("eE", values="IMmFxC", checks=("-v", "-V", "-c", "--help", "-h")),
    "ruby": Language("e", values="IrEFC", value_long=("--encoding",), checks=("-v", "-c", "--version", "--help")),
    "node": Language(
        "ep",
        ("--eval", "--print"),
        "rC",
        ("--require", "--import", "--loader", "--env-file", "--conditions"),
        ("-v", "-c", "--check", "--version", "-h", "--help"),
    ),
    "bun": Language("ep", ("--eval", "--print"), "", (), ("-v", "--version", "--help"), verbs=("run", "x")),
    "deno": Language(
        "",
        ("eval",),
        "cL",
        ("--config", "--import-map", "--log-level"),
        ("-V", "--version", "--help", "-h"),
        verbs=("run",),
    ),
    "php": Language(
        "rBRE", ("--run",), "cdzft", (), ("-v", "-l", "-i", "-m", "--version", "--help", "-h", "--syntax-check")
    ),
    "lua": Language("e", values="l", checks=("-v",)),
    "rscript": Language("e", checks=("--version", "--help")),
    "r": Language("e", ("-e",), "f", ("--file",), ("--version", "--help")),
    "osascript": Language("e", values="ls"),
    "tclsh": Language(),
    "julia": Language("eEp", ("--eval", "--print"), "JLtHC", (), ("-v", "--version", "-h", "--help")),
    "elixir": Language("e", ("--eval", "--rpc-eval"), "rS", (), ("-v", "--version", "-h", "--help")),
    "erl": Language("", ("-eval",), "", ("-pa", "-sname"), ()),
    "groovy": Language("e", values="c", checks=("-v", "--version")),
    "scala": Language("e", ("-e",), "", (), ("-version", "--version")),
    "powershell": Language(
        "c",
        ("-command", "-encodedcommand", "-ec", "-enc", "-e", "--command"),
        "",
        ("-executionpolicy", "-ep", "-version", "-windowstyle", "-w"),
        ("-help", "-?"),
    ),
    "racket": Language("e", ("--eval",), "lr", (), ("--version", "--help")),
    "guile": Language("c", values="Ll", checks=("-v", "--version", "--help")),
    "sbcl": Language("", ("--eval",), "", ("--load",), ("--version", "--help")),
    "emacs": Language("", ("--eval", "-eval", "--execute"), "lf", ("--load", "--funcall"), ("--version", "--help")),
    "ghc": Language("e", checks=("--version", "--help")),
    "jshell": Language(),
    "clojure": Language("e", ("--eval",), "m", (), ("--help", "--version")),
    "swipl": Language("g", values="tl", checks=("--version", "--help")),
    "octave": Language("", ("--eval",), "p", (), ("--version", "--help")),
    "nim": Language("", ("--eval",), "", (), ("--version", "--help")),
    "dart": Language(verbs=("run",), checks=("--version", "--help")),
    "ts-node": Language("ep", ("--eval", "--print"), "rPO", ("--project",), ("-v", "--version", "-h", "--help")),
    "expect": Language("c", values="f", checks=("-v",)),
}
_ALIASES = {
    "nodejs": "node", "tsx": "ts-node", "pwsh": "powershell", "luajit": "lua", "pypy": "python", "pypy3": "python",
    "ipython": "python", "jruby": "ruby", "rubocop": "", "wish": "tclsh", "littler": "rscript", "clj": "clojure",
    "ipython3": "python", "micropython": "python",
}  # fmt: skip
_VERSIONED = Expression(r"(python|pypy|perl|ruby|node|php|lua|tclsh|ghc)-?[\d.]+\Z")


@functools.lru_cache(maxsize=512)
def language_of(name: str) -> str | None:
    """The language that a program interprets; None when it is no interpreter."""
    name = _ALIASES.get(name, name)
    if name in LANGUAGES:
        return name
    match = _VERSIONED.match(name)
    return (_ALIASES.get(match[1], match[1])) if match else None


def follow(command: Command, evaluator: Evaluator, name: str) -> Stream:  # noqa: PLR0911 - one way out a case
    """Judge the program that an interpreter is given, and note the file that it runs."""
    language = LANGUAGES[name]
    words = command.argv[1:]
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            index += 1
            break
        if word in language.verbs:
            index += 1
            continue
        if word in language.checks or (name == "powershell" and word.lower() in language.checks):
            return EMPTY
        if (word.lower() if name == "powershell" else word).split("=", 1)[0] in language.long:
            text = (
                word.split("=", 1)[1]
                if word.startswith("--") and "=" in word
                else " ".join(words[index + 1 :][: None if name in ("powershell", "deno") else 1])
            )
            return program(Stream(text), command, evaluator, name)
        if len(word) < 2 or word[0] != "-":
            break
        index += 1
        if word in language.value_long or word.lower() in language.value_long:
            index += 1
            continue
        if word.startswith("--"):
            continue
        taken = _cluster(word, words, index, language, command, evaluator, name)
        if isinstance(taken, Stream):
            return taken
        index += taken
    rest = words[index:]
    if rest and rest[0] != "-":
        if name == "deno" and rest[0].startswith(("http:", "https:")):
            evaluator.judge.fact("remote.file", command)
            return NOTHING_KNOWN
        return shells.run_file(rest[0], rest[1:], command, evaluator, language=name)
    if command.piped and command.stdin is not EMPTY:
        return program(command.stdin, command, evaluator, name)
    return EMPTY


def _cluster(
    word: str, words: list[str], index: int, language: Language, command: Command, evaluator: Evaluator, name: str
) -> int | Stream:
    """One cluster of short options: a stream once the program is found, else how many more words it takes."""
    for at in range(1, len(word)):
        letter = word[at]
        if letter in language.inline:
            text = word[at + 1 :] or (words[index] if index < len(words) else "")
            return program(Stream(text), command, evaluator, name)
        if letter == language.module:
            rest = ([word[at + 1 :]] if word[at + 1 :] else []) + words[index:]
            return _module(rest, command, evaluator)
        if letter in language.values:
            return 0 if word[at + 1 :] else 1
        if name == "perl" and letter in "0il":
            return 0 if "e" not in word[at:].lower() else _perl_tail(word[at + 1 :], words, index, command, evaluator)
    return 0


def _perl_tail(tail: str, words: list[str], index: int, command: Command, evaluator: Evaluator) -> int | Stream:
    """``-i.bak -e``, ``-lne``, ``-0777ne``: the letters after a switch that may carry text."""
    if re.match(r"[0-7]*[a-zA-Z]*[eE]\Z", tail):
        return program(Stream(words[index] if index < len(words) else ""), command, evaluator, "perl")
    return 0


def _module(rest: list[str], command: Command, evaluator: Evaluator) -> Stream:
    if not rest:
        return EMPTY
    if rest[0] in ("pip", "ensurepip", "twine", "pipx", "poetry", "uv", "ansible", "conda", "alembic"):
        return evaluator.argv(rest, command)
    if rest[0] in ("timeit", "trace", "cProfile", "pdb", "runpy") and len(rest) > 1:
        scripts = [one for one in rest[1:] if not one.startswith("-")]
        if rest[0] == "timeit" and scripts:
            return program(Stream(scripts[0]), command, evaluator, "python")
        if scripts:
            return shells.run_file(scripts[0], [], command, evaluator, language="python")
    return EMPTY


def program(stream: Stream, command: Command, evaluator: Evaluator, name: str) -> Stream:
    """Judge a program text."""
    text = stream.text or ""
    if FETCHED in stream.traits or REMOTE in text:
        evaluator.judge.fact("remote.shell", command)
    elif DECODED in stream.traits:
        evaluator.judge.fact("unreadable.decoded", command, text)
    else:
        evaluator.judge.fact("inline.program", command, text if stream.text is not None else "")
    if text:
        code.scan(text, name, command, evaluator)
    return NOTHING_KNOWN
