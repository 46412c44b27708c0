"""Characters that do not show, or that change how others are shown, made visible.

The same rule as on the gateway's page: control and format characters (zero-width, bidi), separators other than the
plain space, fillers, variation selectors, private, unassigned and lone surrogates.
"""

from __future__ import annotations

import unicodedata

_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_RANGES = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_PLAIN = frozenset("\n\t ")


def visible(text: str) -> str:
    r"""``text`` with every unseen character spelled out, as in ``⟨U+202E⟩``; line feed, tab and space stay."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(f"⟨U+{ord(char):04X}⟩" if _unseen(char) else char for char in text)


def _unseen(char: str) -> bool:
    if char in _PLAIN:
        return False
    if unicodedata.category(char)[0] in "CZ" or char in _FILLERS:
        return True
    return any(first <= ord(char) <= last for first, last in _RANGES)
