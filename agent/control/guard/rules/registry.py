"""All rules together, by what they look at."""

from __future__ import annotations

import fnmatch
import functools
import re

from agent.control.guard.expressions import Expression
from agent.control.guard.rules import (
    boxes,
    cloud,
    credentials,
    databases,
    deletion,
    disk,
    environment,
    exec_flags,
    facts,
    git,
    hardline_data,
    history,
    network,
    packages,
    persistence,
    processes,
    remote,
    rights,
    services,
    stores,
    system,
)
from agent.control.guard.rules.model import PlaceRule, Reason, Rule, VariableRule

RULES: tuple[Rule, ...] = (
    *deletion.RULES,
    *disk.RULES,
    *services.RULES,
    *boxes.RULES,
    *processes.RULES,
    *rights.RULES,
    *system.RULES,
    *network.RULES,
    *persistence.RULES,
    *credentials.RULES,
    *history.RULES,
    *git.RULES,
    *stores.RULES,
    *databases.RULES,
    *cloud.RULES,
    *packages.RULES,
    *remote.RULES,
    *exec_flags.RULES,
)
PLACES: tuple[PlaceRule, ...] = (
    *deletion.PLACES,
    *disk.PLACES,
    *rights.PLACES,
    *system.PLACES,
    *persistence.PLACES,
    *credentials.PLACES,
    *history.PLACES,
)
VARIABLES: tuple[VariableRule, ...] = environment.VARIABLES
#: Everything that can be found, for lists and tests.
EVERYTHING: tuple[Reason, ...] = (*hardline_data.RULES, *facts.FACTS, *RULES, *PLACES, *VARIABLES, *hardline_data.CODED)


def _index() -> tuple[dict[str, tuple[Rule, ...]], tuple[tuple[str, Rule], ...]]:
    exact: dict[str, list[Rule]] = {}
    wild: list[tuple[str, Rule]] = []
    for rule in RULES:
        for program in rule.programs.split():
            if "*" in program:
                wild.append((program, rule))
            else:
                exact.setdefault(program, []).append(rule)
    return {program: tuple(rules) for program, rules in exact.items()}, tuple(wild)


_EXACT, _WILD = _index()
_VARIABLE = Expression("|".join(f"(?:{rule.names})" for rule in VARIABLES))


def rules_for(program: str, verb: str = "") -> tuple[Rule, ...]:
    """The rules about a program, by its base name, that its first operand does not rule out."""
    rules, verbs = _of_program(program)
    return rules if not verbs else _of_verb(program, verb if verb in verbs else "")


@functools.lru_cache(maxsize=1_024)
def _of_program(program: str) -> tuple[tuple[Rule, ...], frozenset[str]]:
    """The rules about a program, and the first words of their verbs."""
    wild = tuple(rule for pattern, rule in _WILD if fnmatch.fnmatchcase(program, pattern))
    rules = (*_EXACT.get(program, ()), *wild)
    return rules, frozenset(head for rule in rules for head in rule.heads)


@functools.lru_cache(maxsize=2_048)
def _of_verb(program: str, verb: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in _of_program(program)[0] if not rule.heads or verb in rule.heads)


@functools.lru_cache(maxsize=1_024)
def variable_rules(name: str) -> tuple[VariableRule, ...]:
    """The rules about a variable."""
    if not _VARIABLE.fullmatch(name):
        return ()
    return tuple(rule for rule in VARIABLES if re.fullmatch(rule.names, name))


@functools.lru_cache(maxsize=1)
def by_kind() -> dict[str, tuple[PlaceRule, ...]]:
    """The rules about places, by kind of effect."""
    kinds: dict[str, list[PlaceRule]] = {}
    for rule in PLACES:
        for kind in rule.kinds.split():
            kinds.setdefault(kind, []).append(rule)
    return {kind: tuple(rules) for kind, rules in kinds.items()}
