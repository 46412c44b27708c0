"""Forward-only changes of the schema: numbered SQL files, applied once each, recorded in ``PRAGMA user_version``."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.store.exceptions import (
    DatabaseDamaged,
    DatabaseTooNew,
    StoreUnavailable,
    Trouble,
    translating,
)

#: Where the shipped files are.
FOLDER = Path(__file__).with_name("migrations")
_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")

#: A larger file is not read through at start: the check takes some 15 ms a megabyte.
CHECKED_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Migration:
    """One file; ``version`` is its number and the schema's version after it."""

    version: int
    name: str
    sql: str


def load(folder: Path = FOLDER) -> tuple[Migration, ...]:
    """The migrations of a folder, in order.

    Raises:
        ValueError: a file's name does not fit, or a number is missing or double.
    """
    found = []
    for path in sorted(folder.glob("*.sql")):
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise ValueError(f"{path.name} is no name for a migration; use 0002_what_it_does.sql")
        found.append(Migration(int(match[1]), match[2], path.read_text(encoding="utf-8")))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations in {folder} must be numbered 1, 2, 3 ... without gaps")
    return tuple(found)


def check(conn: sqlite3.Connection, path: Path, known: int) -> int:
    """The version of the file behind ``conn``, 0 for an empty one. Changes nothing.

    Raises:
        DatabaseTooNew: its version is above ``known``.
        DatabaseDamaged: it is no database, a broken one, or somebody else's.
        StoreUnavailable: it cannot be read right now.
    """
    try:
        with translating():
            version = _version(conn, path, known)
            _quick_check(conn, path)
    except StoreUnavailable as error:
        if error.trouble is Trouble.DAMAGED:
            raise DatabaseDamaged(path, str(error.__cause__)) from error
        raise
    return version


def _version(conn: sqlite3.Connection, path: Path, known: int) -> int:
    (version,) = conn.execute("PRAGMA user_version").fetchone()
    (tables,) = conn.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if version > known:
        raise DatabaseTooNew(path, version, known)
    if version == 0 and tables:
        raise DatabaseDamaged(path, "it holds tables of some other program")
    if version and not tables:
        raise DatabaseDamaged(path, "its tables are gone")
    return int(version)


def _quick_check(conn: sqlite3.Connection, path: Path) -> None:
    (pages,) = conn.execute("PRAGMA page_count").fetchone()
    (page_size,) = conn.execute("PRAGMA page_size").fetchone()
    if pages * page_size <= CHECKED_BYTES:
        (finding,) = conn.execute("PRAGMA quick_check(1)").fetchone()
        if finding != "ok":
            raise DatabaseDamaged(path, str(finding))


def migrate(conn: sqlite3.Connection, path: Path, steps: Sequence[Migration]) -> int:
    """:func:`check` and :func:`apply`; returns the version that the file had before."""
    version = check(conn, path, len(steps))
    apply(conn, path, steps, version)
    return version


def apply(conn: sqlite3.Connection, path: Path, steps: Sequence[Migration], version: int) -> None:
    """Bring a file of ``version`` to the newest: all pending migrations in one transaction.

    An existing database is copied to ``NAME.bak-vN`` first (N its version); the copy stays.

    Raises:
        StoreUnavailable: the file or its copy cannot be written; the file is as it was.
    """
    if version == len(steps):
        return
    try:
        with translating():
            if version:
                back_up(conn, path.with_name(f"{path.name}.bak-v{version}"))
            conn.execute("BEGIN IMMEDIATE")
            try:
                for migration in steps[version:]:
                    for statement in statements(migration.sql):
                        conn.execute(statement)
                conn.execute(f"PRAGMA user_version = {len(steps)}")
                conn.execute("COMMIT")
            finally:
                if conn.in_transaction:
                    conn.execute("ROLLBACK")
    except OSError as error:
        raise StoreUnavailable(Trouble.FULL if error.errno == errno.ENOSPC else Trouble.IO) from error


def back_up(conn: sqlite3.Connection, target: Path) -> None:
    """Copy the database into ``target``, readable by its owner alone; a copy that was cut short never has that name."""
    partial = target.with_name(target.name + ".part")
    partial.unlink(missing_ok=True)
    # SQLite writes into an empty file that is there already, and so the rights are right from the first byte on.
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        conn.execute("VACUUM INTO ?1", (str(partial),))
        _sync(partial)
        partial.replace(target)
        _sync(target.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def statements(script: str) -> Iterator[str]:
    """Split a script; ``executescript`` would commit the open transaction."""
    gathered = ""
    for line in script.splitlines(keepends=True):
        gathered += line
        if sqlite3.complete_statement(gathered):
            yield gathered
            gathered = ""
    if gathered.strip():
        yield gathered


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
