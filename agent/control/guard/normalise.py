"""What stands in a command besides its visible characters."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from agent.control.guard.expressions import Expression

# Bidirectional controls, zero-width and other invisible characters, controls, line and paragraph separators. Format
# characters that only join or shape visible text (variation selectors) are left out. Source: Unicode 15.1, categories
# Cc and Cf, and the default-ignorable fillers of Hangul.
_HIDDEN = Expression(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_PRIVATE = Expression("[\ue000-\uf8ff]")
_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class Reading:
    """One command in the forms in which it is judged.

    Attributes:
        text: as written, marks of ours taken out.
        folded: NFKC form with hidden characters dropped; None when it is the same.
        hidden: names of the hidden characters, in order, each once.
    """

    text: str
    folded: str | None
    hidden: tuple[str, ...]


def without_marks(text: str) -> str:
    """The text with private-use characters replaced, so that it cannot forge a mark."""
    return _PRIVATE.sub("\ufffd", text)


def read(command: str) -> Reading:
    """Look at a command's characters.

    A zero-width joiner between two symbols builds an emoji and is no finding; anything else that a card would not show
    as it runs is.
    """
    if command.isascii() and not _HIDDEN.search(command):
        return Reading(command, None, ())
    text = without_marks(command)
    hidden = tuple(dict.fromkeys(_name(match[0]) for match in _HIDDEN.finditer(text) if not _joins(text, match.start())))
    folded = without_marks(_HIDDEN.sub("", unicodedata.normalize("NFKC", text)))
    return Reading(text, folded if folded != text else None, hidden)


def fold(command: str) -> str:
    """The NFKC form without hidden characters, for expressions over the text."""
    return _HIDDEN.sub("", unicodedata.normalize("NFKC", command))


def mixes_scripts(word: str) -> bool:
    """Whether a word holds letters of Latin and of a script that looks like it (Cyrillic, Greek, Armenian...)."""
    if word.isascii():
        return False
    scripts = {unicodedata.name(char, "?").split(" ", 1)[0] for char in word if char.isalpha()}
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}) > 1


def _joins(text: str, index: int) -> bool:
    if text[index] != _JOINER or not 0 < index < len(text) - 1:
        return False
    before = text[index - 1]
    if before in "\ufe0f\u20e3" or "\U0001f3fb" <= before <= "\U0001f3ff":
        before = text[index - 2] if index > 1 else ""
    return bool(before) and unicodedata.category(before) == "So" and unicodedata.category(text[index + 1]) == "So"


def _name(char: str) -> str:
    return unicodedata.name(char, "").lower() or f"control character {ord(char):#04x}"
