"""Words about the session itself: ``/new``, ``/stop``, ``/status``."""

from __future__ import annotations

import sqlite3

from gateway.slash.context import Spoken, Toolbox, Word
from gateway.store import asks, grants, inbox, sessions


async def new(tools: Toolbox, spoken: Spoken) -> str:
    """End the running turn, then begin a new conversation: no history, no session grants."""
    key = spoken.session.key
    tools.sessions.stop(key, "Stopped: a new conversation was begun.")
    await tools.sessions.turn_over(key)
    now = tools.clock.now()

    def unit(conn: sqlite3.Connection) -> None:
        sessions.reset(conn, key)
        grants.end_session(conn, key, now)

    await tools.db.write(unit)
    said = "New conversation. What was said before no longer counts, and grants of this session have ended."
    return f"{said} What stood behind /new was not read; say it again." if spoken.rest else said


async def stop(tools: Toolbox, spoken: Spoken) -> str:
    """Cancel the running turn with everything that it started."""
    key = spoken.session.key
    if not tools.sessions.stop(key, f"Stopped by {spoken.who.principal}."):
        return "Nothing is running."
    waiting = await tools.db.read(lambda conn: len(inbox.queued(conn, key)))
    return f"Stopping. {waiting} queued message(s) come next." if waiting else "Stopping."


async def status(tools: Toolbox, spoken: Spoken) -> str:
    """What the session does, what waits."""
    key = spoken.session.key
    live = tools.sessions.get(key)
    queued, open_asks = await tools.db.read(lambda conn: (inbox.queued(conn, key), asks.open_in(conn, key)))
    lines = []
    if live is not None and live.turn is not None:
        doing = "waiting for a person" if live.waits_for_person and open_asks else live.doing()
        lines.append(f"Running: {doing}.")
    else:
        lines.append("Idle.")
    if queued:
        lines.append(f"Queued messages: {len(queued)}.")
    now = tools.clock.now()
    for row in open_asks:
        left = max(0, round((row.expires_at - now).total_seconds()))
        lines.append(f"Open request {row.code}: {_first_line(row.command)} ({left} s left)")
    lines.append(f"Model: {tools.model_name}. You are {spoken.who.principal} ({spoken.who.role.name.lower()}).")
    return "\n".join(lines)


def _first_line(command: str) -> str:
    line = command.strip().splitlines()[0] if command.strip() else ""
    return line if len(line) <= 80 else line[:79] + "…"


WORDS = (
    Word("new", "/new", "begin a new conversation", new),
    Word("stop", "/stop", "cancel what runs now", stop),
    Word("status", "/status", "what runs, what waits", status),
)
