"""What the commands share: the home, the configuration, and how they print."""

from __future__ import annotations

import functools
import importlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from gateway.config import Config
    from gateway.config_loader import Loaded


class HomeLike(Protocol):
    """What the commands need of :class:`gateway.home.Home`."""

    @property
    def root(self) -> Path:
        """The folder itself."""
        ...

    @property
    def config_file(self) -> Path:
        """``config.yaml`` in it."""
        ...

    @property
    def state_db(self) -> Path:
        """The database."""
        ...

    @property
    def control_sock(self) -> Path:
        """The socket of the running daemon."""
        ...


def default_home(environ: Mapping[str, str]) -> Path:
    """``$OSTIARY_HOME``, else ``~/.ostiary``, for root ``/var/lib/ostiary``."""
    named = environ.get("OSTIARY_HOME")
    if named:
        return Path(named).expanduser()
    return Path("/var/lib/ostiary") if os.geteuid() == 0 else Path("~/.ostiary").expanduser()


class CliContext:
    """The state of one command line; commands get it with ``click.pass_obj``."""

    def __init__(self) -> None:
        self._home: Path | None = None
        self._config: Path | None = None
        self._sets: list[str] = []

    def choose_home(self, path: Path) -> None:
        """Take ``--home``."""
        self._home = path

    def choose_config(self, path: Path) -> None:
        """Take ``--config``."""
        self._config = path

    def add_sets(self, items: Iterable[str]) -> None:
        """Take ``--set``."""
        self._sets.extend(items)

    @functools.cached_property
    def home(self) -> HomeLike:
        """The daemon's home; nothing is made."""
        path = (self._home or default_home(os.environ)).absolute()
        home: HomeLike = importlib.import_module("gateway.home").Home(path)
        return home

    @functools.cached_property
    def loaded(self) -> Loaded:
        """The configuration with its origins.

        Raises:
            ConfigError: it cannot be used.
        """
        from gateway import config_loader  # noqa: PLC0415 - `version` and `--help` do without

        return config_loader.load(
            self._config or self.home.config_file,
            required=self._config is not None,
            environ=os.environ,
            sets=self._sets,
        )

    def config(self) -> Config:
        """The configuration.

        Raises:
            ConfigError: it cannot be used.
        """
        return self.loaded.config


def print_json(value: object) -> None:
    """Print one JSON value on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows in columns; nothing but the heads where there are no rows."""
    table = [heads, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
    for row in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
