"""``ostiary sessions``: who talks where, and what was said."""

from __future__ import annotations

import click

from gateway.cli.reading import Context, database, json_option, plain, print_json, print_table
from gateway.store import asks, messages
from gateway.store import sessions as records
from gateway.store.times import to_text


@click.group("sessions")
def sessions() -> None:
    """Show sessions."""


@sessions.command("list")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Sessions to show.")
@json_option
@click.pass_obj
def list_(context: Context, limit: int, as_json: bool) -> None:
    """List sessions, the latest first."""
    with database(context) as conn:
        rows = [(row, records.state_of(conn, row.key)) for row in records.recent(conn, limit)]
    if as_json:
        entries = [
            {"key": row.key, "session": row.name, "owner": row.owner, "scope": row.scope, "title": row.title}
            | {"state": state, "created_at": row.created_at, "last_at": row.last_at}
            for row, state in rows
        ]
        print_json({"sessions": entries})
    elif rows:
        table = [(plain(row.key), state, to_text(row.last_at), plain(row.title, 60)) for row, state in rows]
        print_table(("SESSION", "STATE", "LAST", "TITLE"), table)
    else:
        click.echo("There are no sessions yet.")


@sessions.command("show")
@click.argument("name")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Messages to show.")
@json_option
@click.pass_obj
def show(context: Context, name: str, limit: int, as_json: bool) -> None:
    """Print a session's last messages. NAME is its key, or its name where only one person has a session of it."""
    with database(context) as conn:
        found = records.named(conn, name)
        if not found:
            raise click.ClickException(
                f"There is no session {plain(name)}. `ostiary sessions list` shows those there are."
            )
        if len(found) > 1 and found[0].key != name:
            keys = ", ".join(plain(row.key) for row in found)
            raise click.ClickException(f"Several people have a session of that name. Give its key: {keys}")
        row = found[0]
        state = records.state_of(conn, row.key)
        said = messages.page(conn, row.key, limit)
        waiting = asks.open_in(conn, row.key)
    if as_json:
        head = {"key": row.key, "session": row.name, "owner": row.owner, "scope": row.scope, "title": row.title}
        entries = [
            {"id": m.id, "turn": m.turn, "role": m.role, "text": m.text, "at": m.at, "status": m.status} for m in said
        ]
        open_asks = [
            {"id": ask.id, "code": ask.code, "title": ask.title, "expires_at": ask.expires_at} for ask in waiting
        ]
        times = {"state": state, "created_at": row.created_at, "last_at": row.last_at}
        print_json(head | times | {"messages": entries, "asks": open_asks})
        return
    click.echo(f"{plain(row.key)}  {state}  last {to_text(row.last_at)}  {plain(row.title)}".rstrip())
    for message in said:
        click.echo(f"\n[{to_text(message.at)}] {message.role}")
        for line in message.text.splitlines():
            click.echo(f"  {plain(line)}")
    for ask in waiting:
        click.echo(f"\nwaits for an answer: {ask.code}  {plain(ask.title)}")
