"""Reading words of control: which messages they are, and their parts."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Every word of control of this version, in the order of the help.
WORDS = ("help", "new", "stop", "status", "approve", "deny", "grants")

#: First directories of absolute paths; a message that begins with one is meant for the model.
_ROOTS = frozenset(
    "bin boot dev etc home lib lib64 media mnt opt proc root run sbin srv sys tmp usr var workspace".split()  # noqa: SIM905
)

_SLASH = re.compile(r"/([^\s/]+)(?:\s+|$)", re.ASCII)
_BANG = re.compile(r"!([A-Za-z][A-Za-z-]*)(?:\s+|$)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Said:
    """A word of control as said; ``known`` is False for a slash word that does not exist."""

    word: str
    rest: str
    known: bool


def parse(text: str) -> Said | None:
    """The word of control that ``text`` is, or None for a message to the model.

    ``/word`` is control unless it looks like a path; ``!word`` only where the word is known, so that ``!name`` stays
    free for the model.
    """
    stripped = text.strip()
    if match := _BANG.match(stripped):
        word = match[1].lower()
        return Said(word, stripped[match.end() :].strip(), known=True) if word in WORDS else None
    match = _SLASH.match(stripped)
    if match is None:
        return None
    word = match[1].split("@", 1)[0].lower()
    if word in WORDS:
        return Said(word, stripped[match.end() :].strip(), known=True)
    if word in _ROOTS or not re.fullmatch(r"[a-z][a-z0-9_-]*", word):
        return None
    return Said(word, stripped[match.end() :].strip(), known=False)


def is_control(text: str) -> bool:
    """Whether ``text`` never waits behind a turn."""
    return parse(text) is not None
