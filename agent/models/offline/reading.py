"""From a message to calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.models.offline.words import LINE_HEADS, Word


@dataclass(frozen=True, slots=True)
class Reading:
    """What a message was read as.

    Attributes:
        calls: tool and arguments, in order.
        strange: a line that starts like a call, but no active word takes it; then there are no calls at all, for half
            of a message must not run.
    """

    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    strange: str = ""


def read_message(text: str, words: Sequence[Word]) -> Reading:
    """Interpret ``text`` by the active ``words``; the first that fits counts, and a line head before all others."""
    text = text.replace("\r\n", "\n").strip()
    if any(line.startswith(LINE_HEADS) for line in text.split("\n")):
        return _read_lines(text, words)
    for word in words:
        if not word.line_head and (arguments := word.read(text)) is not None:
            return Reading(((word.tool, arguments),))
    return Reading()


def _read_lines(text: str, words: Sequence[Word]) -> Reading:
    calls = []
    for block in _blocks(text):
        head = next(head for head in LINE_HEADS if block.startswith(head))
        body = block.removeprefix(head)
        found = _first(body, [word for word in words if word.line_head == head])
        if found is None:
            return Reading(strange=block.split("\n", 1)[0])
        calls.append(found)
    return Reading(tuple(calls))


def _first(text: str, words: Sequence[Word]) -> tuple[str, dict[str, Any]] | None:
    for word in words:
        if (arguments := word.read(text)) is not None:
            return word.tool, arguments
    return None


def _blocks(text: str) -> list[str]:
    """The message cut before each line that starts a call; what stands before the first is talk and left out."""
    blocks: list[list[str]] = []
    for line in text.split("\n"):
        if line.startswith(LINE_HEADS):
            blocks.append([line])
        elif blocks:
            blocks[-1].append(line)
    return ["\n".join(lines).rstrip("\n") for lines in blocks]
