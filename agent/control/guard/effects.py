"""What a simple command does to which paths: deletes, writes, changes modes, reads. Shared by every rule about places."""

from __future__ import annotations

import re
from typing import NamedTuple

from agent.control.guard.expressions import Expression
from agent.control.guard import find
from agent.control.guard.command import Command
from agent.control.guard.marks import UNKNOWN, has_gap, literal

DELETE, WRITE, MOVE, MODE, READ = "delete", "write", "move", "mode", "read"


class Effect(NamedTuple):
    """One thing done to one path.

    Attributes:
        kind: ``delete``, ``write`` (also creates), ``move`` (takes it away), ``mode`` (permissions, owner), ``read``.
        path: resolved; on the host's side where a container's mount is known.
        recursive: with everything below.
        relative: it was written relative to the working directory.
        redirect: it comes from a redirection.
        inside: it lies in a container and not on the host.
    """

    kind: str
    path: str
    recursive: bool = False
    relative: bool = False
    redirect: bool = False
    inside: bool = False


class Touch(NamedTuple):
    """Which operands of a program it touches, and how.

    Attributes:
        kind: as in :class:`Effect`.
        which: ``all``, ``first``, ``last``, ``rest`` (all but the first) or ``source`` (all but the last).
        options: options whose value is touched instead or as well.
        only_if: options without which nothing is touched; empty for always.
        recursive: options that make it recursive; ``*`` for always.
        key: operand prefix (``of=``) that is touched instead.
        target: options whose value is the target directory; all operands are then sources.
    """

    kind: str
    which: str = ""
    options: tuple[str, ...] = ()
    only_if: tuple[str, ...] = ()
    recursive: tuple[str, ...] = ()
    key: str = ""
    target: tuple[str, ...] = ()


_INTO = ("-t", "--target-directory")
_R = ("-r", "-R", "--recursive")
_READERS = (
    "cat", "less", "more", "head", "tail", "strings", "xxd", "hexdump", "od", "base64", "base32", "tac", "nl", "rev", "bat", "batcat", "view", "vim", "vi",
    "nvim", "nano", "emacs", "sort", "uniq", "cut", "diff", "cmp", "comm", "paste", "fold", "column", "pr", "source", ".", "zip", "gzip", "xz", "bzip2",
    "zstd", "7z", "pbcopy", "xclip", "xsel", "hd", "split", "expand", "sqlite3", "openssl", "age", "code", "subl", "micro", "most", "dos2unix", "shuf",
    "bsdcat", "zcat", "iconv", "rclone", "qrencode", "gpg", "ccat", "glow", "open", "xdg-open", "envsubst", "dotenv", "install-secret", "mapfile", "look",
)  # fmt: skip

