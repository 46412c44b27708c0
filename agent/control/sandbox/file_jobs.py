"""Reading, writing and listing files from inside the sandbox, with the shell and the basic tools alone.

A path is always an argument of a fixed script, never a part of one. Contents and names come out as base64, so that
what they hold (line ends, NUL, invalid UTF-8, control characters) is neither changed on the way nor taken for something
else.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import enum
from dataclasses import dataclass
from pathlib import Path

from agent.control.exceptions import ControlError, RequestInvalid
from agent.control.sandbox.base import WORKSPACE, Ended, Finished, Job, Profile


class FileProblem(enum.IntEnum):
    """Why a file job did nothing; the exit status of its script."""

    MISSING = 71
    IS_FOLDER = 72
    NOT_REGULAR = 73
    NOT_PERMITTED = 74
    NO_PARENT = 75
    IS_LINK = 76
    NOT_FOLDER = 77
    OTHER = 0


_SAID = {
    FileProblem.MISSING: "does not exist",
    FileProblem.IS_FOLDER: "is a folder",
    FileProblem.NOT_REGULAR: "is no regular file (a pipe, a socket or a device)",
    FileProblem.NOT_PERMITTED: "may not be opened",
    FileProblem.NO_PARENT: "lies in a folder that does not exist",
    FileProblem.IS_LINK: "is a link: write to the file that it names",
    FileProblem.NOT_FOLDER: "is no folder",
}

_FIND_FILE = f"""
p=$1
if [ ! -e "$p" ]; then exit {FileProblem.MISSING}; fi
if [ -d "$p" ]; then exit {FileProblem.IS_FOLDER}; fi
if [ ! -f "$p" ]; then exit {FileProblem.NOT_REGULAR}; fi
if [ ! -r "$p" ]; then exit {FileProblem.NOT_PERMITTED}; fi
"""

_READ = (
    _FIND_FILE
    + """
printf '%s ' "$(wc -c < "$p")"
tail -n "+$2" < "$p" | head -n "$3" | head -c "$4" | base64 -w 0
"""
)

_LIST = f"""
p=$1
if [ ! -e "$p" ]; then exit {FileProblem.MISSING}; fi
if [ ! -d "$p" ]; then exit {FileProblem.NOT_FOLDER}; fi
if [ ! -r "$p" ] || [ ! -x "$p" ]; then exit {FileProblem.NOT_PERMITTED}; fi
find "$p/." -mindepth 1 -maxdepth 1 -printf '%f/%y/%s\\0' 2>/dev/null |
  LC_ALL=C sort -z | head -z -n "$2" | head -c "$3" | base64 -w 0
