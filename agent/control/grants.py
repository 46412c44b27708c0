"""Matching of standing permissions. What a grant covers is decided here and nowhere else."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.control.guard.verdict import Finding, Judgement, Verdict


@dataclass(frozen=True, slots=True)
class GrantDraft:
    """What would be granted for one finding: rule, command shape, path scope."""

    rule: str
    shape: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """A standing permission.

    Attributes:
        paths: absolute paths that operands must equal or lie below; empty covers only a command without operands.
        principal: None speaks for everybody (a permanent grant).
        session: None for a permanent grant.
        uses_left: None for unlimited.
        by: who gave it.
    """

    id: str
    rule: str
    shape: str
    paths: tuple[str, ...]
    principal: str | None
    session: str | None
    by: str
    at: datetime
    expires: datetime | None = None
    uses_left: int | None = None
    note: str = ""


def drafts_of(judgement: Judgement) -> tuple[GrantDraft, ...] | None:
    """One draft a finding, or None when some finding has no shape or may not be granted."""
    drafts = []
    for finding in judgement.findings:
        if finding.shape is None or finding.verdict is not Verdict.APPROVE:
            return None
        drafts.append(GrantDraft(finding.rule, finding.shape.text(), finding.paths))
    return tuple(dict.fromkeys(drafts))


def covers(grant: Grant, finding: Finding) -> bool:
    """Whether ``grant`` permits what ``finding`` found.

    Rule and shape must be equal; every operand must equal a granted path or lie below one. A refusal is never covered,
    nor a finding that could not be resolved.
    """
    if finding.verdict is not Verdict.APPROVE or finding.shape is None:
        return False
    if grant.rule != finding.rule or grant.shape != finding.shape.text():
        return False
    if not finding.paths:
        return not grant.paths
    return all(any(_within(path, root) for root in grant.paths) for path in finding.paths)


def cover(judgement: Judgement, grants: Iterable[Grant]) -> tuple[Grant, ...] | None:
    """The grants that together cover every finding, or None when one is left over."""
    pool: Sequence[Grant] = tuple(grants)
    used: dict[str, Grant] = {}
    for finding in judgement.findings:
        match = next((grant for grant in pool if covers(grant, finding)), None)
        if match is None:
            return None
        used[match.id] = match
    return tuple(used.values())


def _within(path: str, root: str) -> bool:
    path, root = posixpath.normpath(path), posixpath.normpath(root)
    if not (path.startswith("/") and root.startswith("/")):
        return False
    return path == root or path.startswith(root.rstrip("/") + "/")
