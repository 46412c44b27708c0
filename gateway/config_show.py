"""Prints a configuration, and describes its schema for the manual."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from agent.control.redact import MASK
from gateway import config_rules, config_tree
from gateway.config import Config, Section
from gateway.config_loader import Loaded
from gateway.config_tree import Branch, Leaf


@dataclass(frozen=True, slots=True)
class Row:
    """One leaf as it is shown.

    Attributes:
        value: plain value with secrets masked.
        origin: where it comes from.
    """

    key: str
    value: object
    origin: str

    @property
    def text(self) -> str:
        """The value as it could stand in the file."""
        return json.dumps(self.value, ensure_ascii=False)


def rows(loaded: Loaded) -> list[Row]:
    """Every leaf in the order of the schema."""
    return [Row(leaf.key, _shown(loaded, leaf), str(loaded.origins[leaf.key])) for leaf in config_tree.leaves()]


def nested(loaded: Loaded) -> dict[str, object]:
    """The configuration as nested sections."""
    result: dict[str, object] = {}
    for leaf in config_tree.leaves():
        section = result
        for name in leaf.path[:-1]:
            section = section.setdefault(name, {})  # type: ignore[assignment]
        section[leaf.path[-1]] = _shown(loaded, leaf)
    return result


def manual() -> str:
    """The tables of ``docs/configuration.md``: every section, every key, its type, its default, what it does."""
    return "\n".join(_sections(config_tree.tree())).strip() + "\n"


def _sections(branch: Branch) -> Iterator[str]:
    leaves = [member for member in branch.members.values() if isinstance(member, Leaf)]
    if leaves:
        yield _table(".".join(branch.path), branch.type, leaves, Config())
    for leaf in leaves:
        if isinstance(leaf.items, type) and issubclass(leaf.items, Section):
            yield _table(f"{leaf.key}[]", leaf.items, list(config_tree.fields(leaf.items)), None)
    for member in branch.members.values():
        if isinstance(member, Branch):
            yield from _sections(member)


def _table(title: str, section: type[Section], leaves: list[Leaf], defaults: Config | None) -> str:
    texts = config_tree.described(section)
    lines = [
        f"\n## `{title}`\n",
        (section.__doc__ or "").split("\n", 1)[0],
        "",
        "| key | type | default | |",
        "|---|---|---|---|",
    ]
    for leaf in leaves:
        default = _default(leaf, defaults) if defaults is not None else ""
        later = " *Not in this version.*" if config_rules.later(leaf.key) else ""
        lines.append(f"| `{leaf.path[-1]}` | {_type(leaf)} | {default} | {texts.get(leaf.path[-1], '')}{later} |")
    return "\n".join(lines)


def _type(leaf: Leaf) -> str:
    if leaf.options:
        return ", ".join(f"`{option}`" if option else "empty" for option in leaf.options)
    if leaf.base is tuple:
        choices = typing.get_args(leaf.items) if typing.get_origin(leaf.items) is typing.Literal else ()
        options = ", ".join(f"`{choice}`" for choice in choices)
        return f"list of {options}" if options else "list of texts" if leaf.items is str else "list of sections"
    words = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`", dict: "sections by name"}
    text = next((word for kind, word in words.items() if leaf.base is kind), "")
    return f"{text}, secret" if leaf.secret and leaf.base is str else text


def _default(leaf: Leaf, defaults: Config) -> str:
    if leaf.key == "sandbox.max_running":
        return "2 a core"
    value = config_tree.value_at(defaults, leaf.path)
    if value in ("", (), {}):
        return ""
    text = f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
    return f"`{text}`"


def _shown(loaded: Loaded, leaf: Leaf) -> object:
    return _masked(config_tree.value_at(loaded.config, leaf.path), leaf.secret, loaded.private)


def _masked(value: object, secret: bool, private: frozenset[str]) -> object:
    """``value`` in plain types; an empty secret stays empty, so that one sees that it is missing."""
    if secret and value not in ("", (), {}):
        return MASK
    match value:
        case str():
            return MASK if any(text in value for text in private) else value
        case Section():
            leaves = config_tree.fields(type(value))
            return {leaf.path[-1]: _masked(getattr(value, leaf.path[-1]), leaf.secret, private) for leaf in leaves}
        case tuple():
            return [_masked(item, secret, private) for item in value]
        case _:
            return msgspec.to_builtins(value)
