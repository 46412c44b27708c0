"""Digests of the files that a command names as program or script, so that what was approved is what runs."""

from __future__ import annotations

import asyncio
import json
import posixpath
from collections.abc import Iterable
from pathlib import Path

from agent.control.files import FileTooLarge, PathRefused, sha256_file
from agent.control.sandbox.base import WORKSPACE

#: A larger file is bound by its identity, size and time of change instead of its content.
MAX_SCRIPT_FILE_BYTES = 16 * 1024 * 1024

#: More named files than this are not looked at; the count itself is part of the evidence.
MAX_FILES = 32

#: Links that are followed to a file; Linux itself stops at 40.
MAX_LINKS = 40


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
    except FileTooLarge:
        return _identity(workspace / relative)
    except PathRefused as error:
        return _behind_links(workspace, relative) or f"unreadable: {type(error).__name__}"
    except OSError as error:
        return f"unreadable: {type(error).__name__}"


def _behind_links(workspace: Path, relative: str) -> str:
    """The digest of the file that links inside the workspace lead to, with its path; empty where they leave it.

    Links count as the command sees them: absolute ones start at the sandbox's root.
    """
    target = _resolved(workspace, relative)
    if target is None or target == relative:
        return ""
    try:
        return f"{target} {sha256_file(workspace, target, MAX_SCRIPT_FILE_BYTES)}"
    except FileNotFoundError:
        return f"{target} absent"
    except FileTooLarge:
        return f"{target} {_identity(workspace / target)}"
    except (PathRefused, OSError) as error:
        return f"{target} unreadable: {type(error).__name__}"


def _resolved(workspace: Path, relative: str) -> str | None:
    """``relative`` with every link replaced by what it leads to; None where that lies outside, or there is no end."""
    todo, done, links = relative.split("/")[::-1], "", 0
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if name == "..":
            if not done:
                return None
            done = posixpath.dirname(done)
            continue
        step = posixpath.join(done, name)
        try:
            link = str((workspace / step).readlink())
        except OSError:  # no link, or nothing at all
            done = step
            continue
        links += 1
        if links > MAX_LINKS:
            return None
        if posixpath.isabs(link):
            if not link.startswith(WORKSPACE + "/"):
                return None
            done, link = "", link.removeprefix(WORKSPACE)
        todo.extend(link.split("/")[::-1])
    return done


def _identity(path: Path) -> str:
    """What changes whenever the file is written to or replaced; a program cannot set the time of change."""
    try:
        status = path.lstat()
    except OSError as error:
        return f"unreadable: {type(error).__name__}"
    return f"large: {status.st_dev}:{status.st_ino} {status.st_size} {status.st_ctime_ns}"