TOUCHES: dict[str, tuple[Touch, ...]] = {
    "rm": (Touch(DELETE, "all", recursive=_R),),
    "unlink": (Touch(DELETE, "all"),),
    "rmdir": (),
    "shred": (Touch(DELETE, "all"),),
    "srm": (Touch(DELETE, "all", recursive=_R),),
    "wipe": (Touch(DELETE, "all", recursive=_R),),
    "rimraf": (Touch(DELETE, "all", recursive=("*",)),),
    "rm-rf": (Touch(DELETE, "all", recursive=("*",)),),
    "del-cli": (Touch(DELETE, "all", recursive=("*",)),),
    "truncate": (Touch(WRITE, "all"),),
    "mv": (Touch(MOVE, "source", target=_INTO), Touch(WRITE, "last", target=_INTO)),
    "cp": (Touch(READ, "source", target=_INTO), Touch(WRITE, "last", target=_INTO)),
    "install": (Touch(READ, "source", target=_INTO), Touch(WRITE, "last", target=_INTO)),
    "ln": (Touch(WRITE, "last", target=_INTO),),
    "link": (Touch(WRITE, "last"),),
    "dd": (Touch(WRITE, key="of="), Touch(READ, key="if=")),
    "dcfldd": (Touch(WRITE, key="of="),),
    "dc3dd": (Touch(WRITE, key="of="), Touch(WRITE, key="hof="), Touch(WRITE, key="wipe=")),
    "ddrescue": (Touch(WRITE, "rest"),),
    "tee": (Touch(WRITE, "all"),),
    "sponge": (Touch(WRITE, "all"),),
    "touch": (Touch(WRITE, "all"),),
    "mkdir": (Touch(WRITE, "all"),),
    "mkfifo": (Touch(WRITE, "all"),),
    "mknod": (Touch(WRITE, "first"),),
    "chmod": (Touch(MODE, "rest", recursive=("-R", "--recursive")),),
    "chown": (Touch(MODE, "rest", recursive=("-R", "--recursive")),),
    "chgrp": (Touch(MODE, "rest", recursive=("-R", "--recursive")),),
    "chattr": (Touch(MODE, "rest", recursive=("-R",)),),
    "setfacl": (Touch(MODE, "all", recursive=("-R", "--recursive")),),
    "chcon": (Touch(MODE, "rest", recursive=("-R", "--recursive")),),
    "restorecon": (),
    "patch": (Touch(WRITE, "first"), Touch(WRITE, options=("-o", "--output"))),
    "tar": (Touch(WRITE, options=("-C", "--directory"), only_if=("-x", "--extract", "--get")), Touch(READ, "all", only_if=("-c", "--create", "-r", "-u", "-A"))),
    "unzip": (Touch(WRITE, options=("-d",)),),
    "7z": (),
    "cpio": (Touch(WRITE, options=("-D", "--directory")),),
    "rsync": (Touch(READ, "source"), Touch(WRITE, "last")),
    "scp": (Touch(READ, "source"), Touch(WRITE, "last")),
    "curl": (Touch(WRITE, options=("-o", "--output", "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar")),),
    "wget": (Touch(WRITE, options=("-O", "--output-document", "-P", "--directory-prefix", "-o", "--output-file", "-a")),),
    "aria2c": (Touch(WRITE, options=("-o", "--out", "-d", "--dir")),),
    "sort": (Touch(READ, "all"), Touch(WRITE, options=("-o", "--output"))),
    "git": (Touch(WRITE, options=("--output", "-o")),),
    "yq": (Touch(READ, "rest"), Touch(WRITE, "rest", only_if=("-i", "--inplace", "--in-place"))),
    "ed": (Touch(WRITE, "all"),),
    "ex": (Touch(WRITE, "all"),),
    "openssl": (Touch(WRITE, options=("-out", "-keyout")), Touch(READ, options=("-in", "-inkey"))),
    "ssh-keygen": (),
    "gpg": (Touch(WRITE, options=("-o", "--output")), Touch(READ, "all")),
    "strace": (Touch(WRITE, options=("-o", "--output")),),
    "split": (Touch(READ, "first"), Touch(WRITE, "rest")),
    "csplit": (Touch(WRITE, options=("-f", "--prefix")),),
    "iconv": (Touch(WRITE, options=("-o", "--output")),),
    "xxd": (Touch(READ, "first"), Touch(WRITE, "rest")),
    "gcc": (Touch(WRITE, options=("-o",)),),
    "gzip": (Touch(READ, "all"), Touch(WRITE, "all")),
    "update-alternatives": (),
    "awk": (Touch(READ, "rest"),),
    "jq": (Touch(READ, "rest"),),
    "grep": (Touch(READ, "rest"),),
    "rg": (Touch(READ, "rest"),),
    "ag": (Touch(READ, "rest"),),
    "sed": (Touch(READ, "rest"), Touch(WRITE, "rest", only_if=("-i", "--in-place"))),
    "perl": (),
    "wipefs": (Touch(WRITE, "all", only_if=("-a", "--all", "-o", "--offset")),),
    "blkdiscard": (Touch(WRITE, "all"),),
    "mkswap": (Touch(WRITE, "all"),),
    "rename": (Touch(WRITE, "rest"),),
    "dpkg-divert": (),
}
for _name in ("vim", "vi", "nvim", "nano", "emacs", "micro", "pico", "joe", "mcedit", "gedit", "kate"):
    TOUCHES[_name] = (Touch(READ, "all"), Touch(WRITE, "all"))
for _name in _READERS:
    TOUCHES.setdefault(_name, (Touch(READ, "all"),))
for _same, _as in (
    ("egrep", "grep"), ("fgrep", "grep"), ("zgrep", "grep"), ("gawk", "awk"), ("mawk", "awk"), ("bsdtar", "tar"), ("gtar", "tar"), ("grm", "rm"),
    ("gcp", "cp"), ("gmv", "mv"), ("gln", "ln"), ("gdd", "dd"), ("gsed", "sed"), ("gchmod", "chmod"), ("gchown", "chown"), ("gpg2", "gpg"),
    ("g++", "gcc"), ("cc", "gcc"), ("clang", "gcc"), ("ld", "gcc"), ("gshred", "shred"), ("gtruncate", "truncate"), ("gojq", "jq"),
):  # fmt: skip
    TOUCHES[_same] = TOUCHES[_as]

_FORMATTERS = Expression(r"(?:mkfs(?:\..+)?|mke2fs|mkdosfs|mkntfs|mkexfatfs|newfs(?:_\w+)?|mkudffs|mkreiserfs|mkfatfs)\Z")
_SED_WRITES = Expression(r"(?:^|[;{}/|#,\d$\s])[gpi\d]*[wW]\s+(/[^\s;}]+|~[^\s;}]*|\.\.?/[^\s;}]+)")
_SYMBOLIC = Expression(r"-[rwxXst]+(?:,|\Z)")


