from __future__ import annotations

from pathlib import Path

import msgspec

from gateway.config import Config
from tests.gateway.cli.conftest import Ostiary

FILE = """\
model:
  api_key: verysecret
adapters:
  http:
    tokens: [{token: verysecret2, user: ann}]
trash: {keep_h: 5}
"""


def test_show_masks_secrets(ostiary: Ostiary, home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text(FILE)
    for options in ((), ("--origin",), ("--json",), ("--json", "--origin")):
        ran = ostiary("config", "show", *options)
        assert ran.status == 0
        assert "verysecret" not in ran.out + ran.err
        assert "***" in ran.out


def test_show_origins(ostiary: Ostiary, home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text(FILE)
    entries = {entry["key"]: entry for entry in ostiary("config", "show", "--origin", "--json").json()}
    assert entries["model.api_key"] == {"key": "model.api_key", "value": "***", "origin": f"{home}/config.yaml:2"}
    assert entries["log.level"]["origin"] == "default"


def test_show_json_is_a_configuration(ostiary: Ostiary) -> None:
    assert msgspec.convert(ostiary("config", "show", "--json").json(), Config) == Config()


def test_check(ostiary: Ostiary, home: Path) -> None:
    assert "defaults" in ostiary("config", "check").out
    home.mkdir()
    (home / "config.yaml").write_text(FILE)
    ran = ostiary("config", "check")
    assert ran.status == 0
    assert f"ok: {home}/config.yaml" in ran.out
    assert "note: trash.keep_h" in ran.out
    assert len(ostiary("config", "check", "--json").json()["warnings"]) == 1
