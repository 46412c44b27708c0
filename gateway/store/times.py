"""Times as the database keeps them: RFC 3339 UTC text with microseconds, which sorts as text."""

from __future__ import annotations

from datetime import UTC, datetime


def to_text(moment: datetime) -> str:
    """``2026-01-31T08:00:00.000000Z``.

    Raises:
        ValueError: ``moment`` has no time zone.
    """
    if moment.tzinfo is None:
        raise ValueError("a stored time needs a time zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """The aware UTC time that :func:`to_text` wrote.

    Raises:
        ValueError: no such time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"no time zone in {text!r}")
    return moment.astimezone(UTC)


def maybe_text(moment: datetime | None) -> str | None:
    """:func:`to_text`, with None kept."""
    return None if moment is None else to_text(moment)


def maybe_from(text: str | None) -> datetime | None:
    """:func:`from_text`, with None kept."""
    return None if text is None else from_text(text)
