"""Twins of the seams between adapters and gateway, for tests of either side.

:class:`MemoryAdapter` stands for a platform: it keeps what it was told to send, and fails when told to.
:class:`MemoryDesk` stands for the gateway behind the HTTP API: the test plays the agent through :class:`MemoryTurn`.
"""

from __future__ import annotations

from adapters.testing.adapter import MemoryAdapter, Shown
from adapters.testing.desk import MemoryAsk, MemoryDesk, MemorySession, MemoryTurn, Play

__all__ = ["MemoryAdapter", "MemoryAsk", "MemoryDesk", "MemorySession", "MemoryTurn", "Play", "Shown"]
