"""The command line: ``ostiary``. Each command is imported when it runs, so that none pays for another."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from gateway.cli.context import CliContext
from gateway.cli.lazy import LazyGroup
from gateway.exceptions import ConfigError, GatewayError

#: Exit status of a configuration that cannot be used (``EX_CONFIG`` of sysexits.h).
EXIT_CONFIG = 78

#: Command to the module of the same name, and the line that ``--help`` shows without importing it.
COMMANDS = {
    "run": "Run the daemon in the foreground.",
    "link": "Print a new one-time link to the page.",
    "doctor": "Look for what is missing or broken, and say how to fix it.",
    "config": "Show or check the configuration.",
    "guard": "Judge a command without running it.",
    "approvals": "List requests that wait for a person.",
    "grants": "List or revoke standing permissions.",
    "audit": "Read and verify the record of decisions.",
    "sessions": "List or show sessions.",
    "version": "Print the version.",
}


@click.command(
    cls=LazyGroup,
    package="gateway.cli",
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def cli() -> None:
    """Ostiary: a chat gateway for agents that act."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its status.

    0 good, 1 negative verdict or failure, 2 usage, 78 bad configuration.
    """
    sys.exit(call(arguments))


def call(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the status instead of an exit."""
    try:
        result = cli.main(arguments, prog_name="ostiary", standalone_mode=False, obj=CliContext())
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("stopped", err=True)
        return 1
    except ConfigError as error:
        click.echo(str(error), err=True)
        return EXIT_CONFIG
    except GatewayError as error:
        click.echo(str(error), err=True)
        return 1
    except BrokenPipeError:
        # whoever read the output has gone; a second failure while Python flushes at exit would be noise
        sys.stdout = None
        return 1
    return result if isinstance(result, int) else 0
