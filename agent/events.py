"""What a running conversation tells its surroundings while it works."""

from __future__ import annotations

import enum
from typing import Protocol


class ToolState(enum.Enum):
    """Ends of a tool call's life as shown to people."""

    START = "start"
    END = "end"


class EventSink(Protocol):
    """Receives progress; must not block and must not raise."""

    def delta(self, text: str) -> None:
        """A piece of the answer, as it streams."""
        ...

    def tool(self, name: str, state: ToolState) -> None:
        """A tool call began or ended."""
        ...

    def progress(self, text: str) -> None:
        """One short line about long work; replaces the line before."""
        ...
