"""The labelled commands as a floor that the guard must not fall below."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.agent.control.guard import corpus

BASE = ("file-deletion", "disk", "sql", "services", "process", "remote-exec")

#: Share of the approve and refuse lines of each category that must not come out safe. Raise one when the rules grow.
RECALL = {
    "cloud": 1.0,
    "containers": 1.0,
    "datastore": 1.0,
    "disk": 1.0,
    "environment": 1.0,
    "exec-flag": 1.0,
    "exfiltration": 1.0,
    "file-deletion": 1.0,
    "git": 1.0,
    "history": 1.0,
    "interpreter": 1.0,
    "interpreter-benign": 1.0,
    "multi-line": 1.0,
    "network": 1.0,
    "obfuscation": 1.0,
    "packages": 1.0,
    "parser": 1.0,
    "permissions": 1.0,
    "persistence": 1.0,
    "process": 1.0,
    "remote-exec": 1.0,
    "secrets": 1.0,
    "self-protect": 1.0,
    "services": 1.0,
    "sql": 1.0,
    "system-write": 1.0,
    "wrapper": 1.0,
}


def test_the_corpus_is_whole() -> None:
    labels = Counter(row.label for row in corpus.rows())
    assert labels == {"safe": 726, "approve": 549, "refuse": 118}


def test_every_category_with_dangers_has_a_floor() -> None:
    assert set(RECALL) == {row.category for row in corpus.rows() if row.label != "safe"}
    assert set(BASE) <= set(RECALL)


@pytest.mark.parametrize("category", sorted(RECALL))
def test_recall_of(category: str) -> None:
    dangers = [row for row in corpus.rows() if row.category == category and row.label != "safe"]
    missed = [row.command for row in dangers if corpus.verdict(row.command).label == "safe"]
    assert 1 - len(missed) / len(dangers) >= RECALL[category], missed


def test_refusals_are_exact() -> None:
    wrong = [
        (row.label, row.command)
        for row in corpus.rows()
        if (row.label == "refuse") != (corpus.verdict(row.command).label == "refuse")
    ]
    assert wrong == []


def test_safe_lines_are_left_alone() -> None:
    disturbed = [row.command for row in corpus.rows() if row.label == "safe" and corpus.verdict(row.command)]
    assert disturbed == []


def test_findings_are_worst_first_and_say_why() -> None:
    for row in corpus.rows():
        judgement = corpus.guard().judge(row.command)
        verdicts = [finding.verdict for finding in judgement.findings]
        assert verdicts == sorted(verdicts, reverse=True)
        assert judgement.verdict == max(verdicts, default=0)
        assert all(finding.reason.endswith(".") for finding in judgement.findings)


def test_categories_are_those_of_the_corpus() -> None:
    known = {row.category for row in corpus.rows()}
    for row in corpus.rows():
        judgement = corpus.guard().judge(row.command)
        assert judgement.category is None or judgement.category in known
