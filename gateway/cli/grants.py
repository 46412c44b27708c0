"""``ostiary grants``: standing permissions."""

from __future__ import annotations

import dataclasses
import sqlite3
from datetime import UTC, datetime
from urllib.parse import quote

import click

from agent.control.exceptions import ControlError
from agent.control.grants import Grant
from gateway.allowlist import Allowlist
from gateway.cli import control
from gateway.cli.context import CliContext
from gateway.cli.reading import database, json_option, plain, print_json, print_table
from gateway.store import grants as rows
from gateway.store import meta


@click.group()
def grants() -> None:
    """List or revoke standing permissions."""


@grants.command("list")
@json_option
@click.pass_obj
def list_(context: CliContext, as_json: bool) -> None:
    """List permanent grants and those of live sessions."""
    try:
        permanent = Allowlist(context.home.allowlist_file).grants()
    except ControlError as error:
        raise click.ClickException(str(error)) from error
    now = datetime.now(UTC)
    found = [grant for grant in permanent if grant.expires is None or grant.expires > now]
    if context.home.state_db.exists():
        with database(context) as conn:
            found += _live(conn, now)
    if as_json:
        print_json({"grants": [dataclasses.asdict(grant) for grant in found]})
    elif found:
        print_table(("ID", "RULE", "COMMAND", "PATHS", "FOR"), [_cells(grant) for grant in found])
    else:
        click.echo("There are no grants.")


@grants.command()
@click.argument("grant_id", metavar="ID")
@json_option
@click.pass_obj
def revoke(context: CliContext, grant_id: str, as_json: bool) -> None:
    """End a grant at once; asks the running daemon."""
    control.request(context.home.control_sock, "DELETE", f"/v1/grants/{quote(grant_id, safe='')}")
    if as_json:
        print_json({"id": grant_id, "revoked": True})
    else:
        click.echo(f"{plain(grant_id)} is revoked.")


def _live(conn: sqlite3.Connection, now: datetime) -> list[Grant]:
    """Grants of sessions; they end with the run of the daemon that they were given in."""
    boot = meta.get(conn, "boot")
    found = rows.all_live(conn, boot, now) if boot and meta.get(conn, "running") == "1" else []
    return [rows.as_grant(row) for row in found]


def _cells(grant: Grant) -> tuple[str, ...]:
    paths = ", ".join(map(plain, grant.paths)) or "-"
    whom = f"{grant.principal} in {grant.session}" if grant.session else "everybody, always"
    return (plain(grant.id), plain(grant.rule), plain(grant.shape), paths, plain(whom))
