"""``ostiary run`` as a process, and the commands that talk to it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.cli import control
from tests.gateway.cli.conftest import Ostiary, Ran

LINK = re.compile(r"open http://127\.0\.0\.1:([0-9]+)/login\?code=(\S+)\n")


@dataclass
class Daemon:
    """A daemon that has printed its link."""

    process: subprocess.Popen[str]
    home: Path
    port: int
    link: str

    def token(self) -> str:
        return (self.home / "http_token").read_text().strip()

    def post(self, path: str, body: object) -> dict[str, object]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token()}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            answer = json.load(response)
        assert isinstance(answer, dict)
        return answer

    def stop(self) -> Ran:
        """SIGTERM; how it ended, and what else it had printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=30)
        return Ran(self.process.returncode, out, err)


Start = Callable[..., Daemon]


def arguments(home: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "gateway", "run", "--home", str(home), "--set", "adapters.http.port=0", *more]


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    started: list[Daemon] = []

    def start(*more: str) -> Daemon:
        process = subprocess.Popen(
            arguments(home, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        match = LINK.fullmatch(line)
        if match is None:
            pytest.fail(f"printed {line!r}; {process.communicate(timeout=30)[1]}")
        started.append(Daemon(process, home, int(match[1]), line.removeprefix("open ").strip()))
        return started[-1]

    yield start
    for daemon in started:
        if daemon.process.returncode is None:
            daemon.process.kill()
            daemon.process.communicate()


def test_one_line_then_a_clean_end(start: Start) -> None:
    """Standard output holds the link alone, standard error the log, and SIGTERM drains to status 0."""
    ran = start().stop()
    assert ran.status == 0
    assert ran.out == ""
    events = [json.loads(line)["event"] for line in ran.err.splitlines()]
    assert "daemon_ready" in events
    assert events[-1] == "daemon_stopped"


def test_interrupt(start: Start) -> None:
    daemon = start()
    daemon.process.send_signal(signal.SIGINT)
    daemon.process.communicate(timeout=30)
    assert daemon.process.returncode == 0


def test_no_secret_in_the_log(start: Start, tmp_path: Path) -> None:
    daemon = start("--set", "log.level=debug", "--set", "adapters.http.tokens=[{token: s3cret-of-ann, user: ann}]")
    token = daemon.token()
    with urllib.request.urlopen(daemon.link, timeout=30) as response:
        response.read()
    daemon.post("/v1/sessions/main/messages?wait=30", {"text": f"hello s3cret-of-ann {token}"})
    code = daemon.link.rpartition("=")[2]
    ran = daemon.stop()
    assert ran.status == 0
    for secret in ("s3cret-of-ann", token, code):
        assert secret not in ran.err


def test_settings_without_effect_are_said(start: Start) -> None:
    ran = start("--set", "trash.keep_h=5").stop()
    lines = [json.loads(line) for line in ran.err.splitlines()]
    (line,) = [line for line in lines if line["event"] == "setting_without_effect"]
    assert line["level"] == "warning"
    assert "trash.keep_h" in line["detail"]


def test_a_start_brings_in_nothing_that_it_does_not_need(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heavy modules of other platforms, providers and engines are none of the running daemon's."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    daemon = start()
    daemon.post("/v1/sessions/main/messages?wait=30", {"text": "hello"})
    lines = daemon.stop().err.splitlines()
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines if line.startswith("import time:")}
    assert {"gateway", "agent", "adapters", "aiohttp"} <= loaded
    heavy = {"telegram", "slack_sdk", "slack_bolt", "openai", "anthropic", "mcp", "httpx", "jinja2", "jsonschema"}
    assert not loaded & (heavy | {"aiodocker", "pydantic", "numpy", "markdown_it", "pytest", "multiprocessing"})


def test_second_daemon(start: Start, home: Path) -> None:
    daemon = start()
    ran = subprocess.run(arguments(home), capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert str(daemon.process.pid) in ran.stderr
    assert ran.stdout == ""
    assert daemon.stop().status == 0


def test_port_in_use(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [*arguments(home), "--set", f"adapters.http.port={taken.getsockname()[1]}"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "adapters.http.port" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_newer_database(start: Start, home: Path) -> None:
    assert start().stop().status == 0
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version = 999')"
    subprocess.run([sys.executable, "-W", "ignore", "-c", program, str(home / "state.db")], check=True)
    ran = subprocess.run(arguments(home), capture_output=True, text=True, check=False)
    assert ran.returncode == 78
    assert "999" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_commands_of_the_running_daemon(start: Start, ostiary: Ostiary) -> None:
    daemon = start()
    link = ostiary("link")
    assert link.status == 0
    assert LINK.fullmatch(link.out)
    assert ostiary("link", "--json").json()["url"] != link.out.removeprefix("open ").strip()
    assert ostiary("grants", "list", "--json").json() == {"grants": []}
    revoked = ostiary("grants", "revoke", "nothing")
    assert revoked.status == 1
    assert "nothing" in revoked.err
    found = {entry["check"]: entry for entry in ostiary("doctor", "--json").json()["findings"]}
    assert found["daemon"]["state"] == "good"
    assert daemon.stop().status == 0
    assert ostiary("link").status == 1


def test_health_over_the_control_socket(start: Start, home: Path) -> None:
    """What the image's health check asks."""
    daemon = start()
    control.request(home / "control.sock", "GET", "/healthz")
    assert daemon.stop().status == 0


def test_metrics_need_a_token(start: Start) -> None:
    daemon = start()
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.port}/metrics")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=30)
    assert caught.value.code == 401
    caught.value.close()
    request.add_header("Authorization", f"Bearer {daemon.token()}")
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read().decode()
    assert "ostiary_loop_lag_seconds_bucket" in text
    assert daemon.stop().status == 0


def test_open_address_without_tokens_does_not_start(home: Path) -> None:
    ran = subprocess.run(
        arguments(home, "--set", "adapters.http.host=0.0.0.0"), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 78
    assert "adapters.http.tokens" in ran.stderr
    assert not home.exists()


def test_service_manager_is_told(start: Start, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "60000000")
        daemon = start()
        told = [manager.recv(4096).decode() for _ in range(2)]
        assert daemon.stop().status == 0
        told.append(manager.recv(4096).decode())
    assert any(message.startswith("READY=1") for message in told)
    assert "WATCHDOG=1" in told
    assert told[-1].startswith("STOPPING=1")
