"""What happens with every change of a request, inside the unit of work that makes it and after its commit."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from agent.control.ports import AskSpec, Choice, Settled
from gateway.asks_view import card_data
from gateway.recorder import AuditTrail, full_text
from gateway.store import asks, events, grants, sessions
from gateway.store.asks import AskRow
from gateway.store.events import EventIds
from gateway.store.grants import GrantRow
from gateway.streaming import EventHub

log = structlog.get_logger(__name__)

#: A session grant ends after this time at the latest.
SESSION_GRANT_LIFE = timedelta(hours=24)


class Cards(Protocol):
    """Puts cards into the outbox of platforms that are pushed to."""

    def show(self, conn: sqlite3.Connection, row: AskRow, now: datetime) -> None:
        """Queue the card for the session's chat, if its platform is pushed to."""
        ...

    def end(self, conn: sqlite3.Connection, row: AskRow, now: datetime) -> None:
        """Queue the edit of every place where the card stands."""
        ...

    def wake(self, session: str) -> None:
        """Something was queued and committed."""
        ...


class Counter(Protocol):
    """Counts how requests end."""

    def ask_settled(self, outcome: str) -> None:
        """One request has ended."""
        ...


class AskEffects:
    """Joins a request's row with its event, its audit row, its grants and its cards."""

    def __init__(
        self,
        *,
        ids: EventIds,
        hub: EventHub,
        trail: AuditTrail,
        cards: Cards,
        counter: Counter,
        boot: str,
    ) -> None:
        self._ids = ids
        self._hub = hub
        self._trail = trail
        self._cards = cards
        self._counter = counter
        self._boot = boot

    def open(self, conn: sqlite3.Connection, row: AskRow, spec: AskSpec, now: datetime) -> AskRow:
        """Insert the row, its event, its audit row and its cards."""
        asks.open_ask(conn, row)
        events.append(
            conn, self._ids, session=row.session, turn=row.turn, type="ask", data=card_data(conn, row), now=now
        )
        self._trail.append(
            conn,
            kind="ask",
            request_id=row.request_id,
            scope=spec.caller.scope,
            body={
                "ask": row.code,
                "command": row.command,
                "intent": spec.request.intent,
                "args": dict(spec.request.args),
                "rules": list(row.rules),
                "digest": row.digest,
                "evidence": row.evidence,
                "requester": row.requester,
                "expires_at": row.expires_at.isoformat(),
            },
            text=full_text(spec.request),
            now=now,
        )
        self._cards.show(conn, row, now)
        return row

    def settle(
        self,
        conn: sqlite3.Connection,
        ask_id: str,
        state: str,
        choice: str | None,
        by: str,
        reason: str,
        now: datetime,
    ) -> AskRow | None:
        """Change the state away from pending, once, with everything that follows from it; None when it was changed."""
        if not asks.settle(conn, ask_id, state=state, choice=choice, by=by, reason=reason, now=now):
            return None
        row = asks.get(conn, ask_id)
        if row is None:
            raise LookupError(f"ask {ask_id} vanished inside its own unit of work")
        data: dict[str, object] = {"id": row.id, "outcome": state, "choice": choice, "by": by or None}
        events.append(conn, self._ids, session=row.session, turn=row.turn, type="ask.settled", data=data, now=now)
        session = sessions.get(conn, row.session)
        scope = session.scope if session else ""
        self._trail.append(
            conn,
            kind="decision",
            request_id=row.request_id,
            scope=scope,
            body={
                "source": "person" if by else "refusal",
                "stage": "confirm",
                "status": "may_run" if state == Settled.APPROVED.value else state,
                "choice": choice,
                "by": by,
                "reason": reason,
                "command": row.command,
                "digest": row.digest,
                "rules": list(row.rules),
                "session": row.session,
                "turn": row.turn,
            },
            text=row.command,
            now=now,
        )
        if choice == Choice.SESSION.value:
            self._grant(conn, row, by, now)
        self._cards.end(conn, row, now)
        return row

    def opened(self, row: AskRow) -> None:
        """After the commit of :meth:`open`."""
        log.info("approval_requested", request_id=row.request_id, ask=row.code, rules=list(row.rules))
        self._hub.stored(row.session)
        self._cards.wake(row.session)

    def settled(self, row: AskRow) -> None:
        """After the commit of :meth:`settle`."""
        log.info(
            "approval_settled",
            request_id=row.request_id,
            ask=row.code,
            outcome=row.state,
            choice=row.choice,
            by=row.settled_by,
        )
        self._counter.ask_settled(row.state)
        self._hub.stored(row.session)
        self._cards.wake(row.session)

    def _grant(self, conn: sqlite3.Connection, row: AskRow, by: str, now: datetime) -> None:
        for number, draft in enumerate(row.grants):
            grants.add(
                conn,
                GrantRow(
                    id=f"s{row.id[:10]}{number}",
                    session=row.session,
                    boot=self._boot,
                    principal=row.requester,
                    rule=str(draft["rule"]),
                    shape=str(draft["shape"]),
                    paths=tuple(draft["paths"]),
                    given_by=by,
                    at=now,
                    expires=now + SESSION_GRANT_LIFE,
                ),
            )
