"""A request as people see it: the card, and its form in the API."""

from __future__ import annotations

from adapters.base import Card, CardEnd, CardKind, Choice
from adapters.http.wire import ask_json
from gateway.store.asks import AskRow

#: Labels of the buttons. They say what an answer covers.
LABELS = {
    "once": "Approve once",
    "session": "Approve for this session",
    "always": "Always approve",
    "deny": "Deny",
}


def card_of(row: AskRow) -> Card:
    """The card of a request."""
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
    )


def card_data(row: AskRow) -> dict[str, object]:
    """The ``ask`` of the API."""
    return ask_json(card_of(row))


def end_of(row: AskRow) -> CardEnd:
    """How a settled request ended."""
    return CardEnd(outcome=row.state, choice=row.choice or "", by=row.settled_by or "")
