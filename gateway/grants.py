"""Standing permissions: session grants in the store, permanent ones in ``allowlist.json``."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import datetime

import structlog

from agent.control.clock import Clock
from agent.control.grants import Grant
from agent.control.ports import Caller
from gateway.allowlist import Allowlist, AllowlistInvalid
from gateway.recorder import AuditTrail
from gateway.store import grants as rows
from gateway.store.asks import AskRow
from gateway.store.database import Database
from gateway.store.grants import as_grant

log = structlog.get_logger(__name__)


class Grants:
    """Fulfils :class:`agent.control.ports.GrantStore`; gives and takes grants."""

    def __init__(self, *, db: Database, allowlist: Allowlist, trail: AuditTrail, clock: Clock, boot: str) -> None:
        self._db = db
        self._allowlist = allowlist
        self._trail = trail
        self._clock = clock
        self._boot = boot
        self._file_lock = asyncio.Lock()

    async def candidates(self, caller: Caller) -> Sequence[Grant]:
        """What may cover a request of ``caller`` now."""
        now = self._clock.now()
        session = await self._db.read(
            lambda conn: rows.of_session(conn, caller.session, self._boot, caller.principal, now)
        )
        permanent = [
            grant
            for grant in await self.permanent()
            if grant.principal in {None, caller.principal} and _live(grant, now)
        ]
        return [*map(as_grant, session), *permanent]

    async def permanent(self) -> tuple[Grant, ...]:
        """The grants of the file; none while it is broken, which is logged."""
        async with self._file_lock:
            try:
                return await asyncio.to_thread(self._allowlist.grants)
            except AllowlistInvalid as error:
                log.error("allowlist_invalid", error=str(error))
                return ()

    async def spend(self, grant_ids: Sequence[str]) -> bool:
        """Count one use of each grant that counts uses; False when one has ended meanwhile."""
        now = self._clock.now()
        async with self._file_lock:
            try:
                left = await asyncio.to_thread(self._spend_permanent, frozenset(grant_ids), now)
            except (AllowlistInvalid, OSError) as error:
                log.error("grant_not_spent", error=str(error))
                return False
        return not left or await self._db.write(lambda conn: rows.spend(conn, sorted(left), now))

    def _spend_permanent(self, grant_ids: frozenset[str], now: datetime) -> frozenset[str]:
        """Count the uses of those that are permanent and still count; the ids that are not among these."""
        live = {grant.id: grant for grant in self._allowlist.grants() if grant.id in grant_ids and _live(grant, now)}
        if any(grant.uses_left is not None for grant in live.values()):
            self._allowlist.change(lambda grant: _spent(grant, live.keys()))
        return grant_ids - live.keys()

    async def allow(self, row: AskRow, by: str) -> None:
        """Keep the drafts of a request that was answered "always".

        Failing is told, not raised: the answer has approved this one run already.
        """
        now = self._clock.now()
        given = [
            Grant(
                id=f"p{secrets.token_hex(5)}",
                rule=str(draft["rule"]),
                shape=str(draft["shape"]),
                paths=tuple(draft["paths"]),
                principal=None,
                session=None,
                by=by,
                at=now,
                note=row.command[:200],
            )
            for draft in row.grants
        ]
        try:
            async with self._file_lock:
                await asyncio.to_thread(self._allowlist.add, given)
        except (AllowlistInvalid, OSError) as error:
            log.error("grant_not_kept", error=str(error), request_id=row.request_id)
            return
        body = {
            "grants": [{"id": g.id, "rule": g.rule, "shape": g.shape, "paths": list(g.paths)} for g in given],
            "by": by,
        }
        await self._db.write(
            lambda conn: self._trail.append(conn, kind="grant", request_id=row.request_id, body=body, now=now)
        )

    async def revoke(self, grant_id: str, by: str, *, session: str | None = None) -> bool:
        """End a grant; ``session`` limits it to that session's own (permanent ones then stay). False when unknown."""
        now = self._clock.now()

        def unit(conn: sqlite3.Connection) -> bool:
            row = rows.get(conn, grant_id)
            if row is None or (session is not None and row.session != session) or not rows.revoke(conn, grant_id, now):
                return False
            self._trail.append(conn, kind="revoke", body={"grant": grant_id, "by": by}, now=now)
            return True

        if await self._db.write(unit):
            return True
        if session is not None:
            return False
        async with self._file_lock:
            gone = await asyncio.to_thread(
                self._allowlist.change, lambda grant: None if grant.id == grant_id else grant
            )
        if gone:
            body = {"grant": grant_id, "by": by}
            await self._db.write(lambda conn: self._trail.append(conn, kind="revoke", body=body, now=now))
        return gone


def _live(grant: Grant, now: datetime) -> bool:
    return (grant.expires is None or grant.expires > now) and (grant.uses_left is None or grant.uses_left > 0)


def _spent(grant: Grant, counted: Set[str]) -> Grant:
    if grant.id in counted and grant.uses_left is not None:
        return replace(grant, uses_left=grant.uses_left - 1)
    return grant
