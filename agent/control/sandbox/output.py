"""What a job printed, kept in bounded memory and made safe to show.

Bytes are collected raw and decoded once at the end, so a character that lies across two reads is never torn.
"""

from __future__ import annotations

import re

from agent.control.sandbox.base import Output

#: Colour and erase-to-end-of-line sequences hold no text and are dropped; every other escape is shown.
_COLOUR = re.compile(r"\x1b\[[0-9;:]*[mK]")

#: Line ends of other systems, and the lone carriage return with which a line can overwrite (and hide) itself.
_LINE_END = re.compile(r"\r+\n?")

#: Bidirectional embeddings, overrides and isolates: they reorder what a reader sees (CVE-2021-42574).
_BIDI = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))

#: C0 controls and DEL as control pictures (U+2400 block), C1 and bidi controls by their number.
_VISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: "\u2421",
    **{code: f"<U+{code:04X}>" for code in (*range(0x80, 0xA0), *_BIDI)},
}


def make_visible(text: str) -> str:
    """Return ``text`` without colour codes, with line feeds only, and with every control character visible."""
    return _LINE_END.sub("\n", _COLOUR.sub("", text)).translate(_VISIBLE)


def decode(data: bytes) -> str:
    """Decode UTF-8; each invalid sequence becomes U+FFFD."""
    return data.decode("utf-8", errors="replace")


class OutputCollector:
    """Keeps the first and the last half of ``limit`` bytes, and counts the rest.

    Memory stays below three halves of ``limit`` plus one read, whatever a job prints.
    """

    def __init__(self, limit: int) -> None:
        self._head_limit = max(limit, 2) - max(limit, 2) // 2
        self._tail_limit = max(limit, 2) // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        """Take the next piece of raw output."""
        self._total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data[-self._tail_limit :]
            if len(self._tail) > 2 * self._tail_limit:
                del self._tail[: -self._tail_limit]

    def output(self) -> Output:
        """The text so far. At most three bytes of text for each byte of the limit, plus the mark."""
        del self._tail[: -self._tail_limit]
        left_out = self._total - len(self._head) - len(self._tail)
        if not left_out:
            return Output(make_visible(decode(bytes(self._head + self._tail))), self._total)
        head = _without_torn_end(bytes(self._head))
        tail = _without_torn_start(bytes(self._tail))
        left_out = self._total - len(head) - len(tail)
        mark = f"\n[... {left_out:,} bytes left out ...]\n"
        return Output(make_visible(decode(head)) + mark + make_visible(decode(tail)), self._total, truncated=True)


def _without_torn_end(data: bytes) -> bytes:
    """Drop the start of a character whose rest lies behind the cut."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] if needed > back else data
    return data


def _without_torn_start(data: bytes) -> bytes:
    """Drop the rest of a character whose start lies before the cut."""
    skip = 0
    while skip < min(3, len(data)) and data[skip] & 0b1100_0000 == 0b1000_0000:
        skip += 1
    return data[skip:]
