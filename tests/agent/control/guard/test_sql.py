"""SQL text: what destroys, and where a client gets it."""

from __future__ import annotations

import pytest

from agent.control.guard import sql
from tests.agent.control.guard import corpus


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE a",
        "drop view a",
        "TRUNCATE a",
        "truncate table a",
        "DELETE FROM a",
        "delete from a.b;",
        "DELETE FROM a WHERE 1=1",
        "DELETE FROM a WHERE true",
        "DELETE FROM a WHERE id=1 OR 1=1",
        "UPDATE a SET b=1",
        "update only a set b=1",
        "ALTER TABLE a DROP COLUMN b",
        "SELECT 1; DROP TABLE a",
        "/* x */ DROP TABLE a",
        "-- x\nDROP TABLE a",
        "BEGIN; DELETE FROM a; COMMIT",
        "DELETE FROM a; SELECT * FROM b WHERE c=1",
        "DELETE FROM a\nWHERE_CLAUSE",
        "GRANT ALL ON a TO b",
        "CREATE ROLE x",
        "COPY a TO PROGRAM 'sh'",
        "\\! ls",
        ".shell ls",
        "WITH x AS (DELETE FROM a RETURNING *) SELECT 1",
        "SELECT pg_read_file('/etc/passwd')",
        "DROP DATABASE a",
    ],
)
def test_destroys(text: str) -> None:
    assert sql.destroys(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "DELETE FROM a WHERE id = 1",
        "UPDATE a SET b=1 WHERE c=2",
        "INSERT INTO t VALUES ('drop table a')",
        "SELECT 'DELETE FROM a'",
        "-- DROP TABLE a",
        "/* DROP TABLE a */ SELECT 1",
        "CREATE TABLE a (b int)",
        "SELECT * FROM a WHERE b = 'TRUNCATE TABLE'",
        "ALTER TABLE a ADD COLUMN b int",
        ".schema",
        "EXPLAIN SELECT 1",
        "DELETE FROM a WHERE b IN (SELECT c FROM d)",
        "select truncate(1.2, 1)",
        "INSERT INTO a(b) VALUES (1) ON CONFLICT DO UPDATE SET b=2",
    ],
)
def test_leaves_alone(text: str) -> None:
    assert not sql.destroys(text)


@pytest.mark.parametrize(
    "command",
    [
        "psql -c 'DROP TABLE a'",
        "psql --command='DROP TABLE a'",
        "mysql -e 'DROP TABLE a'",
        "sqlite3 a.db 'DROP TABLE a'",
        "echo 'DROP TABLE a' | psql",
        "psql <<E\nDROP TABLE a\nE",
        "psql <<< 'DROP TABLE a'",
        "mysql db < <(echo 'DROP TABLE a')",
        "echo 'DROP TABLE a' > x.sql; psql -f x.sql",
        "sudo -u postgres psql -c 'DROP TABLE a'",
        "docker exec db psql -c 'DROP TABLE a'",
        "DROP TABLE a;",
        "delete from a",
        'for t in a b; do psql -c "DROP TABLE $t"; done',
    ],
)
def test_reaches_a_client(command: str) -> None:
    assert "sql.destructive" in corpus.rules(command)


@pytest.mark.parametrize(
    "command",
    [
        "echo 'DROP TABLE a'",
        "grep 'DROP TABLE' x",
        "psql -f x.sql",
        "git commit -m 'DROP TABLE a'",
        "truncate -s 1M x",
        "delete from a where b=1",
    ],
)
def test_does_not(command: str) -> None:
    assert "sql.destructive" not in corpus.rules(command)
