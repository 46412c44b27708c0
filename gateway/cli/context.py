"""What the commands share: the home and the configuration that the options name."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.control.guard.verdict import Assumptions
    from gateway.config import Config
    from gateway.config_loader import Loaded
    from gateway.home import Home


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
    def home(self) -> Home:
        """The daemon's home; nothing is made."""
        from gateway.home import Home  # noqa: PLC0415 - `version` and `--help` do without

        return Home(self._home.expanduser().absolute()) if self._home is not None else Home.default()

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

    def assumptions(self) -> Assumptions:
        """What the guard takes for granted about this daemon."""
        from gateway.assumptions import assumptions_of  # noqa: PLC0415

        return assumptions_of(self.home)
