"""What a word of control gets to work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from adapters.base import Sender
from agent.control.clock import Clock
from agent.control.ports import Caller
from gateway.access import Identity
from gateway.approvals import Approvals
from gateway.grants import Grants
from gateway.sessions import Sessions
from gateway.store.database import Database
from gateway.store.sessions import SessionRow


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The collaborators of all words."""

    db: Database
    clock: Clock
    sessions: Sessions
    approvals: Approvals
    grants: Grants
    model_name: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """One word as somebody said it in a session."""

    session: SessionRow
    who: Identity
    sender: Sender
    rest: str
    caller: Caller


Handler = Callable[[Toolbox, Spoken], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of control.

    Attributes:
        usage: as typed, with its arguments.
        help: one line for ``/help``.
    """

    name: str
    usage: str
    help: str
    handler: Handler
