"""Follow a command into what it starts: one function a family of wrappers, one table for the plain ones."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.control.guard.expressions import Expression
from agent.control.guard import code, containers, find, hosts, interpreters, prepass, wrappers
from agent.control.guard.command import Command, Where, parse_options
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
    has_glob,
    has_mark,
    literal,
)
from agent.control.guard.paths import below, is_channel, normal
from agent.control.guard.streams import file_content

if TYPE_CHECKING:
    from agent.control.guard.evaluate import Evaluator

Follower = Callable[[Command, "Evaluator"], "Stream | None"]

_ASSIGN = Expression(r"[A-Za-z_]\w*=")
_SHEBANG = Expression(r"#!\s*(?:/\S*/)?(?:env\s+(?:-S\s+)?)?(\S+)")
#: Tools that yarn and pnpm run by their bare name.
_PACKAGE_TOOLS = frozenset(("rimraf", "del-cli", "prisma", "sequelize", "sequelize-cli", "knex", "typeorm", "mikro-orm", "drizzle-kit", "serverless", "sls", "cdk", "wrangler", "firebase", "vercel", "lerna", "semantic-release"))
#: Programs that a glob in command position may mean; the harmful ones are enough.
_GLOBBED = ("rm", "dd", "mkfs", "chmod", "chown", "shred", "bash", "sh", "kill", "reboot", "shutdown", "nc", "python3", "perl", "find")


def follow(command: Command, evaluator: Evaluator) -> Stream | None:
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
        return shell(command, evaluator)
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
        run_file(command.argv[0], command.argv[1:], command, evaluator)
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


# -- shell text and files ----------------------------------------------------------------------------------------------


def run_text(text: str, command: Command, evaluator: Evaluator, where: Where | None = None, positional: list[str] | None = None, *, here: bool = False) -> Stream:
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
    return evaluator.text(text, state, where or command.where)


def run_stream(stream: Stream, command: Command, evaluator: Evaluator, where: Where | None = None, *, here: bool = False) -> Stream:
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


def run_file(word: str, arguments: list[str], command: Command, evaluator: Evaluator, *, language: str = "", here: bool = False) -> Stream:
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


def _eval(command: Command, evaluator: Evaluator) -> Stream:
    text = " ".join(one for one in command.argv[1:] if one != "--")
    return run_text(text, command, evaluator, here=True)


def _source(command: Command, evaluator: Evaluator) -> Stream:
    words = [one for one in command.argv[1:] if one != "--"]
    return run_file(words[0], words[1:], command, evaluator, here=True) if words else EMPTY


def _trap(command: Command, evaluator: Evaluator) -> Stream:
    words = [one for one in command.argv[1:] if one != "--"]
    if len(words) > 1 and not words[0].startswith("-"):
        run_text(words[0], command, evaluator)
    return EMPTY


def _later(command: Command, evaluator: Evaluator) -> Stream:
    """``at`` and ``batch``: the job comes from standard input or a file."""
    file = command.value("-f")
    if file:
        return run_file(file, [], command, evaluator)
    if command.piped and not command.has("-l", "-r", "-d", "-c"):
        return run_stream(command.stdin, command, evaluator)
    return EMPTY


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
            out = run_text(value, command, evaluator, where)
    if wrapper.verbs:
        if operands and command.name in ("yarn", "pnpm") and operands[0] in _PACKAGE_TOOLS:
            return evaluator.argv(operands, command)
        if not operands or operands[0] not in wrapper.verbs:
            code.option_payloads(command, evaluator)
            return None
        _, operands = parse_options(operands[1:], wrapper.spec)
    if command.name in wrappers.TEXT_OPERANDS:
        for word in operands:
            out = run_text(word, command, evaluator, where)
        return out or EMPTY
    operands = operands[wrapper.leading :] if wrapper.leading else operands
    if wrapper.leading and operands[:1] == ["--"]:
        operands = operands[1:]
    return _inner(command, evaluator, wrapper, options, operands, where) or out


def _inner(command: Command, evaluator: Evaluator, wrapper: wrappers.Wrapper, options: list[tuple[str, str | None]], operands: list[str], where: Where) -> Stream | None:
    assigns: dict[str, str] = {}
    while wrapper.assigns and operands and _ASSIGN.match(operands[0]):
        name, _, value = operands[0].partition("=")
        assigns[name] = value
        operands = operands[1:]
    if command.name == "env":
        split = next((value for name, value in options if name in ("-S", "--split-string")), None)
        if split:
            return run_text(" ".join((split, *operands)), command, evaluator, where)
    if not operands:
        return None
    if command.name in ("exec", "command") and command.name == "command" and command.argv[1:2] and re.fullmatch(r"-[pvV]*[vV][pvV]*", command.argv[1]):
        return Stream(f"/usr/bin/{operands[0]}\n")
    if wrapper.kind is wrappers.Kind.TEXT and not command.has("-x", "--exec"):
        return run_text(" ".join(operands), command, evaluator, where)
    argv = [_package_program(operands[0], command.name), *operands[1:]]
    state = command.state
    inner = Command(argv, state, segment=command.segment, stdin=command.stdin, piped=command.piped, assigns={**command.assigns, **assigns}, where=where)
    return evaluator.nested(inner)


def _package_program(word: str, wrapper: str) -> str:
    if wrapper in ("npx", "bunx", "pnpx", "pnpm", "yarn", "npm", "uvx", "pipx") and "@" in word[1:]:
        return word[0] + word[1:].split("@", 1)[0]
    return word


def _su(command: Command, evaluator: Evaluator) -> Stream | None:
    text = command.value("-c", "--command", "--session-command")
    if text:
        return run_text(text, command, evaluator, command.where.at("sudo"))
    return run_stream(command.stdin, command, evaluator, command.where.at("sudo")) if command.piped else None


def _flock(command: Command, evaluator: Evaluator) -> Stream | None:
    options, operands = parse_options(command.argv[1:], wrappers.WRAPPERS["timeout"].spec)
    if len(operands) > 1 and operands[1] in ("-c", "--command"):
        return run_text(" ".join(operands[2:]), command, evaluator)
    del options
    return evaluator.argv(operands[1:], command) if len(operands) > 1 else None


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


def _xargs(command: Command, evaluator: Evaluator) -> Stream | None:
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


def _parallel(command: Command, evaluator: Evaluator) -> Stream | None:
    words = command.argv[1:]
    items: list[str] = []
    for marker in (":::", ":::+"):
        if marker in words:
            at = words.index(marker)
            items = [one for one in words[at + 1 :] if not one.startswith(":::")]
            words = words[:at]
    _, argv = parse_options(words, wrappers.WRAPPERS["timeout"].spec._replace(values=frozenset(("-j", "--jobs", "-S", "--sshlogin", "-a", "--arg-file", "--colsep", "-d", "--results", "--joblog", "--delay", "--timeout", "--retries", "-N", "-n", "-I"))))
    items = items or ([command.stdin.value()] if command.piped else [])
    where = command.where._replace(fed=True)
    texts = [" ".join(argv)] if argv else []
    if not texts:
        for item in items:
            run_text(item, command, evaluator, where)
        return EMPTY
    text = texts[0]
    for item in items[:16] or [UNKNOWN]:
        filled = text.replace("{}", item) if "{}" in text else f"{text} {item}"
        run_text(filled, command, evaluator, where)
    return EMPTY


def _find(command: Command, evaluator: Evaluator) -> Stream:
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


def _fd(command: Command, evaluator: Evaluator) -> Stream | None:
    words = command.argv[1:]
    for flag in ("-x", "--exec", "-X", "--exec-batch"):
        if flag in words:
            argv = [word.replace("{}", OUTPUT) for word in words[words.index(flag) + 1 :] if word != ";"]
            if not any(OUTPUT in word for word in argv):
                argv.append(OUTPUT)
            return evaluator.argv(argv, command, command.where._replace(fed=True), EMPTY)
    return None


def _busybox(command: Command, evaluator: Evaluator) -> Stream | None:
    return evaluator.argv(command.argv[1:], command) if len(command.argv) > 1 and not command.argv[1].startswith("-") else EMPTY


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
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "at": _later,
    "batch": _later,
    "su": _su,
    "flock": _flock,
    "xargs": _xargs,
    "gxargs": _xargs,
    "parallel": _parallel,
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "fdfind": _fd,
    "busybox": _busybox,
    "toybox": _busybox,
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
