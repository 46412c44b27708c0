"""Judges one value of the configuration by the leaf that it is meant for, and explains what does not fit."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from gateway import config_tree, config_yaml
from gateway.config_tree import Leaf
from gateway.exceptions import Problem

_AT = re.compile(r"^(?P<reason>.*?)(?: - at `(?P<where>[^`]*)`.*)?$", re.DOTALL)
_UNKNOWN_FIELD = re.compile(r"unknown field `([^`]*)`")


def from_text(leaf: Leaf, text: str) -> object:
    """Read a text by the type of its leaf: a string stays as it is, a list may be comma text, the rest is YAML."""
    stripped = text.strip()
    if leaf.base is str and not leaf.options:
        quoted = len(stripped) > 1 and stripped[0] in "\"'" and stripped[-1] == stripped[0]
        value = config_yaml.scalar(stripped) if quoted else stripped
        return value if isinstance(value, str) else stripped
    if leaf.items is str and not stripped.startswith("["):
        return [item.strip() for item in stripped.split(",") if item.strip()]
    value = config_yaml.scalar(stripped)
    if leaf.base is tuple and value is not None and not isinstance(value, list):
        value = [value]
    return fitting(leaf, value)


def fitting(leaf: Leaf, value: object) -> object:
    """Undo what YAML 1.1 does to plain words: ``off`` is a boolean, an id is a number."""
    if leaf.options and isinstance(value, bool):
        word = _word(value, leaf.options)
        if word is None:
            raise _Explained("is a yes or no here", listed(leaf.options))
        return word
    if leaf.items is str:
        if isinstance(value, str):
            return [item.strip() for item in value.split(",") if item.strip()]
        if isinstance(value, list):
            return [str(item) if isinstance(item, int) and not isinstance(item, bool) else item for item in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return [str(value)]
    if leaf.base is str and not leaf.options and not isinstance(value, str):
        raise _Explained(f"must be text, YAML reads it as {_kind(value)}", "put it in quotes")
    return value


class _Explained(ValueError):
    """A reason together with what to do about it."""


def reason_and_hint(error: ValueError) -> tuple[str, str]:
    """What is wrong with a value, and what to do about it where that is known."""
    reason, *hint = error.args
    return str(reason), str(hint[0]) if hint else ""


def _word(value: bool, options: tuple[str, ...]) -> str | None:
    words = ("on", "yes", "true") if value else ("off", "no", "false")
    return next((word for word in words if word in options), None)


def _kind(value: object) -> str:
    kinds = ((bool, "yes or no"), (int, "a number"), (float, "a number"), (list, "a list"), (dict, "a section"))
    return next((name for kind, name in kinds if isinstance(value, kind)), f"a {type(value).__name__}")


def listed(options: Sequence[str]) -> str:
    """The choices, as a sentence says them."""
    return "one of " + ", ".join(f"`{option}`" for option in options if option)


def explained(leaf: Leaf, place: str, message: str) -> Problem:
    """A message of msgspec without any value, in the words of the file."""
    match = _AT.match(message)
    reason, where = (match["reason"], match["where"] or "") if match else (message, "")
    key = leaf.key + where.removeprefix("$").replace("[...]", "[]")
    if reason.startswith("Invalid enum value"):
        hint = listed(leaf.options) if leaf.options else ""
        return Problem(place, key, "is not one of the values that it can have", hint)
    unknown = _UNKNOWN_FIELD.search(reason)
    if unknown and isinstance(leaf.items, type) and issubclass(leaf.items, msgspec.Struct):
        fields = leaf.items.__struct_fields__
        hint = config_tree.meant(unknown[1], fields, everywhere=False) or listed(fields)
        return Problem(place, f"{key}.{unknown[1]}", "is not a key", hint)
    words = {"`str`": "text", "`int`": "a whole number", "`float`": "a number", "`bool`": "true or false"}
    for kind, word in words.items():
        reason = reason.replace(kind, word)
    return Problem(place, key, reason[:1].lower() + reason[1:])
