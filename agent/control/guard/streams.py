"""What a command prints, for the few programs that only make, move or decode text."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable

from agent.control.guard import decoders, listings
from agent.control.guard.command import Command
from agent.control.guard.contents import MAX_TEXT, file_content
from agent.control.guard.expand import ansi
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import (
    EMPTY,
    FETCHED,
    LOCAL,
    TRUSTED,
    UNKNOWN,
    Stream,
    has_mark,
    literal,
)

_FORMAT = Expression(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?([bqsdiouxXc]))")
_QUIET = frozenset(
    (
        "cd", "pushd", "popd", "export", "declare", "typeset", "local", "readonly", "alias", "unalias", "set",
        "shopt", "shift", "read", "unset", "trap", "true", "false", ":", "test", "[", "mkdir", "touch", "rm", "chmod",
        "sleep", "wait", "exit", "return", "break", "continue", "kill", "exec", "hash", "mapfile", "readarray",
        "ulimit", "umask", "let", "getopts", "ln",
    )
)  # fmt: skip
_CLOCKS = frozenset(
    (
        "date",
        "seq",
        "uuidgen",
        "nproc",
        "wc",
        "expr",
        "bc",
        "jot",
        "pwd",
        "basename",
        "dirname",
        "mktemp",
        "whoami",
        "id",
    )
)
_FETCHERS = frozenset(
    (
        "curl",
        "wget",
        "fetch",
        "aria2c",
        "lynx",
        "w3m",
        "http",
        "https",
        "xh",
        "iwr",
        "nc",
        "ncat",
        "netcat",
        "socat",
        "telnet",
        "ftp",
    )
)
#: Commands whose output is shell text that an environment asks to be evaluated.
_PRINTERS = Expression(
    r"(?:ssh-agent|direnv|pyenv|rbenv|nodenv|goenv|jenv|nvm|fnm|mise|asdf|starship|zoxide|dircolors|lesspipe(?:\.sh"
    r")?|thefuck|opam|conda"
    r"|mamba|micromamba|brew|minikube|docker-machine|keychain|register-python-argcomplete|atuin|rtx|luarocks|tput"
    r"|resize|locale|gpg-agent"
    r"|hub|gh|kubectl|helm|pip|npm|poetry|rustup|pdm|hatch|op|aws_completer|swiftenv|plenv|phpenv|tmuxifier|pipx)\Z"
)


def output(command: Command) -> Stream:
    """What a command prints."""
    name = command.name
    known = _OUTPUTS.get(name)
    if known is not None:
        return known(command)
    if not name or name in _QUIET:
        return EMPTY
    if name in _CLOCKS:
        return Stream(UNKNOWN)
    if name in _FETCHERS:
        return _fetched(command)
    if _PRINTERS.match(name) and (
        len(command.operands) > 0 or name in ("ssh-agent", "dircolors", "resize", "lesspipe", "lesspipe.sh")
    ):
        return Stream(None, frozenset((LOCAL, TRUSTED)))
    return command.stdin.through(LOCAL)


# -- text --------------------------------------------------------------------------------------------------------------


def _echo(command: Command) -> Stream:
    words = command.argv[1:]
    newline, escapes = "\n", False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        newline = "" if "n" in words[0] else newline
        escapes = "e" in words[0] or (escapes and "E" not in words[0])
        words = words[1:]
    text = literal(" ".join(words))
    if escapes:
        text = _escapes(text)
    return Stream(f"{text}{newline}")


def _escapes(text: str) -> str:
    return ansi(re.sub(r"\\0([0-7]{1,3})", r"\\\1", text.split("\\c", maxsplit=1)[0]))


def _printf(command: Command) -> Stream:
    words = command.argv[1:]
    if words[:1] == ["-v"]:
        return EMPTY
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        return EMPTY
    form, values = literal(words[0]), [literal(one) for one in words[1:]]
    specifiers = [match for match in _FORMAT.finditer(form) if match[1]]
    rounds = max(1, -(-len(values) // len(specifiers))) if specifiers else 1
    if rounds * len(form) > MAX_TEXT:
        return command.stdin.through(LOCAL)
    queue = list(values)

    def fill(match: re.Match[str]) -> str:
        if not match[1]:
            return "%"
        value = queue.pop(0) if queue else ""
        return ansi(value) if match[1] == "b" else value

    pieces = re.split(r"(%(?:%|[-+ #0]*\d*(?:\.\d+)?[bqsdiouxXc]))", form)
    out: list[str] = []
    for _ in range(rounds):
        for piece in pieces:
            match = _FORMAT.fullmatch(piece)
            out.append(fill(match) if match else ansi(piece))
    return Stream("".join(out))


def _cat(command: Command) -> Stream:
    if not command.operands or command.operands == ["-"]:
        return command.stdin
    out = EMPTY
    for word in command.operands:
        out = out.plus(command.stdin if word == "-" else file_content(command.state.resolve(word), command.state))
    return out


def _through(command: Command) -> Stream:
    """Programs that pass on what they read, or a part of it."""
    files = [one for one in command.operands if not one.lstrip("+").isdigit()]
    return _cat(command) if files else command.stdin


def _tee(command: Command) -> Stream:
    for word in command.operands:
        path = command.state.resolve(word)
        if not has_mark(path):
            command.state.world.files[path] = command.stdin
    return command.stdin


def _fetched(command: Command) -> Stream:
    """Output of a program that reads from a network; files that it writes are remembered."""
    target = command.value("-o", "--output", "-O", "--output-document")
    world = command.state.world
    urls = [one for one in command.operands if one]
    if command.name == "curl":
        target = command.value("-o", "--output")
        if target is None and command.has("-O", "--remote-name", "--remote-name-all"):
            target = url_name(urls)
    elif command.name in ("wget", "aria2c") and target is None:
        target = url_name(urls)
        folder = command.value("-P", "--directory-prefix", "-d", "--dir")
        if target and folder:
            target = f"{folder}/{target}"
    if target is None or target == "-":
        traits = (
            {FETCHED}
            if command.name not in ("nc", "ncat", "netcat", "socat") or not command.has("-l")
            else {FETCHED, LOCAL}
        )
        return Stream(None, frozenset(traits))
    path = command.state.resolve(target)
    if not has_mark(path):
        world.files[path] = Stream(None, frozenset((FETCHED,)))
    return EMPTY


def url_name(urls: list[str]) -> str | None:
    """The file name that a download gets by default."""
    if not urls:
        return None
    tail = urls[-1].split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1]
    return urllib.parse.unquote(tail) or "index.html"


_OUTPUTS: dict[str, Callable[[Command], Stream]] = {
    **decoders.OUTPUTS,
    **listings.OUTPUTS,
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tac": _through,
    "head": _through,
    "tail": _through,
    "sort": _through,
    "uniq": _through,
    "nl": _through,
    "pv": _through,
    "sponge": _through,
    "tee": _tee,
}
