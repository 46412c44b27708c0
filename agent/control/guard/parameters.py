"""Parameter expansion: ``${name}`` with its operators, on text that may hold gaps."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

from agent.control.guard.expressions import Expression
from agent.control.guard.marks import SECRET, UNKNOWN, has_gap, literal
from agent.control.guard.state import State, Value

_HEAD = Expression(r"(#|!)?([A-Za-z_]\w*|[0-9]+|[@*#?$!_-])(?:\[((?:[^\[\]]|\[[^\]]*\])*)\])?", re.DOTALL)
_SLICE = Expression(r":\s*(-?\s*\d+|\(-?\d+\)|\s+-\d+)\s*(?::\s*(-?\d+))?\Z")

#: Expands the word after an operator.
Words = Callable[[str], str]


def value_of(name: str, subscript: str | None, state: State) -> Value:  # noqa: PLR0911 - one way out a case
    """The value of a parameter before any operator."""
    if name.isdigit() and name != "0":
        if state.positional is None:
            return UNKNOWN
        index = int(name)
        return state.positional[index - 1] if index <= len(state.positional) else ""
    if name in ("@", "*"):
        return list(state.positional) if state.positional is not None else UNKNOWN
    if name in ("#", "?", "-"):
        return UNKNOWN
    value = state.lookup(name)
    if subscript is None:
        return (value[0] if value else "") if isinstance(value, list) else value
    if not isinstance(value, list):
        return value
    if subscript in ("@", "*"):
        return value
    if subscript.lstrip("-").isdigit() and -len(value) <= int(subscript) < len(value):
        return value[int(subscript)]
    return UNKNOWN


def expand(content: str, state: State, words: Words) -> Value:  # noqa: PLR0911 - one way out a case
    """The value of ``${content}``."""
    head = _HEAD.match(content)
    if head is None:
        return UNKNOWN
    prefix, name, subscript = head.groups()
    rest = content[head.end() :]
    if prefix == "#" and not rest:
        return UNKNOWN
    if prefix == "!":
        return _indirect(name, subscript, rest, state)
    value = value_of(name, subscript, state)
    if not rest:
        return value
    if rest[0] in "-=+?" or rest[:2] in (":-", ":=", ":+", ":?"):
        return _alternative(name, value, rest, state, words)
    if isinstance(value, list):
        return [_operate(one, rest, words) for one in value] if rest[0] != ":" else value
    return _operate(str(value), rest, words)


def _indirect(name: str, subscript: str | None, rest: str, state: State) -> Value:
    if rest or subscript is not None:
        return UNKNOWN
    target = value_of(name, None, state)
    return state.lookup(target) if isinstance(target, str) and re.fullmatch(r"[A-Za-z_]\w*", target) else UNKNOWN


def _alternative(name: str, value: Value, rest: str, state: State, words: Words) -> Value:
    colon = rest[0] == ":"
    operator, word = rest[colon], rest[colon + 1 :]
    known = None if value in (UNKNOWN, SECRET) else bool(value) or (not colon and name in state.variables)
    if operator == "+":
        return "" if known is False else words(word)
    if operator == "?":
        words(word)
        return value
    default = words(word)
    if known:
        return value
    if operator == "=" and re.fullmatch(r"[A-Za-z_]\w*", name):
        state.assign(name, default)
    return default


def _operate(value: str, rest: str, words: Words) -> str:  # noqa: PLR0911 - one way out a case
    cut = _SLICE.match(rest)
    if cut:
        return _slice(value, cut)
    if rest[0] in "^,":
        if has_gap(value):
            return value
        change = str.upper if rest[0] == "^" else str.lower
        return change(value) if rest[:2] in ("^^", ",,") else change(value[:1]) + value[1:]
    if rest[0] == "@":
        return value if rest[1:] in ("Q", "E", "P", "A", "K") else UNKNOWN
    if rest[0] in "#%":
        return _trim(value, rest, words)
    if rest[0] == "/":
        return _replace(value, rest, words)
    return UNKNOWN


def _slice(value: str, cut: re.Match[str]) -> str:
    if has_gap(value):
        return UNKNOWN
    start = int(cut[1].strip("() ").replace(" ", ""))
    start = max(0, len(value) + start) if start < 0 else start
    if cut[2] is None:
        return value[start:]
    length = int(cut[2])
    return value[start : start + length] if length >= 0 else value[start:length]


def _trim(value: str, rest: str, words: Words) -> str:
    longest = rest[:2] in ("##", "%%")
    pattern = literal(words(rest[2 if longest else 1 :]))
    if has_gap(value) or has_gap(pattern):
        return UNKNOWN
    front = rest[0] == "#"
    if front:
        cuts = range(len(value), -1, -1) if longest else range(len(value) + 1)
        return next((value[cut:] for cut in cuts if fnmatch.fnmatchcase(value[:cut], pattern)), value)
    cuts = range(len(value) + 1) if longest else range(len(value), -1, -1)
    return next((value[:cut] for cut in cuts if fnmatch.fnmatchcase(value[cut:], pattern)), value)


def _replace(value: str, rest: str, words: Words) -> str:
    every = rest[:2] == "//"
    body = rest[2 if every else 1 :]
    match = re.match(r"((?:\\.|[^\\/])+)(?:/(.*))?\Z", body, re.DOTALL)
    if match is None:
        return UNKNOWN
    pattern, new = literal(words(match[1])), words(match[2] or "")
    if has_gap(value) or has_gap(pattern):
        return UNKNOWN
    anchor = pattern[:1] if pattern[:1] in ("#", "%") else ""
    expression = fnmatch.translate(pattern[len(anchor) :]).removesuffix(r"\Z").removesuffix(r"\z")
    if anchor:
        expression = f"\\A(?:{expression})" if anchor == "#" else f"(?:{expression})\\Z"
    return re.sub(expression, lambda _: new, value, count=0 if every else 1)
