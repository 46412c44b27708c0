"""The schema as a tree that can be walked: which paths exist, which of them are leaves, what a leaf may hold."""

from __future__ import annotations

import difflib
import functools
import inspect
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from gateway.config import Config, Section

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A key that holds a value.

    Attributes:
        annotation: its type as written in the schema.
        base: the type without metadata: ``str``, ``int``, ``tuple`` ...
        options: the words that it may hold, where those are a fixed set.
        items: type of the items of a list, None for anything else.
        secret: never printed.
    """

    path: Path
    annotation: object
    base: object
    options: tuple[str, ...] = ()
    items: object = None
    secret: bool = False

    @property
    def key(self) -> str:
        """The dotted path."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Branch:
    """A section: its members by name."""

    path: Path
    type: type[Section]
    members: dict[str, Branch | Leaf] = field(default_factory=dict)


@functools.cache
def tree() -> Branch:
    """The whole schema."""
    return _branch((), Config)


def members(branch: Branch | None = None) -> Iterator[Branch | Leaf]:
    """Every section and leaf below ``branch``, in the order of the schema."""
    for member in (branch or tree()).members.values():
        yield member
        if isinstance(member, Branch):
            yield from members(member)


def leaves(branch: Branch | None = None) -> Iterator[Leaf]:
    """Every leaf below ``branch``, in the order of the schema."""
    return (member for member in members(branch) if isinstance(member, Leaf))


def value_at(config: Section, path: Path) -> object:
    """What ``config`` holds at ``path``."""
    value: object = config
    for name in path:
        value = getattr(value, name)
    return value


def secrets_in(config: Section) -> frozenset[str]:
    """Every secret text in ``config``, those inside lists and free-form sections included; empty ones left out."""
    found: set[str] = set()
    for leaf in leaves():
        _collect(value_at(config, leaf.path), leaf.secret, found)
    return frozenset(found)


def fields(section: type[Section]) -> Iterator[Leaf]:
    """The fields of a section that stands inside a list."""
    for name, annotation in typing.get_type_hints(section, include_extras=True).items():
        if not name.startswith("__"):
            yield _leaf((name,), annotation)


def meant(name: str, siblings: Iterable[str], *, everywhere: bool = True) -> str:
    """A suggestion for an unknown key: a sibling with a similar name, or the same name elsewhere in the schema."""
    close = difflib.get_close_matches(name.lower(), list(siblings), n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    if everywhere:
        homes = [".".join(member.path) for member in members() if member.path[-1] == name.lower()]
        if homes:
            return "did you mean " + " or ".join(f"`{home}`" for home in homes[:3]) + "?"
    return ""


def described(section: type[Section]) -> dict[str, str]:
    """The sentences under ``Attributes:`` in the docstring of a section, by name."""
    _, _, attributes = (inspect.getdoc(section) or "").partition("Attributes:\n")
    texts: dict[str, str] = {}
    name = ""
    for line in attributes.splitlines():
        head, colon, rest = line.strip().partition(": ")
        if colon and line.startswith("    ") and not line.startswith("     "):
            name, texts[head] = head, rest
        elif name and line.strip():
            texts[name] += " " + line.strip()
    return texts


def _branch(path: Path, section: type[Section]) -> Branch:
    branch = Branch(path, section)
    for name, annotation in typing.get_type_hints(section, include_extras=True).items():
        if name.startswith("__"):
            continue
        here = (*path, name)
        if isinstance(annotation, type) and issubclass(annotation, Section):
            branch.members[name] = _branch(here, annotation)
        else:
            branch.members[name] = _leaf(here, annotation)
    return branch


def _leaf(path: Path, annotation: object) -> Leaf:
    bare, secret = annotation, False
    if typing.get_origin(bare) is typing.Annotated:
        bare, *metadata = typing.get_args(bare)
        secret = any(isinstance(item, msgspec.Meta) and bool((item.extra or {}).get("secret")) for item in metadata)
    origin = typing.get_origin(bare)
    if origin is typing.Literal:
        return Leaf(path, annotation, str, options=typing.get_args(bare), secret=secret)
    if origin is tuple:
        return Leaf(path, annotation, tuple, items=typing.get_args(bare)[0], secret=secret)
    return Leaf(path, annotation, origin or bare, secret=secret)


def _collect(value: object, secret: bool, found: set[str]) -> None:
    match value:
        case str():
            if secret and value:
                found.add(value)
        case Section():
            for leaf in fields(type(value)):
                _collect(getattr(value, leaf.path[-1]), secret or leaf.secret, found)
        case dict():
            for item in value.values():
                _collect(item, secret, found)
        case list() | tuple():
            for item in value:
                _collect(item, secret, found)
        case _:
            pass
