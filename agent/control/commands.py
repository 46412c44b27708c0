"""The commands that the pipeline knows: validation of their arguments, and the job that each becomes."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Protocol

from agent.control.exceptions import RequestInvalid
from agent.control.ports import Caller
from agent.control.request import CommandRequest
from agent.control.sandbox.base import WORKSPACE, Ended, Finished, Job, Profile

#: Longest script in bytes; the guard judges up to 32 KiB and asks about the rest.
MAX_SCRIPT_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Plan:
    """A validated request: exactly what will run and how it is shown.

    Attributes:
        shown: the whole command for the card.
        script: shell text for the guard; None for fixed argument templates, which have nothing to judge.
        argv: program and arguments inside the sandbox.
        read: makes the text for the model from what the job printed; a ``ControlError`` says why there is none.
    """

    shown: str
    script: str | None
    argv: tuple[str, ...]
    workdir: str
    profile: Profile
    timeout_s: float
    read: Callable[[Finished], str]
    stdin: bytes = b""

    def job(self, request: CommandRequest, caller: Caller) -> Job:
        """The sandbox job of this plan."""
        return Job(
            job_id=request.request_id,
            argv=self.argv,
            workspace=caller.workspace,
            timeout_s=self.timeout_s,
            profile=self.profile,
            workdir=self.workdir,
            stdin=self.stdin,
        )


class Command(Protocol):
    """Turns arguments into a :class:`Plan`."""

    def plan(self, request: CommandRequest) -> Plan:
        """Validate and plan.

        Raises:
            RequestInvalid: naming the argument and what it should be.
        """
        ...


class Terminal:
    """Free-form shell: ``bash -c SCRIPT`` in the workspace."""

    def __init__(self, profile: Profile, *, default_s: float, max_s: float) -> None:
        self._profile = profile
        self._default_s = default_s
        self._max_s = max_s

    def plan(self, request: CommandRequest) -> Plan:
        """See :class:`Command`; args ``script`` and optionally ``workdir``."""
        only(request.args, {"script", "workdir"})
        script = text_of(request.args, "script")
        if not script.strip():
            raise RequestInvalid("script is empty.", fix="Give the shell text to run.")
        if len(script.encode()) > MAX_SCRIPT_BYTES:
            raise RequestInvalid(
                f"script is longer than {MAX_SCRIPT_BYTES} bytes.",
                fix="Write it to a file in the workspace and run that.",
            )
        roots = (WORKSPACE, *(str(mount.path) for mount in self._profile.mounts))
        workdir = resolve_workdir(request.args.get("workdir"), roots)
        timeout_s = request.timeout_ms / 1000 if request.timeout_ms > 0 else self._default_s
        return Plan(
            shown=script,
            script=script,
            argv=("/bin/bash", "-c", script),
            workdir=workdir,
            profile=self._profile,
            timeout_s=min(timeout_s, self._max_s),
            read=read_output,
        )


def resolve_path(path: str) -> str:
    """The absolute path as a command sees it; relative ones start at the workspace.

    Raises:
        RequestInvalid: it leaves the workspace, or holds a NUL.
    """
    if "\0" in path or not path:
        raise RequestInvalid("path must be a non-empty path without NUL.", fix="Give a path inside /workspace.")
    full = posixpath.normpath(posixpath.join(WORKSPACE, path))
    if not inside(full, (WORKSPACE,)):
        raise RequestInvalid(f"path {path!r} lies outside the workspace.", fix="Give a path inside /workspace.")
    return full


def resolve_workdir(workdir: object, roots: Sequence[str]) -> str:
    """The directory in which a command starts, inside one of ``roots``.

    Raises:
        RequestInvalid: it is no text, or lies outside.
    """
    if workdir is None or workdir == "":
        return WORKSPACE
    if not isinstance(workdir, str) or "\0" in workdir or len(workdir) > 4096:
        raise RequestInvalid("workdir must be a path.", fix="Give a directory inside /workspace, or leave it out.")
    full = posixpath.normpath(posixpath.join(WORKSPACE, workdir))
    if not inside(full, roots):
        raise RequestInvalid(
            f"workdir {workdir!r} lies outside what commands may see ({', '.join(roots)}).",
            fix="Give a directory inside one of these.",
        )
    return full


def read_output(finished: Finished) -> str:
    """What the model is told about a finished shell command, apart from the exit status."""
    text = finished.output.text
    match finished.ended:
        case Ended.EXITED:
            return text
        case Ended.TIMED_OUT:
            head = f"Stopped after {finished.duration_s:.0f} s, its time limit. Everything that it started was killed."
        case Ended.OVER_MEMORY:
            head = "Stopped: it used more memory than a command may."
        case Ended.OVER_PIDS:
            head = "Stopped: it started more processes than a command may."
        case Ended.OVER_DISK:
            head = "Stopped: the workspace grew beyond its limit. Delete something before you go on."
        case Ended.CANCELLED:
            head = "Stopped before its end."
    return f"{head}\nOutput until then:\n{text}" if text else head


def inside(path: str, roots: Sequence[str]) -> bool:
    """Whether the normalised ``path`` equals one of ``roots`` or lies below it."""
    return any(PurePosixPath(path).is_relative_to(root) for root in roots)


def only(args: Mapping[str, Any], known: frozenset[str] | set[str]) -> None:
    """Refuse arguments that the command does not have.

    Raises:
        RequestInvalid: naming the first of them.
    """
    unknown = sorted(set(args) - set(known))
    if unknown:
        raise RequestInvalid(f"unknown argument {unknown[0]!r}.", fix=f"Known: {', '.join(sorted(known))}.")


def text_of(args: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A text argument: valid Unicode without NUL.

    Raises:
        RequestInvalid: it is missing without a default, or no such text.
    """
    value = args.get(name, default)
    if not isinstance(value, str):
        raise RequestInvalid(f"{name} must be a text.", fix=f"Give {name} as a string.")
    if "\0" in value:
        raise RequestInvalid(f"{name} holds a NUL character.", fix="Leave it out.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RequestInvalid(f"{name} is no valid Unicode text.", fix="Leave lone surrogates out.") from None
    return value
