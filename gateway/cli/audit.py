"""``ostiary audit``: what was decided, started and ended, and whether the record is whole."""

from __future__ import annotations

import dataclasses

import click

from gateway.cli.reading import Context, database, json_option, plain, print_json, sentences
from gateway.store import audit as records
from gateway.store.times import to_text


@click.group("audit")
def audit() -> None:
    """Show and check the audit record."""


@audit.command("tail")
@click.option("-n", "count", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Rows to show.")
@json_option
@click.pass_obj
def tail(context: Context, count: int, as_json: bool) -> None:
    """Print the last rows, oldest first."""
    with database(context) as conn:
        rows = records.tail(conn, count)
    if as_json:
        print_json({"rows": [dataclasses.asdict(row) for row in rows]})
        return
    if not rows:
        click.echo("The record is empty.")
    for row in rows:
        body = " ".join(f"{plain(key)}={plain(str(value))}" for key, value in row.body.items())
        click.echo(f"{row.seq}  {to_text(row.at)}  {plain(row.kind)}  {plain(row.request_id) or '-'}  {body}")


@audit.command("verify")
@click.option("--head", help="A hash noted down earlier; finds a record whose end was cut off.")
@json_option
@click.pass_obj
def verify(context: Context, head: str | None, as_json: bool) -> None:
    """Check the whole record. Exits with 1 when it is not intact."""
    with sentences():
        key = context.home.audit_key()
    with database(context) as conn:
        found = records.verify(conn, key, head.strip().lower() if head else None)
    if as_json:
        print_json(dataclasses.asdict(found))
    elif found.ok:
        click.echo(f"{found.rows} rows, all intact. Head: {found.head}")
    else:
        click.echo(f"Not intact. First broken row: {found.broken_seq}. {found.reason} {found.rows} rows before it are.")
    if not found.ok:
        raise click.exceptions.Exit(1)
