from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.store import grants as rows
from gateway.store import meta, migrations
from tests.gateway.cli.conftest import Ostiary

NOW = datetime.now(UTC)


def entry(id_: str, **more: object) -> dict[str, object]:
    fields = {"rule": "delete.recursive", "shape": "rm -f -r", "paths": ["/workspace/build"], "principal": None}
    return {"id": id_, "by": "http:owner", "at": NOW.isoformat(), "expires": None, "note": "", **fields, **more}


def row(id_: str, boot: str = "b1") -> rows.GrantRow:
    return rows.GrantRow(
        id=id_,
        session="http:ann/main",
        boot=boot,
        principal="http:ann",
        rule="git.push",
        shape="git push",
        paths=(),
        given_by="http:ann",
        at=NOW,
        expires=NOW + timedelta(hours=1),
    )


@pytest.fixture
def allowlist(home: Path) -> Path:
    home.mkdir()
    return home / "allowlist.json"


@pytest.fixture
def database(home: Path) -> Path:
    home.mkdir(exist_ok=True)
    path = home / "state.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        migrations.migrate(conn, path, migrations.load())
        conn.execute("BEGIN")
        meta.put(conn, "boot", "b1")
        meta.put(conn, "running", "1")
        for given in (row("s1"), row("s2", boot="b0")):
            rows.add(conn, given)
        conn.execute("COMMIT")
    return path


def test_none(ostiary: Ostiary) -> None:
    assert ostiary("grants", "list").out == "There are no grants.\n"
    assert ostiary("grants", "list", "--json").json() == {"grants": []}


def test_permanent_ones(ostiary: Ostiary, allowlist: Path) -> None:
    past = (NOW - timedelta(days=1)).isoformat()
    allowlist.write_text(json.dumps({"version": 1, "grants": [entry("p1"), entry("p2", expires=past)]}))
    found = ostiary("grants", "list", "--json").json()["grants"]
    assert [grant["id"] for grant in found] == ["p1"]
    assert found[0]["paths"] == ["/workspace/build"]
    assert "rm -f -r" in ostiary("grants", "list").out


def test_those_of_live_sessions(ostiary: Ostiary, database: Path) -> None:
    found = ostiary("grants", "list", "--json").json()["grants"]
    assert [(grant["id"], grant["session"]) for grant in found] == [("s1", "http:ann/main")]


def test_none_of_a_daemon_that_has_stopped(ostiary: Ostiary, database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as conn:
        meta.put(conn, "running", "0")
    assert ostiary("grants", "list", "--json").json() == {"grants": []}


def test_broken_allowlist(ostiary: Ostiary, allowlist: Path) -> None:
    allowlist.write_text('{"version": 1, "grants": [{"id": 5}]}')
    ran = ostiary("grants", "list")
    assert ran.status == 1
    assert "allowlist.json" in ran.err


def test_nothing_reaches_the_terminal_as_control(ostiary: Ostiary, allowlist: Path) -> None:
    allowlist.write_text(json.dumps({"version": 1, "grants": [entry("p1", shape="rm \x1b[31m\u202e")]}))
    assert not set(ostiary("grants", "list").out) & {"\x1b", "\u202e"}
