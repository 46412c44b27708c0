"""Digests of the files that a command names as program or script, so that what was approved is what runs."""

from __future__ import annotations

import asyncio
import json
import posixpath
from collections.abc import Iterable
from pathlib import Path

from agent.control.files import PathRefused, sha256_file
from agent.control.sandbox.base import WORKSPACE

#: A larger script is bound by its size and mtime alone being unreadable here: it counts as "too large".
MAX_SCRIPT_FILE_BYTES = 16 * 1024 * 1024

#: More named files than this are not looked at; the count itself is part of the evidence.
MAX_FILES = 32


async def evidence_of(scripts: Iterable[str], workspace: Path) -> str:
    """A JSON object of path to SHA-256 (or to why there is none), in the order of the paths."""
    paths = sorted({path for path in scripts if posixpath.normpath(path).startswith(WORKSPACE + "/")})
    if not paths:
        return ""
    return await asyncio.to_thread(_digests, tuple(paths), workspace)


def changes(before: str, after: str) -> str:
    """One sentence that names the files that differ."""
    old: dict[str, str] = json.loads(before) if before else {}
    new: dict[str, str] = json.loads(after) if after else {}
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return f"Changed since it was shown: {', '.join(names)}."


def _digests(paths: tuple[str, ...], workspace: Path) -> str:
    found = {path: _digest(path, workspace) for path in paths[:MAX_FILES]}
    if len(paths) > MAX_FILES:
        found["more"] = str(len(paths) - MAX_FILES)
    return json.dumps(found, sort_keys=True)


def _digest(path: str, workspace: Path) -> str:
    relative = posixpath.relpath(posixpath.normpath(path), WORKSPACE)
    try:
        return sha256_file(workspace, relative, MAX_SCRIPT_FILE_BYTES)
    except FileNotFoundError:
        return "absent"
    except (PathRefused, OSError) as error:
        return f"unreadable: {type(error).__name__}"
