"""A command group that imports a command when it runs, and gives every command the global options."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from gateway.cli.context import CliContext


def _state(context: click.Context) -> CliContext:
    return context.ensure_object(CliContext)


def _take_home(context: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        _state(context).choose_home(value)


def _take_config(context: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        _state(context).choose_config(value)


def _take_sets(context: click.Context, _: click.Parameter, value: tuple[str, ...]) -> None:
    if value:
        _state(context).add_sets(value)


def global_options() -> list[click.Option]:
    """``--home``, ``--config`` and ``--set``; new objects each time."""
    common: dict[str, Any] = {"expose_value": False, "is_eager": True}
    directory = click.Path(file_okay=False, path_type=Path)
    file = click.Path(dir_okay=False, path_type=Path)
    return [
        click.Option(
            ["--home"], type=directory, callback=_take_home, help="Home of the daemon [env: OSTIARY_HOME].", **common
        ),
        click.Option(["--config"], type=file, callback=_take_config, help="Configuration file.", **common),
        click.Option(
            ["--set"],
            metavar="A.B=C",
            multiple=True,
            callback=_take_sets,
            help="Set one key of the configuration; may be repeated.",
            **common,
        ),
    ]


def accept_globals(command: click.Command) -> click.Command:
    """Let ``command`` and all below it take the global options, after the command as well as before it."""
    taken = {name for parameter in command.params for name in parameter.opts}
    command.params.extend(option for option in global_options() if not taken.intersection(option.opts))
    if isinstance(command, click.Group):
        for child in command.commands.values():
            accept_globals(child)
    return command


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Importing makes thousands of objects and no garbage; looking for it takes a seventh of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class LazyGroup(click.Group):
    """A group whose commands are the objects of the same name in modules of the same name."""

    def __init__(self, *args: Any, package: str, lazy: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._package = package
        self._lazy = lazy
        self.params.extend(global_options())

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the order in which they are registered."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import a command; None where there is no such command."""
        if cmd_name not in self._lazy:
            return None
        if cmd_name not in self.commands:
            with _collector_at_rest():
                module = importlib.import_module(f"{self._package}.{cmd_name}")
            self.commands[cmd_name] = accept_globals(getattr(module, cmd_name))
        return self.commands[cmd_name]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._lazy.items()))
