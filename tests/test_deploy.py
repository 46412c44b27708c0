"""The files of ``deploy/`` are what the code and the service manager take them for."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from adapters.http import adapter
from gateway import config_loader, daemon, delivery, log_sink
from gateway.config import Config
from gateway.web import server

DEPLOY = Path(__file__).parents[1] / "deploy"
UNIT = DEPLOY / "systemd" / "ostiary.service"

#: Settings under which bubblewrap, or what runs in it, fails.
BREAKING = (
    "RestrictNamespaces",
    "ProcSubset",
    "ProtectProc",
    "ProtectKernelTunables",
    "ProtectHostname",
    "MemoryDenyWriteExecute",
)

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def settings() -> dict[str, list[str]]:
    """The settings of the unit."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def test_example_has_the_defaults() -> None:
    """Whoever copies it changes nothing."""
    loaded = config_loader.load(DEPLOY / "config.example.yaml", required=True, environ={})
    assert loaded.config == Config()
    assert loaded.ineffective() == []


def test_example_with_its_comments_taken_away_is_valid(tmp_path: Path) -> None:
    secret = tmp_path / "ann"
    secret.write_text("a-long-random-text\n")
    bot = tmp_path / "bot"
    bot.write_text("123456:abc\n")
    text = (DEPLOY / "config.example.yaml").read_text()
    text = text.replace("/run/secrets/ann", str(secret)).replace("/run/secrets/telegram_token", str(bot))
    file = tmp_path / "c.yaml"
    file.write_text(re.sub(r"^(\s+)# ", r"\1", text, flags=re.MULTILINE))
    config = config_loader.load(file, required=True, environ={}).config
    assert config.adapters.http.tokens[0].user == "ann"
    assert config.sandbox.mounts[0].path == "/srv/reports"
    assert config.adapters.telegram.allowed_users == ("123456789",)


class TestUnit:
    def test_everything_that_a_stop_may_take_fits_into_its_limit(self) -> None:
        """Killed in the middle of its clean-up, a daemon leaves its children to the kill.

        Counted is the worst: a drain to its end, then streams, platforms, sends and a log that all hang.
        """
        own = Config().gateway.drain_s + adapter.STOP_S + 2 * server.SHUTDOWN_S
        own += daemon.ADAPTER_STOP_S + delivery.CLOSE_S + log_sink.CLOSE_S
        assert own + 10 < int(settings()["TimeoutStopSec"][0])

    def test_a_frozen_loop_is_aborted_with_its_stacks(self) -> None:
        assert settings()["Type"] == ["notify"]
        assert int(settings()["WatchdogSec"][0]) >= 30
        assert settings()["WatchdogSignal"] == ["SIGABRT"]

    def test_bad_configuration_is_not_restarted(self) -> None:
        assert settings()["RestartPreventExitStatus"] == ["78"]

    @pytest.mark.parametrize("name", BREAKING)
    def test_what_breaks_sandboxes_is_left_out(self, name: str) -> None:
        assert name not in settings()

    def test_what_sandboxes_need_is_allowed(self) -> None:
        assert "AF_NETLINK" in settings()["RestrictAddressFamilies"][0]
        assert {"@mount", "sethostname"} <= set(settings()["SystemCallFilter"][0].split())

    @needs_systemd
    def test_verify(self, tmp_path: Path) -> None:
        unit = tmp_path / UNIT.name
        unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text(), flags=re.MULTILINE))
        result = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
        assert (result.returncode, result.stdout + result.stderr) == (0, "")

    @needs_systemd
    def test_exposure(self) -> None:
        command = ["systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager", str(UNIT)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout[-300:]


def test_one_version_of_uv() -> None:
    """The image and the set-up install from the lock with the same program."""
    root = DEPLOY.parent
    setup = re.findall(r"^UV_VERSION=(\S+)", (root / "scripts" / "setup").read_text(), re.MULTILINE)
    assert setup == re.findall(r"uv==(\S+)", (root / "Dockerfile").read_text())
