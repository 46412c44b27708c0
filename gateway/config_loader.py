"""Brings the configuration together: command line over environment over file over defaults, with every origin kept."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gateway import config_rules, config_tree, config_values, config_yaml
from gateway.config import Config
from gateway.config_tree import Branch, Leaf
from gateway.exceptions import ConfigError, Problem

PREFIX = "OSTIARY_"

#: Variables with the prefix that are no keys.
NOT_KEYS = frozenset({"OSTIARY_HOME"})


class Layer(enum.Enum):
    """Where a value comes from, weakest first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the value of one leaf comes from.

    Attributes:
        place: file and line, name of the variable, or the option; empty for a default.
    """

    layer: Layer
    place: str = ""

    def __str__(self) -> str:
        return self.place or self.layer.value


DEFAULT = Origin(Layer.DEFAULT)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration that may be used.

    Attributes:
        origins: by dotted key; every leaf of the schema has one.
        private: contents of files named by ``${file:...}``, which are secrets wherever they went.
        file: the file that was read; None where there is none.
    """

    config: Config
    origins: Mapping[str, Origin]
    private: frozenset[str] = frozenset()
    file: Path | None = None

    def secrets(self) -> frozenset[str]:
        """Every text that must not appear in a log."""
        return config_tree.secrets_in(self.config) | self.private

    def ineffective(self) -> list[str]:
        """Sentences about keys that were set and that this version does not use yet."""
        return config_rules.ineffective(self.config, {key: str(origin) for key, origin in self.origins.items()})


@dataclass(frozen=True, slots=True)
class _Setting:
    """One value of one layer, before it was judged. ``text`` values still have to be read as YAML."""

    value: object
    origin: Origin
    text: bool


@dataclass(slots=True)
class _Gathering:
    """What the layers have given so far."""

    environ: Mapping[str, str]
    settings: dict[config_tree.Path, _Setting] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    private: set[str] = field(default_factory=set)


def load(file: Path, *, required: bool, environ: Mapping[str, str], sets: Sequence[str] = ()) -> Loaded:
    """Load the configuration.

    Args:
        file: the configuration file.
        required: whether a missing file is an error (it was named) or means defaults (it is the home's).
        environ: the environment.
        sets: ``a.b=c`` of the command line, the last of equal keys counts.

    Raises:
        ConfigError: with everything that is wrong.
    """
    gathering = _Gathering(environ)
    exists = required or file.exists()
    if exists:
        document = config_yaml.load(file)
        _take_mapping(document.data, config_tree.tree(), _FileLines(file, document.lines), gathering)
    _take_environment(gathering)
    _take_sets(sets, gathering)
    values = _judge(gathering)
    if gathering.problems:
        raise ConfigError(gathering.problems)
    config = msgspec.convert(values, Config)
    origins = {leaf.key: DEFAULT for leaf in config_tree.leaves()}
    origins |= {".".join(path): setting.origin for path, setting in gathering.settings.items()}
    broken = config_rules.check(config, {key: str(origin) for key, origin in origins.items()})
    if broken:
        raise ConfigError(broken)
    return Loaded(config, origins, frozenset(text for text in gathering.private if text), file if exists else None)


@dataclass(frozen=True, slots=True)
class _FileLines:
    """Turns paths into places in a file."""

    file: Path
    lines: Mapping[tuple[str, ...], int]

    def __call__(self, path: config_tree.Path) -> Origin:
        line = self.lines.get(path)
        return Origin(Layer.FILE, f"{self.file}:{line}" if line else str(self.file))


_PlaceOf = Callable[[config_tree.Path], Origin]


def _take_mapping(data: Mapping[object, object], branch: Branch, place: _PlaceOf, gathering: _Gathering) -> None:
    """Sort a nested mapping into leaves. An empty value is as good as an absent one."""
    for name, value in data.items():
        if not isinstance(name, str):
            key = ".".join((*branch.path, str(name)))
            gathering.problems.append(Problem(str(place(branch.path)), key, "is not a name", "put it in quotes"))
            continue
        here = (*branch.path, name)
        member = branch.members.get(name)
        if member is None:
            gathering.problems.append(_unknown(here, branch, str(place(here))))
        elif value is None:
            continue
        elif isinstance(member, Leaf):
            gathering.settings[here] = _Setting(value, place(here), text=False)
        elif isinstance(value, Mapping):
            _take_mapping(value, member, place, gathering)
        else:
            gathering.problems.append(_not_a_section(member, str(place(here))))


def _take_environment(gathering: _Gathering) -> None:
    for name in sorted(gathering.environ):
        if not name.startswith(PREFIX) or name in NOT_KEYS:
            continue
        path = tuple(name.removeprefix(PREFIX).lower().split("__"))
        origin = Origin(Layer.ENVIRONMENT, f"environment variable {name}")
        _take_text(path, gathering.environ[name], origin, gathering)


