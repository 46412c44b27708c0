"""Text with gaps: how the guard writes down what it knows of a word and what it does not.

A word after expansion is an ordinary string in which private-use characters stand for what the text alone cannot tell:
the value of a variable, the output of a program, a character that a glob may match. String operations, regular
expressions and path arithmetic then work on known and unknown parts alike. Private-use characters of the command itself
are replaced before anything is read (:func:`agent.control.guard.normalise.without_marks`), so a mark is never forged.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.control.guard.expressions import Expression

#: Value of a variable or parameter that the text does not set.
UNKNOWN = "\ue000"
#: Output of a command that was not followed; may hold local data.
OUTPUT = "\ue001"
#: Output of a command that fetched it from a network.
REMOTE = "\ue002"
#: Process id of a job of this very shell (``$!``, ``$$``).
JOB = "\ue003"
#: Process id of the gateway (``$PPID``, its pid variable, the content of its pid file).
GATEWAY = "\ue004"
#: Value of a variable whose name says that it holds a secret.
SECRET = "\ue005"  # noqa: S105 - a mark
#: Process ids of everything that runs (``ps`` without a filter).
EVERYONE = "\ue006"
#: The name that a process substitution gets; ``/dev/fd/`` stands before it, an index after it.
CHANNEL = "\ue007"
#: Active glob characters: ``*``, ``?`` and ``[``.
STAR, ONE, SET = "\ue008", "\ue009", "\ue00a"
#: Output of a program that prints settings for the shell to evaluate (``ssh-agent -s``).
SETTINGS = "\ue00b"
#: Brackets round the number of a word that was lifted out of the text.
OPEN, CLOSE = "\ue010", "\ue011"

GAPS = f"{UNKNOWN}{OUTPUT}{REMOTE}{JOB}{GATEWAY}{SECRET}{EVERYONE}{SETTINGS}"
GLOBS = f"{STAR}{ONE}{SET}"

_gap = Expression(f"[{GAPS}]")
_glob = Expression(f"[{GLOBS}]")
_mark = Expression("[\ue000-\ue01f]")
_visible = str.maketrans(
    {
        UNKNOWN: "…",
        OUTPUT: "…",
        REMOTE: "…",
        JOB: "…",
        GATEWAY: "…",
        SECRET: "…",
        EVERYONE: "…",
        SETTINGS: "…",
        CHANNEL: "",
        STAR: "*",
        ONE: "?",
        SET: "[",
    }
)
_unglob = str.maketrans({STAR: "*", ONE: "?", SET: "["})


def has_gap(text: str) -> bool:
    """Whether a part of the text is unknown."""
    return _gap.search(text) is not None


def has_glob(text: str) -> bool:
    """Whether the shell would look for matching files."""
    return _glob.search(text) is not None


def has_mark(text: str) -> bool:
    """Whether anything but known, literal characters stands in the text."""
    return _mark.search(text) is not None


def visible(text: str) -> str:
    """The text for people: globs as written, gaps as an ellipsis."""
    return text.translate(_visible)


def literal(text: str) -> str:
    """The text with glob characters as plain ones; gaps stay."""
    return text.translate(_unglob)


@dataclass(frozen=True, slots=True)
class Stream:
    """What flows through a pipe or stands in a file.

    Attributes:
        text: the content, with marks for gaps; None when nothing of it is known.
        traits: where it comes from, see the constants of this module.
    """

    text: str | None = None
    traits: frozenset[str] = frozenset()

    def plus(self, other: Stream) -> Stream:
        """This followed by the other."""
        if not other.traits and other.text == "":
            return self
        if not self.traits and self.text == "":
            return other
        known = self.text is not None and other.text is not None
        return Stream(f"{self.text}{other.text}" if known else None, self.traits | other.traits)

    def through(self, *traits: str) -> Stream:
        """What comes out of a program that reads this and is not followed."""
        return Stream(None, self.traits.union(traits))

    def value(self) -> str:
        """The content as text with marks, for a substitution."""
        if self.text is not None:
            return self.text
        for trait, mark in _MARK_OF_TRAIT:
            if trait in self.traits:
                return mark
        return OUTPUT if self.traits else UNKNOWN


#: Traits of a stream.
FETCHED, LOCAL, DECODED, OPAQUE, ENVIRON, PIDS, OF_GATEWAY, TRUSTED = (
    "fetched",
    "local",
    "decoded",
    "opaque",
    "environ",
    "pids",
    "gateway",
    "trusted",
)
_MARK_OF_TRAIT = ((TRUSTED, SETTINGS), (OF_GATEWAY, GATEWAY), (FETCHED, REMOTE), (PIDS, EVERYONE))

EMPTY = Stream("")
NOTHING_KNOWN = Stream(None, frozenset((OPAQUE,)))
