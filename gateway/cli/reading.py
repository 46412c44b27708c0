"""What commands that only read have in common: the database, JSON or lines, and errors as sentences."""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol

import click

from gateway.home import Home, HomeError
from gateway.store import readonly
from gateway.store.exceptions import StoreError
from gateway.store.times import to_text


class Context(Protocol):
    """The part of the command line's context that reading needs."""

    @property
    def home(self) -> Home:
        """The home that the options name."""
        ...


@contextmanager
def database(context: Context) -> Iterator[sqlite3.Connection]:
    """A read-only connection to the home's database; what is wrong with it becomes a sentence and exit status 1."""
    with sentences(), readonly.connect(context.home.state_db) as conn:
        yield conn


@contextmanager
def sentences() -> Iterator[None]:
    """Turn errors of store and home into what click prints before it exits with 1."""
    try:
        yield
    except (StoreError, HomeError) as error:
        raise click.ClickException(str(error)) from error


def print_json(value: object) -> None:
    """Print ``value``; times as RFC 3339 UTC."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=_json_default))


def plain(text: str, width: int | None = None) -> str:
    """``text`` on one line with everything that a terminal would act on, or that would hide something, made visible."""
    shown = "".join(_visible(character) for character in text)
    return shown if width is None or len(shown) <= width else shown[: width - 1] + "…"


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns as wide as their widest cell."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def _json_default(value: Any) -> str:
    if isinstance(value, datetime):
        return to_text(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