def of(command: Command) -> list[Effect]:
    """Every effect on a path that the arguments and redirections show."""
    found: list[Effect] = []
    for one in command.redirects:
        if one.path:
            found.append(_seen(WRITE if one.writes else READ, one.path, command, redirect=True))
    name = command.name
    if name in ("find", "gfind"):
        _searched(command, found)
    elif name in ("rsync",) and command.has("--delete", "--delete-after", "--delete-before", "--delete-during", "--delete-excluded", "--del"):
        _operands(command, Touch(DELETE, "last", recursive=("*",)), found)
    touches = TOUCHES.get(name)
    if touches:
        for touch in touches:
            _operands(command, touch, found)
        if name in ("sed", "gsed"):
            scripts = command.values("-e", "--expression") or command.operands[:1]
            for script in scripts:
                found += [_seen(WRITE, command.state.resolve(match[1]), command) for match in _SED_WRITES.finditer(script)]
    elif _FORMATTERS.match(name):
        for word in command.operands:
            if not word.isdigit():
                found.append(_seen(WRITE, command.state.resolve(word), command))
    return found


def _searched(command: Command, found: list[Effect]) -> None:
    search = find.read(command)
    if search.deletes:
        for target in search.targets():
            found.append(_seen(DELETE, command.state.resolve(target), command, recursive=not search.selective, relative=not target.startswith("/")))
    for word in search.writes:
        found.append(_seen(WRITE, command.state.resolve(word), command))


def _operands(command: Command, touch: Touch, found: list[Effect]) -> None:
    if touch.only_if and not command.has(*touch.only_if) and not _bundled(command, touch.only_if):
        return
    recursive = touch.recursive == ("*",) or bool(touch.recursive and command.has(*touch.recursive))
    for word, extra in _words(command, touch):
        path = command.state.resolve(word)
        if extra:
            path = f"{path.rstrip('/')}/{extra}"
        found.append(_seen(touch.kind, path, command, recursive=recursive, relative=not word.startswith("/")))


def _bundled(command: Command, wanted: tuple[str, ...]) -> bool:
    """tar takes its letters without a dash too: ``tar xf``."""
    if command.name not in ("tar", "bsdtar", "gtar") or not command.operands:
        return False
    first = command.argv[1] if len(command.argv) > 1 else ""
    return bool(re.fullmatch(r"[A-Za-z]+", first)) and any(len(name) == 2 and name[1] in first for name in wanted)


def _words(command: Command, touch: Touch) -> list[tuple[str, str]]:
    """The operands that a touch means, each with a name that is added to a target directory."""
    if touch.key:
        return [(one[len(touch.key) :], "") for one in command.operands if one.startswith(touch.key)]
    words = [(value, "") for value in command.values(*touch.options)] if touch.options else []
    operands = command.operands
    if command.name == "sed" or command.name == "gsed":
        operands = operands if command.has("-e", "-f", "--expression", "--file") else operands[1:]
        return [(one, "") for one in operands] if touch.which == "rest" else words
    if command.name in ("grep", "egrep", "fgrep", "rg", "ag", "zgrep") and command.has("-e", "-f", "--regexp", "--file") and touch.which == "rest":
        return [(one, "") for one in operands]
    if command.name == "chmod" and len(operands) == 1 and any(_SYMBOLIC.match(one) for one in command.argv[1:]):
        return [(operands[0], "")]
    target = command.value(*touch.target) if touch.target else None
    if target is not None:
        return [(target, "")] if touch.which == "last" else [(one, "") for one in operands]
    if touch.which == "all":
        words += [(one, "") for one in operands]
    elif touch.which == "first":
        words += [(one, "") for one in operands[:1]]
    elif touch.which == "last":
        words += [(one, "") for one in operands[-1:]] if len(operands) > 1 or command.name in ("touch", "ln") else []
    elif touch.which == "rest":
        words += [(one, "") for one in operands[1:]]
    elif touch.which == "source":
        words += [(one, "") for one in operands[:-1]]
    return words


def _seen(kind: str, path: str, command: Command, *, recursive: bool = False, relative: bool = False, redirect: bool = False) -> Effect:
    """An effect with a container's path turned into the host's where a mount tells."""
    where = command.where
    if where.mounts and path.startswith("/"):
        for inside, host in where.mounts:
            inside = inside.rstrip("/")
            if path == inside or path.startswith(f"{inside}/"):
                rest = path[len(inside) :]
                return Effect(kind, (host.rstrip("/") + rest) or "/", recursive, relative, redirect)
    return Effect(kind, path, recursive, relative, redirect, inside=where.reach.value > 0)


def shown(path: str) -> bool:
    """Whether a path is known from its root on."""
    return path.startswith("/") and not has_gap(path)


def plain(path: str) -> str:
    """A path for a grant's scope: glob characters as written."""
    return literal(path).replace(UNKNOWN, "…")
