"""JSON columns, and text that UTF-8 can hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: Converters of columns by their place in a row.
Decoders = Mapping[int, Callable[[Any], Any]]


def storable(text: str) -> str:
    """``text`` with lone surrogates replaced by U+FFFD: they arrive in JSON escapes, and no database takes them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


def dump(value: object) -> str:
    """Compact JSON.

    Raises:
        TypeError, ValueError: ``value`` has no JSON form.
    """
    return storable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def dump_sorted(value: object) -> str:
    """Compact JSON with sorted keys: the same text for equal values."""
    return storable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True))


def load_object(text: str) -> dict[str, Any]:
    """The object in a JSON column.

    Raises:
        ValueError: something else is in there.
    """
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")  # noqa: TRY004 - the value in the file is wrong, not its type here
    return value


def load_array(text: str) -> tuple[Any, ...]:
    """The array in a JSON column.

    Raises:
        ValueError: something else is in there.
    """
    value = json.loads(text)
    if not isinstance(value, list):
        raise ValueError("a JSON array was expected")  # noqa: TRY004 - likewise
    return tuple(value)


def decode(values: Sequence[Any], converters: Decoders) -> list[Any]:
    """A row with the columns at those places converted; NULL stays None."""
    row = list(values)
    for place, convert in converters.items():
        if row[place] is not None:
            row[place] = convert(row[place])
    return row
