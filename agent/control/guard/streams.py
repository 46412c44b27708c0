"""What a command prints, for the few programs that only make, move or decode text."""

from __future__ import annotations

import base64
import binascii
import re
import urllib.parse
from collections.abc import Callable

from agent.control.guard.expressions import Expression
from agent.control.guard import paths
from agent.control.guard.command import Command
from agent.control.guard.expand import ansi
from agent.control.guard.marks import (
    DECODED,
    EMPTY,
    ENVIRON,
    FETCHED,
    LOCAL,
    OF_GATEWAY,
    PIDS,
    TRUSTED,
    UNKNOWN,
    Stream,
    has_gap,
    has_mark,
    literal,
)
from agent.control.guard.state import State

#: Longer texts are not followed.
MAX_TEXT = 65_536

#: Patterns that could take for ever: a repeated group with a repetition or a choice in it.
_COSTLY = Expression(r"\)[*+{?]|[*+}?][*+{]")
_FORMAT = Expression(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?([bqsdiouxXc]))")
_QUIET = frozenset(
    (
        "cd", "pushd", "popd", "export", "declare", "typeset", "local", "readonly", "alias", "unalias", "set", "shopt", "shift", "read",
        "unset", "trap", "true", "false", ":", "test", "[", "mkdir", "touch", "rm", "chmod", "sleep", "wait", "exit", "return", "break",
        "continue", "kill", "exec", "hash", "mapfile", "readarray", "ulimit", "umask", "let", "getopts", "ln",
    )
)  # fmt: skip
_CLOCKS = frozenset(("date", "seq", "uuidgen", "nproc", "wc", "expr", "bc", "jot", "pwd", "basename", "dirname", "mktemp", "whoami", "id"))
_FETCHERS = frozenset(("curl", "wget", "fetch", "aria2c", "lynx", "w3m", "http", "https", "xh", "iwr", "nc", "ncat", "netcat", "socat", "telnet", "ftp"))
#: Commands whose output is shell text that an environment asks to be evaluated.
_PRINTERS = Expression(
    r"(?:ssh-agent|direnv|pyenv|rbenv|nodenv|goenv|jenv|nvm|fnm|mise|asdf|starship|zoxide|dircolors|lesspipe(?:\.sh)?|thefuck|opam|conda"
    r"|mamba|micromamba|brew|minikube|docker-machine|keychain|register-python-argcomplete|atuin|rtx|luarocks|tput|resize|locale|gpg-agent"
    r"|hub|gh|kubectl|helm|pip|npm|poetry|rustup|pdm|hatch|op|aws_completer|swiftenv|plenv|phpenv|tmuxifier|pipx)\Z"
)


def file_content(path: str, state: State) -> Stream:
    """What reading a file gives: what this command wrote there, or local content."""
    if paths.is_channel(path):
        index = re.search(r"\d+", path.rsplit("/", 1)[-1])
        channels = state.world.channels
        if index and int(index[0]) < len(channels):
            return channels[int(index[0])]
    known = state.world.files.get(path)
    if known is not None:
        return known
    assume = state.assume
    if path == assume.gateway_pid_file:
        return Stream(None, frozenset((OF_GATEWAY,)))
    if path in ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"):
        return state.stdin
    if path == "/dev/null":
        return EMPTY
    return Stream(None, frozenset((LOCAL,)))


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
    if _PRINTERS.match(name) and (len(command.operands) > 0 or name in ("ssh-agent", "dircolors", "resize", "lesspipe", "lesspipe.sh")):
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
    return ansi(re.sub(r"\\0([0-7]{1,3})", r"\\\1", text.split("\\c")[0]))


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


# -- decoders ----------------------------------------------------------------------------------------------------------


def _source(command: Command) -> Stream:
    return file_content(command.state.resolve(command.operands[-1]), command.state) if command.operands else command.stdin


def _decode(read: Callable[[str], bytes | str], source: Stream) -> Stream:
    traits = source.traits | {DECODED}
    if source.text is None or has_mark(source.text) or len(source.text) > MAX_TEXT:
        return Stream(None, traits)
    try:
        plain = read(source.text)
    except (ValueError, binascii.Error, IndexError):
        return Stream(None, traits)
    return Stream(plain if isinstance(plain, str) else plain.decode("utf-8", "replace"), traits)


def _compact(text: str) -> str:
    return re.sub(r"\s", "", text)


def _pad(text: str, size: int) -> str:
    return text + "=" * (-len(text) % size)


def _base64(command: Command) -> Stream:
    if command.has("-d", "-D", "--decode"):
        return _decode(lambda text: base64.b64decode(_pad(_compact(text), 4)), _source(command))
    return _source(command).through()


def _base32(command: Command) -> Stream:
    if command.has("-d", "-D", "--decode"):
        return _decode(lambda text: base64.b32decode(_pad(_compact(text), 8), casefold=True), _source(command))
    return _source(command).through()


def _xxd(command: Command) -> Stream:
    if any(name in ("-r", "-rp", "-pr") or "r" in name for name, _ in command.options):
        source = file_content(command.state.resolve(command.operands[0]), command.state) if command.operands else command.stdin
        return _decode(lambda text: bytes.fromhex(_compact(text)), source)
    return _source(command).through()


