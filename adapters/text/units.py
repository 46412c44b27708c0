"""Lengths and places of text: UTF-16 units, columns of a terminal, where a text may be cut."""

from __future__ import annotations

import re
import unicodedata

#: How far to look back for the start of what a reader sees as one character; longer chains are cut anywhere.
_LONGEST_GRAPHEME = 64
_JOINER = "\u200d"
# skin tones, tag characters of flags, vowels and finals of decomposed Hangul
_EXTENDS = re.compile("[\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u1160-\u11ff\u200c\u200d]")
_REGIONAL = re.compile("[\U0001f1e6-\U0001f1ff]")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？；][”’」』）]*")
_SPACE = re.compile(r"\s")


def utf16_len(text: str) -> int:
    """Length in UTF-16 code units, as Telegram counts: an emoji beyond U+FFFF is two."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut_utf16(text: str, room: int) -> int:
    """How many characters from the start have at most ``room`` units; looks at no more than that."""
    if room <= 0:
        return 0
    head = text[:room]
    while (over := utf16_len(head) - room) > 0:
        # each character taken away frees one unit at least, two at most
        head = head[: -((over + 1) // 2)]
    return len(head)


def columns(text: str) -> int:
    """Width in a monospace font: wide East Asian characters and emoji take two columns, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_column(character) for character in text)


def _column(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def grapheme_start(text: str, place: int) -> int:
    """The last place at or before ``place`` that parts no character from its marks, joined emoji or flag.

    Covers combining marks, variation selectors, joiners, skin tones, flags and decomposed Hangul; ``place`` itself
    where there is no such place but the start.
    """
    at = place
    floor = max(0, place - _LONGEST_GRAPHEME)
    while at > floor and at < len(text) and _continues(text, at):
        at -= 1
    return at if at > floor or (at == 0 and place == 0) else place


def _continues(text: str, at: int) -> bool:
    character = text[at]
    if character.isascii():
        return False
    if text[at - 1] == _JOINER or _EXTENDS.match(character) or unicodedata.category(character).startswith("M"):
        return True
    if not _REGIONAL.match(character):
        return False
    before = 0
    while before < _LONGEST_GRAPHEME and before < at and _REGIONAL.match(text[at - 1 - before]):
        before += 1
    return before % 2 == 1


def best_break(text: str, most: int) -> int:
    """Where to cut prose so that at most ``most`` characters stay: line, sentence, word, character, in this order.

    A line is taken from the second half on, a sentence likewise, a space from the second fifth on. ``text`` should
    reach one character beyond ``most``. The result is at least 1 when ``most`` is.
    """
    half = most // 2
    line = text.rfind("\n", half, most + 1)
    if line > 0:
        return line
    ends = [found.end() for found in _SENTENCE_END.finditer(text, max(0, half - 1), most + 1) if found.end() <= most]
    if ends:
        return ends[-1]
    for at in range(min(most, len(text) - 1), most * 2 // 5, -1):
        if _SPACE.match(text, at):
            return at
    return grapheme_start(text, most)
