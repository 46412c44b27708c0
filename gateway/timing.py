"""Names for the ways in which the gateway asks the time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

#: Gives aware UTC wall time; a clock's ``now``.
Now = Callable[[], datetime]