"""

_WRITE = f"""
p=$1
d=${{p%/*}}
if [ -z "$d" ]; then d=/; fi
if [ "$2" = yes ]; then mkdir -p -- "$d" || exit {FileProblem.NO_PARENT}; fi
if [ ! -d "$d" ]; then exit {FileProblem.NO_PARENT}; fi
if [ -L "$p" ]; then exit {FileProblem.IS_LINK}; fi
if [ -d "$p" ]; then exit {FileProblem.IS_FOLDER}; fi
if [ -e "$p" ] && [ ! -f "$p" ]; then exit {FileProblem.NOT_REGULAR}; fi
if [ ! -w "$d" ]; then exit {FileProblem.NOT_PERMITTED}; fi
t=$(mktemp "$d/.ostiary-XXXXXXXXXX") || exit 1
trap 'rm -f -- "$t"' EXIT
cat > "$t" || exit 1
if [ -e "$p" ]; then chmod --reference="$p" -- "$t"; else chmod 0644 -- "$t"; fi || exit 1
mv -fT -- "$t" "$p" || exit 1
"""

#: Of one name (255 bytes), its type and its size, with separators.
_ENTRY_BYTES = 280


class FileJobFailed(ControlError):
    """A file could not be read, written or listed.

    Attributes:
        problem: what stood in the way.
    """

    def __init__(self, message: str, problem: FileProblem = FileProblem.OTHER) -> None:
        super().__init__(message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class FileJob:
    """The pieces of a job that works on one path.

    Attributes:
        path: as it was asked for; names the file in errors.
        output_bytes: what the sandbox must let through for the answer to be whole.
    """

    path: str
    argv: tuple[str, ...]
    stdin: bytes
    output_bytes: int
    writes: bool

    def job(self, job_id: str, workspace: Path, timeout_s: float, profile: Profile, workdir: str = WORKSPACE) -> Job:
        """The whole job in the narrowed ``profile``."""
        return Job(job_id, self.argv, workspace, timeout_s, self.narrowed(profile), workdir, self.stdin)

    def narrowed(self, profile: Profile) -> Profile:
        """``profile`` with room for the answer, and read-only when nothing is to be written."""
        return dataclasses.replace(
            profile,
            workspace_writable=profile.workspace_writable and self.writes,
            limits=dataclasses.replace(profile.limits, output_bytes=self.output_bytes),
        )


@dataclass(frozen=True, slots=True)
class FileRange:
    """Lines of a file.

    Attributes:
        size: bytes of the whole file.
        data: the lines asked for, exactly as they are in the file.
        more: whether something follows them, or the last one is cut.
    """

    size: int
    data: bytes
    more: bool


class EntryKind(enum.Enum):
    """What a name in a folder stands for."""

    FILE = "f"
    FOLDER = "d"
    LINK = "l"
    OTHER = "?"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder; bytes that are no UTF-8 are surrogate-escaped. ``size`` in bytes."""

    name: str
    kind: EntryKind
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """A folder's first entries in byte order of their names.

    Attributes:
        more: whether there are others.
    """

    entries: tuple[Entry, ...]
    more: bool


def read_lines(path: str, *, first: int = 1, lines: int = 2000, max_bytes: int = 65_536) -> FileJob:
    """A job that reads at most ``lines`` lines and ``max_bytes`` bytes from line ``first`` (counted from 1) on.

    Raises:
        RequestInvalid: the path is empty or a number is not positive.
    """
    _check_positive(first=first, lines=lines, max_bytes=max_bytes)
    # One line and one byte more than asked for tell whether something follows.
    argv = _script(_READ, _as_operand(path), str(first), str(lines + 1), str(max_bytes + 1))
    return FileJob(path, argv, b"", _base64_bytes(max_bytes + 1) + 32, writes=False)


def parse_read(job: FileJob, finished: Finished) -> FileRange:
    """The answer of :func:`read_lines`.

    Raises:
        FileJobFailed: there is none, and why.
    """
    size, _, encoded = _answer(job, finished).partition(" ")
    data = _decoded(job, encoded)
    lines, max_bytes = int(job.argv[-2]) - 1, int(job.argv[-1]) - 1
    kept = b"\n".join(data[:max_bytes].split(b"\n", lines)[:lines])
    if data[len(kept) : len(kept) + 1] == b"\n" and len(kept) < max_bytes:
        kept += b"\n"
    return FileRange(int(size), kept, more=len(kept) < len(data))


def list_folder(path: str = ".", *, max_entries: int = 500) -> FileJob:
    """A job that lists the first ``max_entries`` names of a folder, hidden ones included.

    Raises:
        RequestInvalid: the path is empty or the number is not positive.
    """
    _check_positive(max_entries=max_entries)
    room = (max_entries + 1) * _ENTRY_BYTES
    argv = _script(_LIST, _as_operand(path), str(max_entries + 1), str(room))
    return FileJob(path, argv, b"", _base64_bytes(room) + 32, writes=False)


def parse_list(job: FileJob, finished: Finished) -> Listing:
    """The answer of :func:`list_folder`.

    Raises:
        FileJobFailed: there is none, and why.
    """
    records = _decoded(job, _answer(job, finished)).split(b"\0")[:-1]
    max_entries = int(job.argv[-2]) - 1
    return Listing(tuple(map(_entry, records[:max_entries])), more=len(records) > max_entries)


def write_file(path: str, content: bytes, *, parents: bool = False) -> FileJob:
    """A job that puts ``content`` in a file: whole or not at all, keeping the permissions of one that exists.

    Args:
        path: where to; a link there is refused.
        content: the whole new content.
        parents: make missing folders.

    Raises:
        RequestInvalid: the path is empty or ends like a folder.
    """
    if path.endswith(("/", "/.", "/..")) or path in (".", ".."):
        raise RequestInvalid(f"The path {path!a} names a folder.", fix="Add the name of the file.")
    argv = _script(_WRITE, _as_operand(path), "yes" if parents else "no")
    return FileJob(path, argv, content, 4096, writes=True)


def parse_write(job: FileJob, finished: Finished) -> None:
    """See that :func:`write_file` did its work.

    Raises:
        FileJobFailed: it did not; the file is as it was.
    """
    _answer(job, finished)


def _script(script: str, *arguments: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script, "ostiary-file", *arguments)


def _as_operand(path: str) -> str:
    """``path`` so that no tool takes it for an option or an expression."""
    if not path:
        raise RequestInvalid("The path is empty.", fix="Name a file or a folder.")
    return path if path.startswith("/") else f"./{path}"


def _check_positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise RequestInvalid(f"{name} is {number}, but it must be at least 1.")


def _base64_bytes(count: int) -> int:
    return (count + 2) // 3 * 4


def _answer(job: FileJob, finished: Finished) -> str:
    shown = ascii(job.path)
    if finished.ended is not Ended.EXITED:
        raise FileJobFailed(f"{shown}: stopped before the end ({finished.ended.value.replace('_', ' ')}).")
    if finished.exit_code == 0:
        return finished.output.text
    if finished.exit_code in _SAID:
        problem = FileProblem(finished.exit_code)
        raise FileJobFailed(f"{shown} {_SAID[problem]}.", problem)
    said = finished.output.text.strip() or f"exit status {finished.exit_code}"
    raise FileJobFailed(f"{shown}: {said}")


def _decoded(job: FileJob, encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as exc:
        raise FileJobFailed(f"{job.path!a}: the answer from the sandbox is damaged.") from exc


def _entry(record: bytes) -> Entry:
    # A name holds no slash: the last two parts are certain.
    name, kind, size = record.rsplit(b"/", 2)
    known = {b"f": EntryKind.FILE, b"d": EntryKind.FOLDER, b"l": EntryKind.LINK}
    return Entry(name.decode("utf-8", "surrogateescape"), known.get(kind, EntryKind.OTHER), int(size))
