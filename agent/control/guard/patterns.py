"""The base fifteen: expressions over the text that name the classic dangers.

They match text where a shell sees words, so they do not decide: the parsed rules do, and cover all that these mean.
They name the danger on the card of a command that could not be read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.control.guard import normalise


@dataclass(frozen=True, slots=True)
class DangerousPattern:
    """One expression with its meaning.

    Attributes:
        id: dotted rule id.
        regex: precompiled, case-insensitive; matched after Unicode normalisation.
        description: what it means, for people.
        category: one of the corpus's categories.
    """

    id: str
    regex: re.Pattern[str]
    description: str
    category: str


def _pattern(id_: str, regex: str, description: str, category: str) -> DangerousPattern:
    return DangerousPattern(f"base.{id_}", re.compile(regex, re.IGNORECASE), description, category)


#: In this order; the first hit names the danger.
DANGEROUS_PATTERNS: tuple[DangerousPattern, ...] = (
    _pattern(
        "rm-forced",
        r"\brm\b(?=[^\n;|&]*?\s(?:-[a-z]*f[a-z]*|--force|--no-preserve-root)(?![\w-]))",
        "recursive or forced file deletion",
        "file-deletion",
    ),
    _pattern(
        "rm-recursive",
        r"\brm\b(?=[^\n;|&]*?\s(?:-[a-z]*r[a-z]*|--recursive)(?![\w-]))",
        "recursive file deletion",
        "file-deletion",
    ),
    _pattern("mkfs", r"\bmkfs\.", "file system format", "disk"),
    _pattern("dd", r"\bdd\b[^\n;|&]*?\sif\s*=", "raw disk write", "disk"),
    _pattern("device-write", r">\s*/dev/sd[a-z]", "direct device write", "disk"),
    _pattern("chmod-777", r"\bchmod\s+(?:-R\s+)?0?777\b", "world-writable permissions", "permissions"),
    _pattern("chown-recursive", r"\bchown\s+-R\b", "recursive ownership change", "permissions"),
    _pattern("power", r"\b(?:shutdown|reboot|poweroff)\b|\binit\s+[06]\b", "system shutdown or reboot", "services"),
    _pattern("kill-all", r"\bkill\s+-9\s+-?1\b", "kill all processes", "process"),
    _pattern("fork-bomb", r":\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;\s*:", "fork bomb", "process"),
    _pattern("sql-drop", r"\bDROP\s+(?:TABLE|DATABASE|INDEX)\b", "SQL destructive operation", "sql"),
    _pattern("sql-truncate", r"\bTRUNCATE\s+TABLE\b", "SQL truncate", "sql"),
    _pattern(
        "sql-delete",
        r"\bDELETE\s+FROM\s+[\w.\"`\[\]]+(?!\s*[\w.\"`\[\]]*\s+WHERE\b)",
        "SQL delete without WHERE",
        "sql",
    ),
    _pattern(
        "curl-shell", r"\bcurl\b[^\n;&]*\|\s*(?:sudo\s+)?(?:ba|z)?sh\b", "remote script into a shell", "remote-exec"
    ),
    _pattern(
        "wget-shell", r"\bwget\b[^\n;&]*\|\s*(?:sudo\s+)?(?:ba|z)?sh\b", "remote script into a shell", "remote-exec"
    ),
)


def named_by(command: str) -> DangerousPattern | None:
    """The first of the fifteen that matches the command's folded text; None when none does."""
    text = normalise.fold(command).replace("\\\n", " ")
    return next((pattern for pattern in DANGEROUS_PATTERNS if pattern.regex.search(text)), None)
