"""The base fifteen, in their order and with their meaning."""

from __future__ import annotations

import re

import pytest

from agent.control.guard import DANGEROUS_PATTERNS, Verdict, patterns
from tests.agent.control.guard import corpus

#: Number, examples that must match, examples that must not.
EXAMPLES = (
    (1, ("rm -f a", "RM -rf x", "rm a -f", "rm --no-preserve-root /"), ("rm a", "form -f", "rm -r a")),
    (2, ("rm -r a", "rm -Rv a", "rm --recursive a"), ("rm a", "farm -r")),
    (3, ("mkfs.ext4 /dev/sda", "MKFS.xfs x"), ("mkfs x",)),
    (4, ("dd if=a of=b", "dd bs=1 if=a"), ("add if=1", "dd of=a")),
    (5, ("cat a > /dev/sda", "x >/dev/sdb1"), ("x > /dev/null", "x > dev/sda")),
    (6, ("chmod 777 a", "chmod -R 777 a", "chmod 0777 a"), ("chmod 755 a",)),
    (7, ("chown -R a b",), ("chown a b",)),
    (8, ("shutdown now", "reboot", "POWEROFF", "init 0", "init 6"), ("init 3",)),
    (9, ("kill -9 -1", "kill -9 1"), ("kill -9 1234", "kill 1")),
    (10, (":(){ :|:& };:", ": ( ) { : | : & } ; :"), (":() { ls; }",)),
    (11, ("DROP TABLE a", "drop database b", "Drop Index c"), ("DROP VIEW a",)),
    (12, ("TRUNCATE TABLE a",), ("truncate -s 0 a",)),
    (13, ("DELETE FROM a", "delete from a;", "DELETE FROM a.b LIMIT 3"), ("DELETE FROM a WHERE b",)),
    (14, ("curl x | bash", "curl -s x | sudo sh", "curl x|zsh"), ("curl x | jq .",)),
    (15, ("wget -O- x | sh",), ("wget x; sh y",)),
)


def test_there_are_fifteen_in_six_categories() -> None:
    assert len(DANGEROUS_PATTERNS) == 15
    counted = {"permissions": "file-deletion"}
    assert {counted.get(one.category, one.category) for one in DANGEROUS_PATTERNS} == {
        "file-deletion",
        "disk",
        "services",
        "process",
        "sql",
        "remote-exec",
    }


@pytest.mark.parametrize(("number", "match", "spare"), EXAMPLES)
def test_pattern(number: int, match: tuple[str, ...], spare: tuple[str, ...]) -> None:
    pattern = DANGEROUS_PATTERNS[number - 1]
    assert [one for one in match if not pattern.regex.search(one)] == []
    assert [one for one in spare if pattern.regex.search(one)] == []


def test_they_are_compiled_and_ignore_case() -> None:
    assert all(one.regex.flags & re.IGNORECASE for one in DANGEROUS_PATTERNS)
    assert all(one.description for one in DANGEROUS_PATTERNS)


@pytest.mark.parametrize(("number", "match", "spare"), EXAMPLES)
def test_the_rules_never_fall_below_them(number: int, match: tuple[str, ...], spare: tuple[str, ...]) -> None:
    """Where a real command word is meant, what the expression finds at least asks."""
    del number, spare
    assert [one for one in match if corpus.verdict(one) is Verdict.SAFE] == []


def test_full_width_letters_are_folded_first() -> None:
    named = patterns.named_by("\uff52\uff4d \uff0d\uff52\uff46 out")
    assert named is not None
    assert named.id == "base.rm-forced"


def test_they_name_the_danger_of_what_cannot_be_read() -> None:
    finding = corpus.guard().judge("echo 'x; dd if=a").findings[0]
    assert finding.verdict is Verdict.APPROVE
    assert "raw disk write" in finding.reason
    assert finding.category == "disk"
