"""Reading the database from outside the daemon, whether or not one is running."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.store import migrations
from gateway.store.connections import connect_read_only
from gateway.store.exceptions import DatabaseDamaged, DatabaseMissing, DatabaseTooNew, DatabaseTooOld, translating


@contextmanager
def connect(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write, over one state of the database.

    The file is opened through SQLite only: a plain open and close of it would drop the locks that this process holds.

    Raises:
        DatabaseMissing: there is no file.
        DatabaseTooNew, DatabaseTooOld: its schema is another one.
        DatabaseDamaged: it is no database.
        StoreUnavailable: it cannot be read right now.
    """
    known = len(migrations.load())
    if not path.exists():
        raise DatabaseMissing(path)
    with translating():
        conn = connect_read_only(path)
        try:
            _check(conn, path, known)
            conn.execute("BEGIN")
            yield conn
        finally:
            conn.close()


def _check(conn: sqlite3.Connection, path: Path, known: int) -> None:
    try:
        (version,) = conn.execute("PRAGMA user_version").fetchone()
        (tables,) = conn.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise DatabaseDamaged(path, str(error)) from error
        raise
    if version > known:
        raise DatabaseTooNew(path, version, known)
    if version == 0 and tables:
        raise DatabaseDamaged(path, "it holds tables of some other program")
    if version < known:
        raise DatabaseTooOld(path, version, known)
