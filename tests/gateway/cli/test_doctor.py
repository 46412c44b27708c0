from __future__ import annotations

from pathlib import Path

from tests.gateway.cli.conftest import Ostiary


def test_bad_is_1(ostiary: Ostiary, home: Path) -> None:
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    ran = ostiary("doctor")
    assert ran.status == 1
    assert "chmod" in ran.out
    assert "BAD" in ran.out


def test_bad_configuration_is_a_finding(ostiary: Ostiary, home: Path) -> None:
    ran = ostiary("doctor", "--json", "--set", "log.levl=1")
    assert ran.status == 1
    findings = ran.json()["findings"]
    assert [finding["fix"] for finding in findings if finding["check"] == "config"] == ["did you mean `level`?"]


def test_json(ostiary: Ostiary) -> None:
    ran = ostiary("doctor", "--json", "--set", "adapters.http.port=0")
    assert ran.json()["ok"] is (ran.status == 0)
    assert {"python", "config", "home", "database", "sandbox", "daemon"} <= {
        finding["check"] for finding in ran.json()["findings"]
    }
