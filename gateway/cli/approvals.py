"""``ostiary approvals``: what waits for a person."""

from __future__ import annotations

import click

from gateway.cli.reading import Context, database, json_option, plain, print_json
from gateway.store import asks
from gateway.store.times import to_text


@click.group("approvals")
def approvals() -> None:
    """Show requests that wait for a person."""


@approvals.command("list")
@json_option
@click.pass_obj
def list_(context: Context, as_json: bool) -> None:
    """List open requests, oldest first."""
    with database(context) as conn:
        rows = asks.all_open(conn)
    if as_json:
        entries = [_entry(row) for row in rows]
        print_json({"asks": entries})
        return
    if not rows:
        click.echo("Nothing waits for an answer.")
    for row in rows:
        click.echo(f"{row.code}  {plain(row.session)}  until {to_text(row.expires_at)}  for {plain(row.requester)}")
        click.echo(f"  {plain(row.title)}: {plain(row.reason)}")
        for line in row.command.splitlines():
            click.echo(f"  | {plain(line)}")


def _entry(row: asks.AskRow) -> dict[str, object]:
    return {
        "id": row.id,
        "code": row.code,
        "request_id": row.request_id,
        "kind": row.kind,
        "session": row.session,
        "title": row.title,
        "command": row.command,
        "reason": row.reason,
        "rules": row.rules,
        "impact": row.impact or None,
        "choices": row.choices,
        "requested_by": row.requester,
        "origin": row.origin or None,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
    }