def _rev(command: Command) -> Stream:
    return _decode(lambda text: "".join(f"{line[::-1]}\n" for line in text.splitlines()), _source(command))


def _openssl(command: Command) -> Stream:
    flags = {name for name, _ in command.options}
    verb = command.operands[0] if command.operands else ""
    if verb in ("base64", "enc") and flags & {"-d"}:
        ciphers = {name for name in flags if re.match(r"-(?:aes|des|bf|rc|cast|chacha|camellia|id-aes|aria|sm4)", name)}
        if verb == "base64" or (flags & {"-base64", "-a"} and not ciphers):
            return _decode(lambda text: base64.b64decode(_pad(_compact(text), 4)), command.stdin)
        return command.stdin.through(DECODED)
    return command.stdin.through(LOCAL)


def _unpack(command: Command) -> Stream:
    return _source(command).through(DECODED)


def _gzip(command: Command) -> Stream:
    return _unpack(command) if command.has("-d", "--decompress", "--uncompress") else _source(command).through(LOCAL)


def _gpg(command: Command) -> Stream:
    return command.stdin.through(DECODED) if command.has("-d", "--decrypt") else command.stdin.through(LOCAL)


_CLASSES = {
    "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "[:lower:]": "abcdefghijklmnopqrstuvwxyz",
    "[:digit:]": "0123456789",
    "[:space:]": " \t\n\r\f\v",
}


def _set(text: str) -> str:
    for name, members in _CLASSES.items():
        text = text.replace(name, members)
    text = ansi(text)
    return re.sub(
        r"(.)-(.)",
        lambda match: "".join(map(chr, range(ord(match[1]), min(ord(match[2]), ord(match[1]) + 256) + 1))),
        text,
        flags=re.DOTALL,
    )


def _tr(command: Command) -> Stream:
    sets = [literal(one) for one in command.operands]
    if not sets or has_mark("".join(sets)) or command.has("-c", "-C", "--complement", "-t"):
        return command.stdin.through(DECODED)
    first = _set(sets[0])
    if command.has("-d", "--delete"):
        return _decode(lambda text: "".join(char for char in text if char not in first), command.stdin)
    if len(sets) < 2:
        return _decode(lambda text: re.sub(f"([{re.escape(first)}])\\1+", r"\1", text), command.stdin) if first else command.stdin
    second = _set(sets[1])
    second += second[-1:] * (len(first) - len(second))
    table = str.maketrans(dict(zip(first, second, strict=False)))
    return _decode(lambda text: text.translate(table), command.stdin)


def _sed(command: Command) -> Stream:
    scripts = command.values("-e", "--expression") or command.operands[:1]
    files = command.operands if command.values("-e", "--expression") else command.operands[1:]
    source = file_content(command.state.resolve(files[-1]), command.state) if files else command.stdin
    match = re.fullmatch(r"s(.)(.*?)\1(.*?)\1([gi]*)", scripts[0]) if len(scripts) == 1 else None
    if match is None or source.text is None or has_mark(source.text) or len(source.text) > MAX_TEXT or len(match[2]) > 64:
        return source.through(DECODED) if source.text is not None else source.through(LOCAL)
    if re.search(r"[\\\[\].*^$+?(){}|&]", match[2] + match[3]):
        return source.through(DECODED)
    return _decode(lambda text: text.replace(match[2], match[3], -1 if "g" in match[4] else 1), source)


# -- processes, places, networks ---------------------------------------------------------------------------------------


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
    lines = [line.format(name) for line in ("{0}", "{0} run", "/usr/bin/{0} run", "python3 -m {0} run", "python -m gateway.{0}")]
    decoys = [line.format(decoy) for line in ("{0}", "{0} run", "/usr/bin/{0} run", "python3 -m {0} run", "python -m gateway.{0}")]
    return any(expression.search(line) and not expression.search(other) for line, other in zip(lines, decoys, strict=True))


def _ps(command: Command) -> Stream:
    user = command.value("-u", "-U", "--user")
    return Stream(None, frozenset((LOCAL, PIDS)) if user in (None, command.state.assume.user) else frozenset((LOCAL,)))


def _pgrep(command: Command) -> Stream:
    if any(names_gateway(one, command) for one in command.operands):
        return Stream(None, frozenset((OF_GATEWAY,)))
    if command.value("-F", "--pidfile") and command.state.resolve(command.value("-F", "--pidfile") or "") == command.state.assume.gateway_pid_file:
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
        traits = {FETCHED} if command.name not in ("nc", "ncat", "netcat", "socat") or not command.has("-l") else {FETCHED, LOCAL}
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
    "base64": _base64,
    "gbase64": _base64,
    "base32": _base32,
    "xxd": _xxd,
    "rev": _rev,
    "tr": _tr,
    "sed": _sed,
    "openssl": _openssl,
    "gunzip": _unpack,
    "zcat": _unpack,
    "gzcat": _unpack,
    "bunzip2": _unpack,
    "bzcat": _unpack,
    "unxz": _unpack,
    "xzcat": _unpack,
    "zstdcat": _unpack,
    "unzstd": _unpack,
    "uudecode": _unpack,
    "gzip": _gzip,
    "bzip2": _gzip,
    "xz": _gzip,
    "zstd": _gzip,
    "lz4": _gzip,
    "gpg": _gpg,
    "gpg2": _gpg,
    "age": _gpg,
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
