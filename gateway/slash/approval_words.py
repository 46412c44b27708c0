"""Words about approvals: ``/approve``, ``/deny``, ``/grants``."""

from __future__ import annotations

from adapters.base import Tap
from agent.control.grants import Grant
from agent.control.ports import Choice, Role
from gateway.slash.context import Spoken, Toolbox, Word
from gateway.store import asks
from gateway.store.asks import AskRow

_KINDS = {choice.value for choice in Choice if choice is not Choice.DENY}


async def approve(tools: Toolbox, spoken: Spoken) -> str:
    """``/approve [id] [once|session|always]``."""
    words = spoken.rest.split()
    kind = Choice.ONCE.value
    if words and words[-1].lower() in _KINDS:
        kind = words.pop().lower()
    if len(words) > 1:
        return "Say it as: /approve [id] [once|session|always]"
    row = await _find(tools, spoken, words[0] if words else "")
    if isinstance(row, str):
        return row
    return await _answer(tools, spoken, row, kind)


async def deny(tools: Toolbox, spoken: Spoken) -> str:
    """``/deny [id] [reason]``; a first word that is no open id belongs to the reason."""
    first, _, rest = spoken.rest.partition(" ")
    key = spoken.session.key
    named = await tools.db.read(lambda conn: asks.by_code(conn, key, first)) if first else None
    if named is not None:
        return await _answer(tools, spoken, named, Choice.DENY.value, rest.strip())
    row = await _find(tools, spoken, "")
    if isinstance(row, str):
        return row
    return await _answer(tools, spoken, row, Choice.DENY.value, spoken.rest)


async def grants(tools: Toolbox, spoken: Spoken) -> str:
    """``/grants`` lists; ``/grants revoke ID`` ends one."""
    words = spoken.rest.split()
    if len(words) == 2 and words[0].lower() == "revoke":
        session = None if spoken.who.role >= Role.ADMIN else spoken.session.key
        gone = await tools.grants.revoke(words[1], spoken.who.principal, session=session)
        return f"Grant {words[1]} has ended." if gone else f"There is no grant {words[1]} that you may revoke."
    if words:
        return "Say it as: /grants or /grants revoke ID"
    standing = await tools.grants.candidates(spoken.caller)
    if not standing:
        return "No grants. Every command that could hurt is asked about."
    return "\n".join(["Grants that count here:", *map(_line, standing)])


async def _find(tools: Toolbox, spoken: Spoken, code: str) -> AskRow | str:
    """The one request that is meant, or what to say instead."""
    key = spoken.session.key
    rows = await tools.db.read(lambda conn: asks.open_in(conn, key))
    if not rows:
        return "Nothing waits for an answer here."
    if code:
        match = next((row for row in rows if row.code.lower() == code.lower()), None)
        return match or f"There is no open request {code}. Open: {_codes(rows)}."
    if len(rows) > 1:
        return f"Several requests are open; say which: {_codes(rows)}."
    return rows[0]


async def _answer(tools: Toolbox, spoken: Spoken, row: AskRow, choice: str, reason: str = "") -> str:
    tap = Tap(ask_id=row.id, sender=spoken.sender, choice=choice, reason=reason[:500])
    result = await tools.approvals.answer(tap, spoken.who)
    return f"{row.code}: {result.text}"


def _codes(rows: list[AskRow]) -> str:
    return ", ".join(f"{row.code} ({row.command.strip().splitlines()[0][:40]})" for row in rows)


def _line(grant: Grant) -> str:
    where = ", ".join(grant.paths) if grant.paths else "no paths"
    life = "for good" if grant.session is None else "this session"
    return f"{grant.id}: {grant.shape} in {where} ({grant.rule}, {life}, by {grant.by})"


WORDS = (
    Word("approve", "/approve [id] [once|session|always]", "approve an open request", approve),
    Word("deny", "/deny [id] [reason]", "deny an open request", deny),
    Word("grants", "/grants [revoke ID]", "list or end standing permissions", grants),
)
