"""Errors of the store.

::

    StoreError
    +-- StoreUnavailable   the database cannot be used right now; what was to be written was not
    +-- DatabaseTooNew     a newer version of this program has made the file
    +-- DatabaseTooOld     the file has not been migrated yet (reading without the daemon)
    +-- DatabaseMissing    there is no file yet (reading without the daemon)
    +-- DatabaseDamaged    the file is no usable database; it was left as it is
    +-- UnitMisused        a unit of work ended the transaction that it shares with others
"""

from __future__ import annotations

import enum
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StoreError(Exception):
    """Root of this package's errors.

    Attributes:
        fix: what to do next; part of the message shown to people.
    """

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix

    def __str__(self) -> str:
        return f"{super().__str__()} {self.fix}".strip()


class Trouble(enum.Enum):
    """Why the database cannot be used; the value is a short word for metrics and logs."""

    FULL = "full"
    LOCKED = "locked"
    READ_ONLY = "read_only"
    DAMAGED = "damaged"
    IO = "io"
    CLOSED = "closed"


_SENTENCES = {
    Trouble.FULL: ("The disk is full; nothing was stored.", "Free some space on the disk that holds state.db."),
    Trouble.LOCKED: (
        "Another process holds a lock on the database; nothing was stored.",
        "Find it with `fuser state.db` and let it finish or end it.",
    ),
    Trouble.READ_ONLY: (
        "The database cannot be opened for writing.",
        "Check the owner and the rights of the home folder, and that its disk is not mounted read-only.",
    ),
    Trouble.DAMAGED: (
        "The database file is damaged; nothing was stored.",
        "Stop the daemon, keep a copy of state.db, and restore a backup.",
    ),
    Trouble.IO: (
        "The disk reported an error; nothing was stored.",
        "Look for disk errors and quotas in the system's log.",
    ),
    Trouble.CLOSED: ("The database is closed.", "Start the daemon again."),
}

#: Primary result codes, https://www.sqlite.org/rescode.html
_TROUBLES = {
    sqlite3.SQLITE_FULL: Trouble.FULL,
    sqlite3.SQLITE_BUSY: Trouble.LOCKED,
    sqlite3.SQLITE_LOCKED: Trouble.LOCKED,
    sqlite3.SQLITE_PROTOCOL: Trouble.LOCKED,
    sqlite3.SQLITE_READONLY: Trouble.READ_ONLY,
    sqlite3.SQLITE_PERM: Trouble.READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: Trouble.READ_ONLY,
    sqlite3.SQLITE_CORRUPT: Trouble.DAMAGED,
    sqlite3.SQLITE_NOTADB: Trouble.DAMAGED,
    sqlite3.SQLITE_IOERR: Trouble.IO,
    sqlite3.SQLITE_NOMEM: Trouble.IO,
}


class StoreUnavailable(StoreError):
    """The database cannot be used right now. The unit of work left no trace; trying again later may succeed.

    Attributes:
        trouble: what is wrong with it.
    """

    def __init__(self, trouble: Trouble) -> None:
        message, fix = _SENTENCES[trouble]
        super().__init__(message, fix=fix)
        self.trouble = trouble


class DatabaseTooNew(StoreError):
    """A newer version of this program has made the file."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema version {found}; this program knows versions up to {known}.",
            fix=f"Install the newer program again, or put back the backup {path.name}.bak-v{known} if there is one.",
        )
        self.found = found
        self.known = known


class DatabaseTooOld(StoreError):
    """The file waits for its migration, which only the daemon makes."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema version {found}; this program needs version {known}.",
            fix="Start the daemon once; it migrates the file after a backup.",
        )


class DatabaseMissing(StoreError):
    """There is no database in this home yet."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"There is no database at {path}.", fix="Start the daemon once, or name another home with --home."
        )


class DatabaseDamaged(StoreError):
    """The file is no usable database; it was left exactly as it is."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(
            f"{path} cannot be used: {detail}. The file was left as it is.",
            fix="Move it aside together with its -wal and -shm files and put back a backup; without one, the daemon"
            " starts with an empty database.",
        )


class UnitMisused(StoreError):
    """A unit of work ended the transaction that it shares with others."""

    def __init__(self) -> None:
        super().__init__("A unit of work must not begin, commit or roll back a transaction, and not use executescript.")


def trouble_of(error: BaseException) -> Trouble | None:
    """What ``error`` says about the database; None when it is about the statement alone."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else _TROUBLES.get(code & 0xFF)


def translated(error: BaseException) -> BaseException:
    """``error`` itself, or a new :class:`StoreUnavailable` caused by it."""
    trouble = trouble_of(error)
    if trouble is None:
        return error
    unavailable = StoreUnavailable(trouble)
    unavailable.__cause__ = error
    return unavailable


@contextmanager
def translating() -> Iterator[None]:
    """Raise :class:`StoreUnavailable` for what SQLite says about the database; errors of a statement pass."""
    try:
        yield
    except sqlite3.Error as error:
        trouble = trouble_of(error)
        if trouble is None:
            raise
        raise StoreUnavailable(trouble) from error
