"""What commands that only read have in common: the database, JSON or lines, and errors as sentences."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import click

from gateway.cli.output import json_option, plain, print_json, print_table
from gateway.home import Home, HomeError
from gateway.store import readonly
from gateway.store.exceptions import StoreError

__all__ = ["Context", "database", "json_option", "plain", "print_json", "print_table", "sentences"]


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
