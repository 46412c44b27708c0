"""The frame of the command line: global options, exit statuses, and what is imported when."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gateway import cli
from tests.gateway.cli.conftest import Ostiary


class TestGlobalOptions:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("--set", "log.level=debug", "config", "show", "--origin"),
            ("config", "--set", "log.level=debug", "show", "--origin"),
            ("config", "show", "--origin", "--set", "log.level=debug"),
            ("config", "show", "--set", "log.level=info", "--origin", "--set", "log.level=debug"),
        ],
    )
    def test_before_and_after_the_command(self, ostiary: Ostiary, arguments: tuple[str, ...]) -> None:
        ran = ostiary(*arguments)
        assert ran.status == 0
        line = next(line for line in ran.out.splitlines() if line.startswith("log.level"))
        assert line.split() == ["log.level", '"debug"', "--set", "log.level"]

    def test_home_and_config(self, ostiary: Ostiary, tmp_path: Path, home: Path) -> None:
        other = tmp_path / "other"
        other.mkdir()
        (other / "config.yaml").write_text("log: {level: error}")
        elsewhere = tmp_path / "c.yaml"
        elsewhere.write_text("log: {level: warning}")
        home.mkdir()
        (home / "config.yaml").write_text("log: {level: debug}")

        def level(*arguments: str) -> object:
            return ostiary("config", "show", "--json", *arguments).json()["log"]["level"]

        assert level() == "debug"
        assert level("--home", str(other)) == "error"
        assert level("--home", str(other), "--config", str(elsewhere)) == "warning"

    @pytest.mark.parametrize("command", list(cli.COMMANDS))
    def test_every_command_takes_them(self, command: str) -> None:
        context = click.Context(cli.cli)

        def check(found: click.Command | None) -> None:
            assert found is not None
            options = {name for parameter in found.params for name in parameter.opts}
            assert {"--home", "--config", "--set"} <= options
            if isinstance(found, click.Group):
                for child in found.commands.values():
                    check(child)

        check(cli.cli.get_command(context, command))


class TestStatus:
    def test_good(self, ostiary: Ostiary) -> None:
        assert ostiary("config", "check").status == 0

    @pytest.mark.parametrize(
        "arguments", [("frob",), ("config", "frob"), ("version", "--frob"), ("config", "show", "x")]
    )
    def test_usage(self, ostiary: Ostiary, arguments: tuple[str, ...]) -> None:
        assert ostiary(*arguments).status == 2

    @pytest.mark.parametrize("command", [("config", "show"), ("config", "check"), ("run",)])
    def test_bad_configuration(self, ostiary: Ostiary, home: Path, command: tuple[str, ...]) -> None:
        home.mkdir()
        (home / "config.yaml").write_text("log:\n  levl: debug\n")
        ran = ostiary(*command)
        assert ran.status == 78
        assert ran.out == ""
        assert f"{home}/config.yaml:2" in ran.err
        assert "log.levl" in ran.err
        assert "is not a key" in ran.err
        assert "`level`" in ran.err

    def test_missing_file_that_was_named(self, ostiary: Ostiary) -> None:
        assert ostiary("config", "check", "--config", "/nonexistent.yaml").status == 78

    def test_unknown_variable(self, ostiary: Ostiary, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OSTIARY_LOG__LEVLE", "debug")
        ran = ostiary("config", "check")
        assert ran.status == 78
        assert "OSTIARY_LOG__LEVEL" in ran.err

    @pytest.mark.parametrize("arguments", [(), ("--help",), ("config", "-h"), ("run", "--help")])
    def test_help(self, ostiary: Ostiary, arguments: tuple[str, ...]) -> None:
        ran = ostiary(*arguments)
        assert ran.status in {0, 2}
        assert "Usage: ostiary" in ran.out + ran.err

    def test_as_module(self) -> None:
        ran = subprocess.run([sys.executable, "-m", "gateway", "version"], capture_output=True, text=True, check=True)
        assert ran.stdout == f"ostiary {importlib.metadata.version('ostiary')}\n"

    def test_the_collector_works_again_after_a_command_was_imported(self) -> None:
        program = "import gc; from gateway import cli; cli.call(['version']); assert gc.isenabled()"
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    def test_reader_that_has_gone(self, home: Path) -> None:
        """``ostiary config show | head -0`` ends quietly."""
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "config", "show", "--origin"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 1
        process.stderr.close()


class TestVersion:
    def test_json(self, ostiary: Ostiary) -> None:
        assert ostiary("version", "--json").json()["version"] == importlib.metadata.version("ostiary")


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        ("version", ("aiohttp", "asyncio", "structlog", "msgspec", "yaml", "sqlite3", "gateway.config")),
        ("--help", ("aiohttp", "asyncio", "structlog", "msgspec", "yaml", "sqlite3", "gateway.config")),
        ("config check", ("aiohttp", "asyncio", "structlog", "sqlite3", "prometheus_client")),
        ("link", ("aiohttp", "structlog", "sqlite3", "prometheus_client", "tree_sitter")),
        ("sessions list", ("aiohttp", "prometheus_client", "tree_sitter")),
    ],
)
def test_a_command_imports_what_it_needs(home: Path, arguments: str, absent: tuple[str, ...]) -> None:
    program = (
        "import sys\nfrom gateway import cli\n"
        f"cli.call({arguments.split()!r})\n"
        f"print('LOADED', [name for name in {absent!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "LOADED []"
