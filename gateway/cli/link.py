"""``ostiary link``."""

from __future__ import annotations

import click

from gateway.cli import control
from gateway.cli.context import CliContext
from gateway.cli.output import json_option, print_json


@click.command()
@json_option
@click.pass_obj
def link(context: CliContext, as_json: bool) -> None:
    """Print a new one-time link to the page of the running daemon (single use, 10 minutes)."""
    answer = control.request(context.home.control_sock, "POST", "/v1/link")
    if as_json:
        print_json(answer)
    else:
        click.echo(f"open {answer['url']}")
