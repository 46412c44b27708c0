"""Brace expansion of a word as written: ``{a,b}{1..3}``."""

from __future__ import annotations

import itertools
import re

from agent.control.guard import prepass
from agent.control.guard.exceptions import OverLimit
from agent.control.guard.expressions import Expression

#: Fields that one word may become.
MAX_FIELDS = 256

_RANGE = Expression(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?")


def expand(word: str) -> list[str]:
    """The words that a word with braces becomes; quotes are kept.

    Raises:
        OverLimit: more than :data:`MAX_FIELDS` words.
    """
    found = _first_group(word)
    if found is None:
        return [word]
    start, end, parts = found
    tails = expand(word[end:])
    heads = [one for part in parts for one in expand(part)]
    if len(heads) * len(tails) > MAX_FIELDS:
        raise OverLimit("a word expands to too many fields")
    return [f"{word[:start]}{head}{tail}" for head in heads for tail in tails]


def _first_group(word: str) -> tuple[int, int, list[str]] | None:
    """Start, end and alternatives of the first brace group that expands."""
    starts: list[tuple[int, list[int]]] = []
    groups: list[tuple[int, int, list[str]]] = []
    position = 0
    while position < len(word):
        char = word[position]
        if char in "\\'\"`$":
            position = _skip(word, position)
            continue
        if char in "<>" and word.startswith("(", position + 1):
            position = prepass.end_of_substitution(word, position + 2)
            continue
        if char == "{":
            starts.append((position, []))
        elif char == "," and starts:
            starts[-1][1].append(position)
        elif char == "}" and starts:
            opened, commas = starts.pop()
            parts = _parts(word, opened, position, commas)
            if parts is not None:
                groups.append((opened, position + 1, parts))
        position += 1
    return min(groups, default=None, key=lambda group: group[0])


def _parts(word: str, start: int, end: int, commas: list[int]) -> list[str] | None:
    if commas:
        edges = [start, *commas, end]
        return [word[left + 1 : right] for left, right in itertools.pairwise(edges)]
    match = _RANGE.fullmatch(word[start + 1 : end])
    return _range(match) if match else None


def _range(match: re.Match[str]) -> list[str] | None:
    first, last, step_text = match.groups()
    step = abs(int(step_text or 1)) or 1
    if first.lstrip("-").isdigit() != last.lstrip("-").isdigit():
        return None
    letters = first.isalpha()
    low, high = (ord(first), ord(last)) if letters else (int(first), int(last))
    if abs(high - low) // step >= MAX_FIELDS:
        raise OverLimit("a word expands to too many fields")
    numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    return [chr(number) if letters else str(number) for number in numbers]


def _skip(word: str, position: int) -> int:
    char = word[position]
    if char == "$" and not word.startswith(("$(", "${", "$'", '$"'), position):
        return position + 1
    if word.startswith('$"', position):
        position += 1
    return prepass.end_of_part(word, position)
