"""The one judge of who may have which command run at all, before any card is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent.control.ports import Caller, Role
from agent.control.request import CommandRequest


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request may never run; names the rule, so that the model can tell the person what is out of reach."""

    rule: str
    detail: str


class Policy(Protocol):
    """Judges a validated request by the rights of its caller."""

    #: Part of every digest: an approval given under one policy is void under another.
    version: str

    def refuses(self, request: CommandRequest, caller: Caller) -> Refusal | None:
        """None when the caller may have it run (the guard still decides whether to ask)."""
        ...


class BuiltinPolicy:
    """The policy of a home without ``policy.yaml``: viewers read, users and above act."""

    version = "builtin-1"

    #: Commands that change nothing outside the sandbox and show no more than the workspace.
    _READING = frozenset({"files:read", "files:list"})

    def refuses(self, request: CommandRequest, caller: Caller) -> Refusal | None:
        """Viewers may only read."""
        if caller.role >= Role.USER or request.command in self._READING:
            return None
        return Refusal(
            rule="policy.role",
            detail=f"{request.command} needs the role user; {caller.principal} is {caller.role.name.lower()}.",
        )
