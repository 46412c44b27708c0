"""Reads a shell command and says whether it may run, must be asked about, or never runs."""

from __future__ import annotations

from agent.control.guard.guard import Guard
from agent.control.guard.patterns import DANGEROUS_PATTERNS, DangerousPattern
from agent.control.guard.verdict import Assumptions, Finding, Judgement, Shape, Verdict

__all__ = ["DANGEROUS_PATTERNS", "Assumptions", "DangerousPattern", "Finding", "Guard", "Judgement", "Shape", "Verdict"]
