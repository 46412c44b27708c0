"""YAML as the configuration file is written in it: no duplicate keys, errors with lines, references filled in."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from yaml import CSafeLoader

from gateway.exceptions import ConfigError, Problem

#: ``${NAME}``, ``${file:PATH}``; ``$${`` stands for a literal ``${``.
REFERENCE = re.compile(r"\$\$\{|\$\{(?P<body>[^{}]*)\}")

#: Longest configuration file and longest file behind ``${file:...}``.
MAX_BYTES = 1_048_576


class _Duplicate(yaml.MarkedYAMLError):
    """A key that stands twice in one mapping."""


class _Loader(CSafeLoader):
    """PyYAML keeps the last of two equal keys silently; this one refuses."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen:
                    problem = f"the key {key_node.value!r} stands twice"
                    raise _Duplicate(problem=problem, problem_mark=key_node.start_mark)
                seen.add(key_node.value)
        mapping: dict[Hashable, object] = super().construct_mapping(node, deep=deep)
        return mapping


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file.

    Attributes:
        data: the top-level mapping; empty for an empty file.
        lines: the line of every key, by path.
    """

    data: Mapping[object, object]
    lines: Mapping[tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class Filled:
    """A text after its references were filled in.

    Attributes:
        changed: whether there were any.
        private: contents of files that were read for it, which are credentials more often than not.
    """

    text: str
    changed: bool
    private: tuple[str, ...] = ()


def scalar(text: str) -> object:
    """The value that ``text`` has in YAML, as on the command line and in the environment.

    Raises:
        ValueError: it is no YAML; the message does not repeat it.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of the safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ValueError("is not valid YAML") from None


def load(path: Path) -> Document:
    """Read and parse ``path``.

    Raises:
        ConfigError: unreadable, too large, not UTF-8, not YAML, a duplicate key, or no mapping at the top.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ConfigError(Problem(str(path), "", f"is larger than {MAX_BYTES:,} bytes"))
        text = raw.decode("utf-8-sig")
    except OSError as error:
        reason = f"cannot be read: {error.strerror or type(error).__name__}"
        raise ConfigError(Problem(str(path), "", reason, "check the path and who may read it")) from error
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(Problem(f"{path}:{line}", "", "is not UTF-8", "save it as UTF-8")) from None
    return parse(text, path)


def parse(text: str, path: Path) -> Document:
    """Parse ``text``; ``path`` is only for the messages.

    Raises:
        ConfigError: as :func:`load`.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return Document({}, {})
        lines: dict[tuple[str, ...], int] = {}
        _note_lines(node, (), lines)
        data = loader.construct_document(node)
    except _Duplicate as error:
        raise ConfigError(_marked(path, error, "keep one of them")) from None
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_marked(path, error, _hint(text, error))) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(Problem(str(path), "", f"is not valid YAML ({type(error).__name__})")) from None
    finally:
        loader.dispose()
    if data is None:
        return Document({}, {})
    if not isinstance(data, dict):
        reason = "must hold sections: `name:` lines with indented keys below"
        raise ConfigError(Problem(f"{path}:1", "", reason, "see `ostiary config show`"))
    return Document(data, lines)


def fill(text: str, environ: Mapping[str, str]) -> Filled:
    """Fill ``${NAME}`` from the environment and ``${file:PATH}`` from a file (its last line end is dropped).

    Raises:
        ValueError: a missing variable or file; the message names it.
    """
    private: list[str] = []

    def replace(match: re.Match[str]) -> str:
        body = match["body"]
        if body is None:
            return "${"
        if body.startswith("file:"):
            content = _file(body.removeprefix("file:").strip())
            private.append(content)
            return content
        name = body.strip()
        if name not in environ:
            raise ValueError(f"refers to the environment variable {name or '(no name)'}, which is not set")
        return environ[name]

    filled, count = REFERENCE.subn(replace, text)
    return Filled(filled, bool(count), tuple(private))


def _file(name: str) -> str:
    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"refers to the file {name}, which cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise ValueError(f"refers to the file {name}, which is larger than {MAX_BYTES:,} bytes")
    try:
        return raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ValueError(f"refers to the file {name}, which is not UTF-8") from None


def _note_lines(node: yaml.Node, path: tuple[str, ...], lines: dict[tuple[str, ...], int]) -> None:
    if len(path) > 20 or not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            here = (*path, key.value)
            lines[here] = key.start_mark.line + 1
            _note_lines(value, here, lines)


def _marked(path: Path, error: yaml.MarkedYAMLError, suggestion: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = f"{path}:{mark.line + 1}" if mark is not None else str(path)
    return Problem(place, "", error.problem or error.context or "is not valid YAML", suggestion)


def _hint(text: str, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    lines = text.splitlines()
    if mark is not None and mark.line < len(lines) and "\t" in lines[mark.line]:
        return "use spaces, not a tab"
    return "check the indent and the colons of this line and the one before"
