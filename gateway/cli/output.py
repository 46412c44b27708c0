"""How commands print: JSON or lines, and nothing in them that a terminal would act on."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click


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
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} has no JSON form")


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
