"""``ostiary version``."""

from __future__ import annotations

import importlib.metadata
import platform

import click

from gateway.cli.output import json_option, print_json


@click.command()
@json_option
def version(as_json: bool) -> None:
    """Print the version."""
    ours = importlib.metadata.version("ostiary")
    if as_json:
        print_json({"version": ours, "python": platform.python_version()})
    else:
        click.echo(f"ostiary {ours}")
