"""A grant covers the same rule, the same shape, and paths at or below those granted; nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent.control.grants import Grant, cover, covers, drafts_of
from agent.control.guard.verdict import Finding, Judgement, Shape, Verdict

AT = datetime(2026, 1, 1, tzinfo=UTC)


def finding(*paths: str, options: tuple[str, ...] = ("-f", "-r"), rule: str = "file.rm-recursive") -> Finding:
    return Finding(
        rule=rule,
        cls="A1",
        category="file-deletion",
        verdict=Verdict.APPROVE,
        reason="deletes",
        segment="rm",
        shape=Shape("rm", (), options),
        paths=paths,
    )


def grant(*paths: str, shape: str = "rm -f -r", rule: str = "file.rm-recursive") -> Grant:
    return Grant("g1", rule, shape, paths, principal="test:a", session="s", by="test:a", at=AT)


@pytest.mark.parametrize(
    ("granted", "operands", "covered"),
    [
        (("/workspace/build",), ("/workspace/build",), True),
        (("/workspace/build",), ("/workspace/build/x",), True),
        (("/workspace/build",), ("/workspace/build/../src",), False),
        (("/workspace/build",), ("/workspace/building",), False),
        (("/workspace/build",), ("/srv",), False),
        (("/workspace/build",), ("/workspace/build", "/srv"), False),
        (("/workspace/a", "/workspace/b"), ("/workspace/b", "/workspace/a"), True),
        (("/workspace/build",), (), False),
        ((), (), True),
        ((), ("/workspace/build",), False),
        (("build",), ("/workspace/build",), False),
        (("/",), ("/workspace/build",), True),
    ],
)
def test_paths_must_lie_at_or_below_what_was_granted(
    granted: tuple[str, ...], operands: tuple[str, ...], covered: bool
) -> None:
    assert covers(grant(*granted), finding(*operands)) is covered


def test_other_options_are_another_shape() -> None:
    assert not covers(grant("/workspace/build"), finding("/workspace/build", options=("-r",)))


def test_another_rule_is_not_covered() -> None:
    assert not covers(grant("/workspace/build", rule="file.rm-force"), finding("/workspace/build"))


def test_a_refusal_is_never_covered() -> None:
    refused = Finding(
        rule="file.rm-recursive",
        cls="H1",
        category="file-deletion",
        verdict=Verdict.REFUSE,
        reason="root",
        segment="rm -rf /",
        shape=Shape("rm", (), ("-f", "-r")),
        paths=("/",),
    )
    assert not covers(grant("/"), refused)
    assert drafts_of(Judgement(Verdict.REFUSE, (refused,))) is None


def test_what_has_no_shape_cannot_be_granted() -> None:
    unread = Finding(
        rule="unreadable.syntax",
        cls="A19",
        category="obfuscation",
        verdict=Verdict.APPROVE,
        reason="cannot be read",
        segment="(",
    )
    assert drafts_of(Judgement(Verdict.APPROVE, (unread,))) is None
    assert not covers(grant(), unread)


def test_every_finding_needs_its_own_cover() -> None:
    both = Judgement(Verdict.APPROVE, (finding("/workspace/build"), finding("/workspace/build", rule="other.rule")))
    assert cover(both, [grant("/workspace/build")]) is None
    second = Grant("g2", "other.rule", "rm -f -r", ("/workspace",), "test:a", "s", "test:a", AT)
    used = cover(both, [grant("/workspace/build"), second])
    assert used is not None
    assert [item.id for item in used] == ["g1", "g2"]
