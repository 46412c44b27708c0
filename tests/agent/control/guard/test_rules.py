"""Each rule finds its own examples and leaves the others alone."""

from __future__ import annotations

import re

import pytest

from agent.control.guard.rules import registry
from agent.control.guard.rules.model import Reason, Rule
from tests.agent.control.guard import corpus

_EVERYTHING = registry.EVERYTHING


@pytest.mark.parametrize("rule", _EVERYTHING, ids=lambda rule: rule.id)
def test_examples(rule: Reason) -> None:
    assert [one for one in rule.match if rule.id not in corpus.rules(one)] == []
    assert [one for one in rule.spare if rule.id in corpus.rules(one)] == []


def test_every_rule_has_examples_and_words() -> None:
    for rule in _EVERYTHING:
        assert rule.match, rule.id
        assert rule.spare, rule.id
        assert rule.reason.endswith("."), rule.id
        assert re.fullmatch(r"[a-z0-9]+(?:[.-][a-z0-9-]+)+", rule.id), rule.id
        assert re.fullmatch(r"A(?:[1-9]|1\d|2[0-2])|H[1-8]", rule.cls), rule.id


def test_ids_are_unique() -> None:
    ids = [rule.id for rule in _EVERYTHING]
    assert len(ids) == len(set(ids))


def test_categories_are_those_of_the_corpus() -> None:
    assert {rule.category for rule in _EVERYTHING} <= {row.category for row in corpus.rows()}


def test_every_hardline_class_has_a_rule() -> None:
    assert {rule.cls for rule in _EVERYTHING if rule.cls.startswith("H")} == {f"H{number}" for number in range(1, 9)}


def test_expressions_of_rules_compile() -> None:
    for rule in registry.RULES:
        assert isinstance(rule, Rule)
        for expression in (rule.first, rule.operand, rule.value, rule.text):
            re.compile(expression)