def _take_sets(sets: Iterable[str], gathering: _Gathering) -> None:
    for item in sets:
        key, equals, text = item.partition("=")
        path = tuple(key.strip().split("."))
        origin = Origin(Layer.COMMAND_LINE, f"--set {key.strip()}")
        if not equals or not all(path):
            example = "for example --set log.level=debug"
            gathering.problems.append(Problem("--set", "", "needs the form a.b=value", example))
            continue
        _take_text(path, text, origin, gathering)


def _take_text(path: config_tree.Path, text: str, origin: Origin, gathering: _Gathering) -> None:
    """Put one text at one path; a section may be given whole, as YAML."""
    member: Branch | Leaf = config_tree.tree()
    for depth, name in enumerate(path):
        if isinstance(member, Leaf) or name not in member.members:
            parent = member if isinstance(member, Branch) else config_tree.tree()
            problem = _unknown(path[: depth + 1], parent, str(origin))
            if origin.layer is Layer.ENVIRONMENT:
                problem = _unknown_variable(path, problem)
            gathering.problems.append(problem)
            return
        member = member.members[name]
    if isinstance(member, Leaf):
        if text.strip() not in {"", "~", "null"}:
            gathering.settings[path] = _Setting(text, origin, text=True)
        return
    try:
        value = config_yaml.scalar(text)
    except ValueError as error:
        gathering.problems.append(Problem(str(origin), member_key(member), str(error)))
        return
    if isinstance(value, Mapping):
        _take_mapping(value, member, lambda _: origin, gathering)
    elif value is not None:
        gathering.problems.append(_not_a_section(member, str(origin)))


def member_key(member: Branch | Leaf) -> str:
    """The dotted path of a member."""
    return ".".join(member.path)


def _judge(gathering: _Gathering) -> dict[str, object]:
    """Convert every setting to its type; what does not fit becomes a problem."""
    values: dict[str, object] = {}
    known = {leaf.path: leaf for leaf in config_tree.leaves()}
    for path, setting in gathering.settings.items():
        leaf = known[path]
        try:
            value = _value(leaf, setting, gathering)
            msgspec.convert(value, leaf.annotation)
        except msgspec.ValidationError as error:
            gathering.problems.append(config_values.explained(leaf, str(setting.origin), str(error)))
        except ValueError as error:
            gathering.problems.append(Problem(str(setting.origin), leaf.key, *config_values.reason_and_hint(error)))
        else:
            section = values
            for name in path[:-1]:
                section = section.setdefault(name, {})  # type: ignore[assignment]
            section[path[-1]] = value
    return values


def _value(leaf: Leaf, setting: _Setting, gathering: _Gathering) -> object:
    """The value to convert: references filled in, texts read as YAML, words of YAML 1.1 put right."""
    if setting.text:
        return config_values.from_text(leaf, str(setting.value))
    if isinstance(setting.value, str):
        filled = _fill(setting.value, gathering)
        return (
            config_values.from_text(leaf, filled.text) if filled.changed else config_values.fitting(leaf, filled.text)
        )
    return config_values.fitting(leaf, _filled_inside(setting.value, gathering))


def _fill(text: str, gathering: _Gathering) -> config_yaml.Filled:
    filled = config_yaml.fill(text, gathering.environ)
    gathering.private.update(filled.private)
    return filled


def _filled_inside(value: object, gathering: _Gathering) -> object:
    match value:
        case str():
            return _fill(value, gathering).text
        case list():
            return [_filled_inside(item, gathering) for item in value]
        case dict():
            return {name: _filled_inside(item, gathering) for name, item in value.items()}
        case _:
            return value


def _unknown(path: config_tree.Path, branch: Branch, place: str) -> Problem:
    hint = config_tree.meant(path[-1], branch.members)
    return Problem(
        place, ".".join(path), "is not a key", hint or f"here can stand {config_values.listed(tuple(branch.members))}"
    )


def _unknown_variable(path: config_tree.Path, problem: Problem) -> Problem:
    """Name the variable that was probably meant, not the key."""
    names = {PREFIX + "__".join(leaf.path).upper(): leaf for leaf in config_tree.leaves()}
    names |= dict.fromkeys(NOT_KEYS)  # type: ignore[arg-type]
    wanted = (PREFIX + "__".join(path)).upper()
    hint = config_tree.meant(wanted.lower(), [name.lower() for name in names], everywhere=False)
    return Problem(problem.source, problem.key, problem.reason, hint.upper().replace("DID YOU MEAN", "did you mean"))


def _not_a_section(branch: Branch, place: str) -> Problem:
    return Problem(
        place,
        ".".join(branch.path),
        "is a section",
        f"below it can stand {config_values.listed(tuple(branch.members))}",
    )
