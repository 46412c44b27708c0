"""Puts cards and their ends into the outbox of platforms that are pushed to."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime

from gateway.store import sessions
from gateway.store.asks import AskRow
from gateway.turn_end import Outbound, queue_part


class OutboxCards:
    """Fulfils :class:`gateway.ask_effects.Cards`."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound
        self._lanes: dict[str, str] = {}

    def show(self, conn: sqlite3.Connection, row: AskRow, now: datetime) -> None:
        """Queue the card."""
        self._add(conn, row, "card", now)

    def end(self, conn: sqlite3.Connection, row: AskRow, now: datetime) -> None:
        """Queue the edit that takes the buttons away."""
        self._add(conn, row, "card_end", now)

    def wake(self, session: str) -> None:
        """Send what was queued."""
        lane = self._lanes.pop(session, None)
        if lane is not None:
            self._outbound.wake(lane)

    def _add(self, conn: sqlite3.Connection, row: AskRow, kind: str, now: datetime) -> None:
        session = sessions.get(conn, row.session)
        if session is None or not self._outbound.pushes(session.adapter):
            return
        body = json.dumps({"ask": row.id})
        self._lanes[row.session] = queue_part(conn, session, row.turn, kind, body, now)
