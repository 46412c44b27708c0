"""A request as people see it: the card, and its form in the API."""

from __future__ import annotations

import sqlite3

from adapters.base import Card, CardEnd, CardKind, Choice
from adapters.http.wire import ask_json
from gateway.store import sessions
from gateway.store.asks import AskRow

#: Labels of the buttons. They say what an answer covers.
LABELS = {
    "once": "Approve once",
    "session": "Approve for this session",
    "always": "Always approve",
    "deny": "Deny",
}


def card_in(conn: sqlite3.Connection, row: AskRow) -> Card:
    """The card of a request, with the name of its session."""
    session = sessions.get(conn, row.session)
    return card_of(row, session.name if session is not None else "")


def card_of(row: AskRow, session: str = "") -> Card:
    """The card of a request; ``session`` is the name that people know it by."""
    return Card(
        id=row.id,
        code=row.code,
        request_id=row.request_id,
        kind=CardKind(row.kind),
        title=row.title,
        command=row.command,
        reason=row.reason,
        rules=row.rules,
        choices=tuple(Choice(value, LABELS.get(value, value)) for value in row.choices),
        requested_by=row.requester,
        expires_at=row.expires_at,
        impact=row.impact,
        token=row.token,
        origin=row.origin,
        session=session,
    )


def card_data(conn: sqlite3.Connection, row: AskRow) -> dict[str, object]:
    """The ``ask`` of the API."""
    return ask_json(card_in(conn, row))


def end_of(row: AskRow) -> CardEnd:
    """How a settled request ended."""
    return CardEnd(outcome=row.state, choice=row.choice or "", by=row.settled_by or "")
