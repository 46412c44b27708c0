"""The expression of ``find``, as far as it deletes, writes or starts something."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.control.guard.command import Command
from agent.control.guard.marks import STAR, UNKNOWN, literal

_SELECTS = frozenset(
    (
        "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-lname", "-ilname", "-newer",
        "-anewer", "-cnewer", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-size", "-user", "-group",
        "-uid", "-gid", "-perm", "-inum", "-links", "-samefile", "-used", "-context", "-fstype",
    )
)  # fmt: skip
_SELECTS_ALONE = frozenset(("-empty", "-nouser", "-nogroup", "-executable", "-false", "-prune"))
_TAKES_VALUE = _SELECTS | {"-type", "-xtype", "-maxdepth", "-mindepth", "-regextype", "-printf", "-fstype"}
_WRITES = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}
_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))


@dataclass(slots=True)
class Search:
    """What a search does with what it finds.

    Attributes:
        starts: starting points as given.
        selective: it takes only some of what lies below them.
        deletes: ``-delete`` is there.
        runs: commands of ``-exec`` and its like, ``{}`` not yet filled in.
        writes: files that it writes.
        names: patterns of ``-name`` that are not negated.
    """

    starts: list[str] = field(default_factory=list)
    selective: bool = False
    deletes: bool = False
    runs: list[list[str]] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    below: bool = False

    def targets(self) -> list[str]:
        """Fields for ``{}``: the starting points themselves, or gaps below them."""
        found: list[str] = []
        for start in self.starts:
            base = start.rstrip("/") if start != "/" else ""
            if self.selective:
                found += [f"{base}/{UNKNOWN}/{name}" for name in self.names] or [f"{base}/{UNKNOWN}"]
            else:
                found.append(f"{base}/{STAR}" if self.below else start)
        return found


def read(command: Command) -> Search:
    """Read the expression."""
    search = Search()
    words = command.argv[1:]
    index = 0
    while index < len(words) and words[index] in ("-L", "-H", "-P"):
        index += 1
    while index < len(words) and not words[index].startswith(("-", "(", "!")):
        search.starts.append(words[index])
        index += 1
    search.starts = search.starts or ["."]
    negated = False
    while index < len(words):
        word = words[index]
        index += 1
        if word in ("!", "-not"):
            negated = True
            continue
        if word in _RUNS:
            end = next(
                (
                    at
                    for at in range(index, len(words))
                    if words[at] == ";" or (words[at] == "+" and words[at - 1] == "{}")
                ),
                len(words),
            )
            search.runs.append(words[index:end])
            index = end + 1
        elif word in _WRITES:
            search.writes += words[index : index + 1]
            index += _WRITES[word]
        elif word == "-delete":
            search.deletes = True
        elif word == "-mindepth":
            search.below = words[index : index + 1] != ["0"]
            index += 1
        else:
            index += _test(search, word, words[index : index + 1], negated=negated)
        negated = False
    return search


def _test(search: Search, word: str, value: list[str], *, negated: bool) -> int:
    if word in _SELECTS:
        everything = value and literal(value[0]) in ("*", "**", "/*", "*/*", ".*", "?*")
        if not negated and not everything:
            search.selective = True
            if word in ("-name", "-iname") and value:
                search.names.append(value[0])
    elif word in _SELECTS_ALONE and not negated:
        search.selective = True
    elif word.startswith("-newer") and not negated:
        search.selective = True
        return 1
    return 1 if word in _TAKES_VALUE else 0
