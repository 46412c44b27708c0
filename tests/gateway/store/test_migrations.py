from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from agent.control.clock import SystemClock
from gateway.store import migrations, readonly
from gateway.store.database import Database
from gateway.store.exceptions import (
    DatabaseDamaged,
    DatabaseMissing,
    DatabaseTooNew,
    DatabaseTooOld,
    StoreUnavailable,
)
from gateway.store.migrations import Migration

FIRST = Migration(
    1, "first", "CREATE TABLE a (x); -- one; with a semicolon in its comment\nCREATE INDEX a_x ON a (x);\n"
)
SECOND = Migration(
    2,
    "second",
    """
-- Adds a column and a trigger, whose body holds semicolons.
ALTER TABLE a ADD COLUMN y NOT NULL DEFAULT 'old; value';
CREATE TRIGGER a_copy AFTER INSERT ON a BEGIN
    UPDATE a SET y = 'new' WHERE rowid = new.rowid;
    SELECT 1;
END;
""",
)


def raw(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def version_of(path: Path) -> int:
    conn = raw(path)
    (version,) = conn.execute("PRAGMA user_version").fetchone()
    conn.close()
    return int(version)


def at_first_version(path: Path) -> None:
    conn = raw(path)
    assert migrations.migrate(conn, path, [FIRST]) == 0
    conn.execute("INSERT INTO a VALUES (7)")
    conn.close()


def test_a_fresh_file_gets_everything_and_no_backup(db_path: Path) -> None:
    conn = raw(db_path)
    assert migrations.migrate(conn, db_path, [FIRST, SECOND]) == 0
    conn.execute("INSERT INTO a (x) VALUES (1)")
    assert conn.execute("SELECT y FROM a").fetchall() == [("new",)]
    conn.close()
    assert version_of(db_path) == 2
    assert [path.name for path in db_path.parent.iterdir()] == ["state.db"]


async def test_an_older_file_is_backed_up_and_brought_up_to_date(db_path: Path) -> None:
    at_first_version(db_path)
    db = await Database.open(db_path, clock=SystemClock(), schema=[FIRST, SECOND])
    assert await db.read(lambda conn: conn.execute("SELECT x, y FROM a").fetchall()) == [(7, "old; value")]
    await db.close()
    assert version_of(db_path) == 2
    backup = db_path.with_name("state.db.bak-v1")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert version_of(backup) == 1
    conn = raw(backup)
    assert conn.execute("SELECT * FROM a").fetchall() == [(7,)]
    conn.close()
    # Once it is up to date, a start makes no further copy.
    written = backup.stat().st_mtime_ns
    await (await Database.open(db_path, clock=SystemClock(), schema=[FIRST, SECOND])).close()
    assert backup.stat().st_mtime_ns == written


async def test_a_failing_migration_changes_nothing_and_may_be_tried_again(db_path: Path) -> None:
    at_first_version(db_path)
    broken = Migration(2, "broken", "ALTER TABLE a ADD COLUMN y;\nUPDATE a SET y = 1;\nINSERT INTO nowhere VALUES (1);")
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            await Database.open(db_path, clock=SystemClock(), schema=[FIRST, broken])
        assert version_of(db_path) == 1
        conn = raw(db_path)
        assert conn.execute("SELECT * FROM a").fetchall() == [(7,)]
        conn.close()
    await (await Database.open(db_path, clock=SystemClock(), schema=[FIRST, SECOND])).close()
    assert version_of(db_path) == 2
    assert sorted(path.name for path in db_path.parent.iterdir()) == ["state.db", "state.db.bak-v1"]


async def test_without_room_for_the_backup_nothing_is_migrated(db_path: Path) -> None:
    at_first_version(db_path)
    db_path.with_name("state.db.bak-v1").mkdir()
    with pytest.raises(StoreUnavailable):
        await Database.open(db_path, clock=SystemClock(), schema=[FIRST, SECOND])
    assert version_of(db_path) == 1
    assert not db_path.with_name("state.db.bak-v1.part").exists()


def test_what_a_killed_backup_left_is_replaced(db_path: Path) -> None:
    at_first_version(db_path)
    db_path.with_name("state.db.bak-v1.part").write_bytes(b"half a copy")
    conn = raw(db_path)
    assert migrations.migrate(conn, db_path, [FIRST, SECOND]) == 1
    conn.close()
    assert version_of(db_path.with_name("state.db.bak-v1")) == 1


def test_a_newer_file_is_refused(db_path: Path) -> None:
    at_first_version(db_path)
    conn = raw(db_path)
    with pytest.raises(DatabaseTooNew):
        migrations.check(conn, db_path, 0)
    conn.close()


def test_names_and_numbers_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "0001_one.sql").write_text("SELECT 1;")
    (tmp_path / "0002_two.sql").write_text("SELECT 2;")
    assert [m.name for m in migrations.load(tmp_path)] == ["one", "two"]
    (tmp_path / "0004_four.sql").write_text("SELECT 4;")
    with pytest.raises(ValueError, match="without gaps"):
        migrations.load(tmp_path)
    (tmp_path / "0004_four.sql").rename(tmp_path / "3.sql")
    with pytest.raises(ValueError, match=r"3\.sql"):
        migrations.load(tmp_path)


async def test_the_shipped_schema_has_what_the_code_reads(db: Database) -> None:
    tables = {name for (name,) in await db.read(lambda c: c.execute("SELECT name FROM sqlite_schema").fetchall())}
    assert {"inbox", "outbox", "sessions", "turns", "messages", "tool_calls", "asks", "grants", "audit"} <= tables
    assert version_of(db.path) == len(migrations.load()) == 2


def test_reading_from_outside_says_what_is_wrong(db_path: Path) -> None:
    with pytest.raises(DatabaseMissing, match="Start the daemon"), readonly.connect(db_path):
        pass
    assert not db_path.exists()
    db_path.write_bytes(b"no database at all, but long enough to be one" * 100)
    with pytest.raises(DatabaseDamaged), readonly.connect(db_path):
        pass
    db_path.unlink()
    db_path.touch()
    with pytest.raises(DatabaseTooOld), readonly.connect(db_path):
        pass
    db_path.unlink()
    conn = raw(db_path)
    conn.execute("CREATE TABLE other (a)")
    with pytest.raises(DatabaseDamaged, match="other program"), readonly.connect(db_path):
        pass
    conn.execute("PRAGMA user_version = 99")
    conn.close()
    with pytest.raises(DatabaseTooNew), readonly.connect(db_path):
        pass


async def test_reading_from_outside_with_and_without_a_daemon(tmp_path: Path) -> None:
    folder = tmp_path / "a b?%#'é"
    folder.mkdir()
    path = folder / "state.db"
    db = await Database.open(path, clock=SystemClock())
    await db.write(lambda conn: conn.execute("INSERT INTO meta VALUES ('k', 'v')"))
    for running in (True, False):
        with readonly.connect(path) as conn:
            assert conn.execute("SELECT * FROM meta").fetchall() == [("k", "v")]
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                conn.execute("DELETE FROM meta")
        if running:
            await db.close()
