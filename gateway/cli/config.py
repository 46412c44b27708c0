"""``ostiary config``."""

from __future__ import annotations

import click

from gateway.cli.context import CliContext
from gateway.cli.output import json_option, print_json, print_table


@click.group()
def config() -> None:
    """Show or check the configuration."""


@config.command()
@click.option("--origin", is_flag=True, help="Say of each value where it comes from.")
@json_option
@click.pass_obj
def show(context: CliContext, origin: bool, as_json: bool) -> None:
    """Print every value; secrets as ***."""
    from gateway import config_show  # noqa: PLC0415 - after the command line was judged

    rows = config_show.rows(context.loaded)
    if as_json and origin:
        print_json([{"key": row.key, "value": row.value, "origin": row.origin} for row in rows])
    elif as_json:
        print_json(config_show.nested(context.loaded))
    elif origin:
        print_table(("KEY", "VALUE", "ORIGIN"), [(row.key, row.text, row.origin) for row in rows])
    else:
        for row in rows:
            click.echo(f"{row.key}: {row.text}")


@config.command()
@json_option
@click.pass_obj
def check(context: CliContext, as_json: bool) -> None:
    """Check the configuration; exit 78 if it cannot be used."""
    loaded = context.loaded
    warnings = loaded.ineffective()
    if as_json:
        print_json({"ok": True, "file": str(loaded.file) if loaded.file else None, "warnings": warnings})
        return
    for warning in warnings:
        click.echo(f"note: {warning}")
    click.echo(f"ok: {loaded.file}" if loaded.file else f"ok: no file, defaults ({context.home.config_file})")
