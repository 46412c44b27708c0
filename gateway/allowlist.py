"""``allowlist.json``: permanent grants in a file that people may edit, and that is validated at every use.

A file that cannot be read grants nothing, and says so: a broken allowlist never widens rights.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from agent.control.exceptions import ControlError
from agent.control.grants import Grant

#: Largest file that is read; ten thousand grants fit.
MAX_BYTES = 4 * 1024 * 1024


class AllowlistInvalid(ControlError):
    """``allowlist.json`` cannot be used; the message names the file and the place."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    rule: str
    shape: str
    paths: list[str] = []
    principal: str | None = None
    by: str = ""
    at: datetime
    expires: datetime | None = None
    uses_left: int | None = None
    note: str = ""


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int
    grants: list[_Entry] = []


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The grants as of one state of the file."""

    stamp: tuple[int, int, int] | None
    grants: tuple[Grant, ...]


class Allowlist:
    """Reads and rewrites the file; every call is short and synchronous, so call it in a worker thread.

    The daemon is the only writer (one daemon a home), and its calls are serialised by the caller; people who edit
    by hand are honoured because the file is read again whenever its inode, size or mtime has changed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loaded = _Loaded(None, ())

    def grants(self) -> tuple[Grant, ...]:
        """All permanent grants.

        Raises:
            AllowlistInvalid: the file is no valid allowlist.
        """
        stamp = self._stamp()
        if stamp != self._loaded.stamp:
            self._loaded = _Loaded(stamp, self._read() if stamp else ())
        return self._loaded.grants

    def add(self, grants: Iterable[Grant]) -> None:
        """Append ``grants`` and write the file anew.

        Raises:
            AllowlistInvalid: the file there now is no valid allowlist; it is left alone.
        """
        self._write((*self.grants(), *grants))

    def change(self, change: Callable[[Grant], Grant | None]) -> bool:
        """Map every grant (None removes it); False when nothing changed.

        Raises:
            AllowlistInvalid: as :meth:`add`.
        """
        before = self.grants()
        after = tuple(kept for grant in before if (kept := change(grant)) is not None)
        if after == before:
            return False
        self._write(after)
        return True

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _read(self) -> tuple[Grant, ...]:
        try:
            with self._path.open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise AllowlistInvalid(f"{self._path} cannot be read: {error.strerror}.", fix="Check its mode.") from error
        if len(raw) > MAX_BYTES:
            raise AllowlistInvalid(f"{self._path} is larger than {MAX_BYTES} bytes.", fix="Remove old grants.")
        try:
            file_ = msgspec.json.decode(raw, type=_File)
        except msgspec.DecodeError as error:
            raise AllowlistInvalid(
                f"{self._path} is no valid allowlist: {error}.",
                fix="Mend or move the file; until then it grants nothing.",
            ) from error
        if file_.version != 1:
            raise AllowlistInvalid(f"{self._path} has version {file_.version}; this release reads version 1.")
        return tuple(_grant(entry) for entry in file_.grants)

    def _write(self, grants: tuple[Grant, ...]) -> None:
        encoded = msgspec.json.format(
            msgspec.json.encode(_File(version=1, grants=[_entry(g) for g in grants])), indent=2
        )
        temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(encoded + b"\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        self._loaded = _Loaded(self._stamp(), grants)


def _grant(entry: _Entry) -> Grant:
    return Grant(
        id=entry.id,
        rule=entry.rule,
        shape=entry.shape,
        paths=tuple(entry.paths),
        principal=entry.principal,
        session=None,
        by=entry.by,
        at=_utc(entry.at),
        expires=_utc(entry.expires) if entry.expires else None,
        uses_left=entry.uses_left,
        note=entry.note,
    )


def _entry(grant: Grant) -> _Entry:
    return _Entry(
        id=grant.id,
        rule=grant.rule,
        shape=grant.shape,
        paths=list(grant.paths),
        principal=grant.principal,
        by=grant.by,
        at=grant.at,
        expires=grant.expires,
        uses_left=grant.uses_left,
        note=grant.note,
    )


def _utc(moment: datetime) -> datetime:
    """A time without an offset, as people write it, is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
