from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway import checkup, config_loader
from gateway.checkup import Finding, State
from gateway.config import Adapters, Config, Http, Sandbox
from gateway.exceptions import ConfigError, Problem
from gateway.home import Home
from gateway.store import migrations
from gateway.store.times import to_text

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def place(tmp_path: Path) -> Home:
    """A home as the daemon leaves it."""
    place = Home(tmp_path / "h")
    place.prepare()
    with closing(sqlite3.connect(place.state_db, isolation_level=None)) as conn:
        migrations.migrate(conn, place.state_db, migrations.load())
    place.state_db.chmod(0o600)
    return place


def states(findings: Iterable[Finding]) -> dict[str, State]:
    """The worst state of each check."""
    worst: dict[str, State] = {}
    order = list(State)
    for finding in findings:
        worst[finding.check] = max(worst.get(finding.check, State.GOOD), finding.state, key=order.index)
        assert finding.fix or finding.state is State.GOOD, finding
    return worst


def test_all_is_well(place: Home) -> None:
    found = states([*checkup.python(), *checkup.home(place), *checkup.database(place, NOW)])
    assert set(found.values()) <= {State.GOOD, State.NOTE}


def test_before_the_first_start(tmp_path: Path) -> None:
    place = Home(tmp_path / "none" / "yet")
    assert states([*checkup.home(place), *checkup.database(place, NOW)]) == {"home": State.GOOD, "database": State.GOOD}
    assert not place.root.exists()


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o750])
def test_home_that_others_may_enter(place: Home, mode: int) -> None:
    place.root.chmod(mode)
    assert states(checkup.home(place))["home"] is State.BAD


def test_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    assert states(checkup.home(Home(tmp_path / "f")))["home"] is State.BAD


@pytest.mark.parametrize("name", ["audit.key", "http_token", "state.db"])
def test_secret_files_that_others_may_read(place: Home, name: str) -> None:
    (place.root / name).chmod(0o644)
    assert states(checkup.home(place))["files"] is State.BAD


def test_configuration_that_others_may_read_but_not_write(place: Home) -> None:
    place.config_file.write_text("")
    place.config_file.chmod(0o644)
    assert "files" not in states(checkup.home(place))
    place.config_file.chmod(0o664)
    assert states(checkup.home(place))["files"] is State.BAD


def test_damaged_database(place: Home) -> None:
    raw = bytearray(place.state_db.read_bytes())
    raw[4096 : 4096 * 12] = b"\xff" * (4096 * 11)
    place.state_db.write_bytes(raw)
    assert states(checkup.database(place, NOW))["database"] is State.BAD


def test_file_that_is_no_database(place: Home) -> None:
    place.state_db.write_text("hello" * 1000)
    assert states(checkup.database(place, NOW))["database"] is State.BAD


def test_newer_database(place: Home) -> None:
    with closing(sqlite3.connect(place.state_db)) as conn:
        conn.execute("PRAGMA user_version = 999")
    assert states(checkup.database(place, NOW))["database"] is State.BAD


@pytest.mark.parametrize(("lead", "state"), [(30, State.GOOD), (120, State.BAD)])
def test_clock_behind_the_newest_row(place: Home, lead: int, state: State) -> None:
    with closing(sqlite3.connect(place.state_db)) as conn:
        conn.execute(
            "INSERT INTO inbox (event_key, session, principal, role, sender, text, message_ref, received_at)"
            " VALUES ('k', 's', 'p', 'admin', '{}', 't', 'r', ?1)",
            (to_text(NOW + timedelta(seconds=lead)),),
        )
        conn.commit()
    assert states(checkup.database(place, NOW))["clock"] is state


def test_listener(place: Home) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = Config(adapters=Adapters(http=Http(port=taken.getsockname()[1])))
        found = states(checkup.listener(settings, running=False))
        assert found == {"daemon": State.NOTE, "listener": State.BAD}
        assert states(checkup.listener(settings, running=True)) == {"daemon": State.GOOD}
    free = Config(adapters=Adapters(http=Http(port=0)))
    assert states(checkup.listener(free, running=False))["listener"] is State.GOOD


def test_engine_of_another_version(place: Home) -> None:
    found = list(checkup.sandbox(Config(sandbox=Sandbox(engine="ssh")), place))
    assert states(found) == {"sandbox": State.BAD}
    assert "not part of this version" in found[0].text


def test_engine_that_is_tried(place: Home) -> None:
    """Whether it works depends on the machine; whatever it is, a fix comes with it."""
    assert set(states(checkup.sandbox(Config(), place))) == {"sandbox"}


def test_configuration(place: Home) -> None:
    bad = ConfigError([Problem("c.yaml:1", "a.b", "is not a key"), Problem("c.yaml:2", "c", "is not a key")])
    assert len(list(checkup.configuration(bad))) == 2
    loaded = config_loader.load(place.config_file, required=False, environ={}, sets=["trash.keep_h=2"])
    assert states(checkup.configuration(loaded)) == {"config": State.NOTE}
