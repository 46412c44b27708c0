"""``files:read``, ``files:write`` and ``files:list``: one path of the workspace, through the sandbox as everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agent.control.commands import Command, Plan, only, resolve_path, text_of
from agent.control.exceptions import RequestInvalid
from agent.control.request import CommandRequest
from agent.control.sandbox import file_jobs
from agent.control.sandbox.base import WORKSPACE, Finished, Profile
from agent.control.sandbox.file_jobs import Entry, EntryKind, FileJob

#: Most bytes of a file in one answer, most lines, and most names of a folder.
MAX_READ_BYTES = 65_536
MAX_READ_LINES = 2_000
MAX_ENTRIES = 500

#: Largest file that one call writes, in bytes.
MAX_WRITE_BYTES = 1_048_576

Builder = Callable[[Mapping[str, Any], str], tuple[FileJob, Callable[[Finished], str]]]


class FileCommand:
    """A fixed program over one path; never shell text, so there is nothing for the guard to judge."""

    def __init__(
        self, build: Builder, *, verb: str, fields: frozenset[str], profile: Profile, timeout_s: float, path: str | None
    ) -> None:
        self._build = build
        self._verb = verb
        self._fields = fields
        self._profile = profile
        self._timeout_s = timeout_s
        self._path = path

    def plan(self, request: CommandRequest) -> Plan:
        """See :class:`agent.control.commands.Command`."""
        only(request.args, self._fields)
        path = resolve_path(text_of(request.args, "path", default=self._path))
        piece, read = self._build(request.args, path)
        return Plan(
            shown=f"{self._verb} {path}",
            script=None,
            argv=piece.argv,
            workdir=WORKSPACE,
            profile=piece.narrowed(self._profile),
            timeout_s=self._timeout_s,
            read=read,
            stdin=piece.stdin,
        )


def file_commands(profile: Profile, *, read_s: float, write_s: float) -> dict[str, Command]:
    """The three commands by identifier; ``profile`` gives the limits, the network is off."""
    profile = replace(profile, name="files", network=False)
    return {
        "files:read": FileCommand(
            _read,
            verb="read",
            fields=frozenset({"path", "offset", "limit"}),
            profile=profile,
            timeout_s=read_s,
            path=None,
        ),
        "files:list": FileCommand(
            _list, verb="list", fields=frozenset({"path"}), profile=profile, timeout_s=read_s, path="."
        ),
        "files:write": FileCommand(
            _write, verb="write", fields=frozenset({"path", "content"}), profile=profile, timeout_s=write_s, path=None
        ),
    }


def _read(args: Mapping[str, Any], path: str) -> tuple[FileJob, Callable[[Finished], str]]:
    first = _number(args, "offset", 1, 1_000_000_000)
    lines = min(_number(args, "limit", MAX_READ_LINES, 1_000_000_000), MAX_READ_LINES)
    job = file_jobs.read_lines(path, first=first, lines=lines, max_bytes=MAX_READ_BYTES)

    def read(finished: Finished) -> str:
        part = file_jobs.parse_read(job, finished)
        if b"\0" in part.data:
            return f"{path} is a binary file of {part.size} bytes; it cannot be shown as text."
        text = part.data.decode(errors="replace")
        if not text:
            return f"{path} is empty." if part.size == 0 else f"{path} has no line {first}."
        if not part.more:
            return text
        last = first + text.count("\n") - (1 if text.endswith("\n") else 0)
        return f"{text}\n[{path} goes on ({part.size} bytes in all); read from offset {last + 1}]"

    return job, read


def _list(args: Mapping[str, Any], path: str) -> tuple[FileJob, Callable[[Finished], str]]:
    del args
    job = file_jobs.list_folder(path, max_entries=MAX_ENTRIES)

    def read(finished: Finished) -> str:
        listing = file_jobs.parse_list(job, finished)
        if not listing.entries:
            return f"{path} is empty."
        lines = [_line(entry) for entry in listing.entries]
        if listing.more:
            lines.append(f"[more than {MAX_ENTRIES} names; the rest is left out]")
        return "\n".join(lines)

    return job, read


def _write(args: Mapping[str, Any], path: str) -> tuple[FileJob, Callable[[Finished], str]]:
    content = text_of(args, "content").encode()
    if len(content) > MAX_WRITE_BYTES:
        raise RequestInvalid(f"content is longer than {MAX_WRITE_BYTES} bytes.", fix="Write it in several files.")
    job = file_jobs.write_file(path, content, parents=True)

    def read(finished: Finished) -> str:
        file_jobs.parse_write(job, finished)
        return f"Wrote {len(content)} bytes to {path}."

    return job, read


def _line(entry: Entry) -> str:
    name = entry.name.encode(errors="surrogateescape").decode(errors="replace")
    shown = name if name.isprintable() else repr(name)
    match entry.kind:
        case EntryKind.FOLDER:
            return f"{shown}/"
        case EntryKind.FILE:
            return f"{shown}  {entry.size} bytes"
        case EntryKind.LINK:
            return f"{shown}  link"
        case _:
            return f"{shown}  special"


def _number(args: Mapping[str, Any], name: str, default: int, most: int) -> int:
    value = args.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise RequestInvalid(f"{name} must be a whole number from 1 to {most}.", fix=f"Leave {name} out for the usual.")
    return value
