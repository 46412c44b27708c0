"""Names for the ways in which the gateway asks the time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

#: Gives aware UTC wall time; a clock's ``now``.
Now = Callable[[], datetime]


def rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds, as the API shows times."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
