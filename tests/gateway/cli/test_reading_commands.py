from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from agent.control.clock import SystemClock
from gateway.cli.approvals import approvals
from gateway.cli.audit import audit
from gateway.cli.sessions import sessions
from gateway.home import Home
from gateway.store import asks, messages, turns
from gateway.store import audit as records
from gateway.store import sessions as session_records
from gateway.store.database import Database
from tests.gateway.store.conftest import NOW
from tests.gateway.store.test_asks import ask


@dataclass
class Context:
    home: Home


Run = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.prepare()
    return home


@pytest.fixture
def run(home: Home) -> Run:
    def invoke(group: click.Group, *arguments: str) -> Result:
        return CliRunner().invoke(group, arguments, obj=Context(home))

    return invoke


def fill(conn: sqlite3.Connection, key: bytes) -> None:
    chain = records.Chain(key)
    for n in range(3):
        body = {"rule": "fs.rm", "n": n}
        chain.append(conn, kind="decision", request_id=f"r{n}", body=body, text="\x1b[31mred", scope="s", now=NOW)
    for owner in ("owner", "eve"):
        session_records.ensure(
            conn,
            key=f"http:{owner}/main",
            name="main",
            adapter="http",
            owner=f"http:{owner}",
            scope=f"person:http:{owner}",
            conversation={},
            now=NOW,
        )
    here = "http:owner/main"
    session_records.set_title(conn, here, "a \x1b[31mtitle")
    turns.start(conn, id="t1", session=here, principal="http:owner", role="admin", now=NOW)
    messages.add_user(conn, here, "t1", "delete build\n\x1b]0;gotcha\x07 now", NOW)
    messages.add_assistant(conn, here, "t1", "I will", [], NOW)
    asks.open_ask(conn, ask("a1", session=here))


@pytest.fixture
def filled(home: Home) -> Iterator[Home]:
    """A home with a daemon at work in it: the commands must not disturb it, nor be disturbed."""
    started, stop = threading.Event(), threading.Event()

    async def daemon() -> None:
        db = await Database.open(home.state_db, clock=SystemClock())
        await db.write(lambda conn: fill(conn, home.audit_key()))
        started.set()
        await asyncio.to_thread(stop.wait, 50)
        await db.write(lambda conn: session_records.touch(conn, "http:owner/main", NOW))
        await db.close()

    thread = threading.Thread(target=asyncio.run, args=(daemon(),))
    thread.start()
    assert started.wait(20)
    yield home
    stop.set()
    thread.join(20)
    assert not thread.is_alive()


def loaded(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_audit_verify_counts_the_rows(filled: Home, run: Run) -> None:
    result = run(audit, "verify")
    assert result.exit_code == 0
    assert result.stdout.startswith("3 rows, all intact. Head: ")
    found = loaded(run(audit, "verify", "--json"))
    assert (found["ok"], found["rows"], found["broken_seq"]) == (True, 3, None)
    assert run(audit, "verify", "--head", found["head"].upper()).exit_code == 0


def test_audit_verify_names_the_first_broken_row(filled: Home, run: Run) -> None:
    with sqlite3.connect(filled.state_db) as conn:
        conn.execute("UPDATE audit SET kind = 'start' WHERE seq = 2")
    conn.close()
    result = run(audit, "verify")
    assert result.exit_code == 1
    assert "First broken row: 2" in result.stdout
    result = run(audit, "verify", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["broken_seq"] == 2


def test_audit_verify_finds_a_cut_tail(filled: Home, run: Run) -> None:
    result = run(audit, "verify", "--head", "f" * 64)
    assert result.exit_code == 1
    assert "First broken row: 4" in result.stdout


def test_audit_verify_makes_no_key(filled: Home, run: Run) -> None:
    filled.audit_key_file.unlink()
    result = run(audit, "verify")
    assert result.exit_code == 1
    assert "audit.key is missing" in result.stderr
    assert not filled.audit_key_file.exists()


def test_audit_tail_shows_the_last_rows(filled: Home, run: Run) -> None:
    rows = loaded(run(audit, "tail", "-n", "2", "--json"))["rows"]
    assert [row["seq"] for row in rows] == [2, 3]
    assert rows[0]["at"] == "2026-03-01T12:00:00.123456Z"
    assert rows[0]["body"] == {"rule": "fs.rm", "n": 1}
    text = run(audit, "tail").stdout
    assert "decision  r0  n=0 rule=fs.rm" in text
    assert "red" not in text
    assert run(audit, "tail", "-n", "0").exit_code == 2


def test_sessions_list(filled: Home, run: Run) -> None:
    rows = loaded(run(sessions, "list", "--json"))["sessions"]
    assert [(row["key"], row["state"]) for row in rows] == [("http:eve/main", "idle"), ("http:owner/main", "waiting")]
    text = run(sessions, "list").stdout
    assert "http:owner/main" in text
    assert "\x1b" not in text
    assert "\\x1b[31mtitle" in text


def test_sessions_show(filled: Home, run: Run) -> None:
    found = loaded(run(sessions, "show", "http:owner/main", "--json"))
    assert [message["text"] for message in found["messages"]] == ["delete build\n\x1b]0;gotcha\x07 now", "I will"]
    assert found["asks"][0]["code"] == "K7QX"
    text = run(sessions, "show", "http:owner/main").stdout
    assert "I will" in text
    assert "waits for an answer: K7QX" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_sessions_show_asks_back_where_a_name_is_not_enough(filled: Home, run: Run) -> None:
    result = run(sessions, "show", "main")
    assert result.exit_code == 1
    assert "http:eve/main, http:owner/main" in result.stderr
    result = run(sessions, "show", "none")
    assert result.exit_code == 1
    assert "There is no session none" in result.stderr


def test_approvals_list(filled: Home, run: Run) -> None:
    (entry,) = loaded(run(approvals, "list", "--json"))["asks"]
    assert entry["id"] == "a1"
    assert entry["rules"] == ["fs.rm", "fs.recursive"]
    assert "token" not in entry
    text = run(approvals, "list").stdout
    assert "K7QX" in text
    assert "| rm -rf build" in text


async def test_an_empty_database_is_said(home: Home, run: Run) -> None:
    await (await Database.open(home.state_db, clock=SystemClock())).close()
    assert run(audit, "tail").stdout == "The record is empty.\n"
    assert run(audit, "verify").stdout.startswith("0 rows")
    assert "no sessions" in run(sessions, "list").stdout
    assert "Nothing waits" in run(approvals, "list").stdout
    assert loaded(run(approvals, "list", "--json")) == {"asks": []}


@pytest.mark.parametrize(
    ("group", "arguments"),
    [(audit, "tail"), (audit, "verify"), (sessions, "list"), (sessions, "show x"), (approvals, "list")],
)
@pytest.mark.parametrize("extra", [(), ("--json",)])
def test_without_a_database_every_command_says_so(
    home: Home, run: Run, group: click.Group, arguments: str, extra: tuple[str, ...]
) -> None:
    result = run(group, *arguments.split(), *extra)
    assert result.exit_code == 1
    assert "There is no database at" in result.stderr
    assert "Start the daemon once" in result.stderr
    assert not home.state_db.exists()


def test_a_damaged_database_is_said(home: Home, run: Run) -> None:
    home.state_db.write_bytes(b"no database at all, but long enough to be one" * 100)
    result = run(sessions, "list")
    assert result.exit_code == 1
    assert "cannot be used" in result.stderr
