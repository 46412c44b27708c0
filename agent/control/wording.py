"""What the model is told where a command did not simply run. One place, so that the words stay short and agree."""

from __future__ import annotations

from agent.control.ports import Settled, Settlement
from agent.control.request import CommandResult, CommandStatus

_STAY = "Do not try it again or in another form in this turn."

UNKNOWN = (
    "The daemon stopped while this command ran: its outcome is unknown. It was not run again. "
    "Check what it has done before you repeat it."
)

_STATUS = {
    Settled.DENIED: CommandStatus.DENIED,
    Settled.TIMED_OUT: CommandStatus.TIMED_OUT,
    Settled.UNDELIVERABLE: CommandStatus.UNDELIVERABLE,
    Settled.CANCELLED: CommandStatus.CANCELLED,
}


def refused(status: CommandStatus, detail: str, alternative: str = "") -> CommandResult:
    """A refusal by rule: says which, that nobody can lift it, and the way out."""
    lead = {
        CommandStatus.INVALID: "Not run: ",
        CommandStatus.UNAVAILABLE: "Not run: ",
    }.get(status, "Refused, nothing ran: ")
    way_out = f" Safer: {alternative}" if alternative else ""
    stay = f" No approval can lift this. {_STAY}" if status is CommandStatus.REFUSED else ""
    return CommandResult(status, f"{lead}{detail}{way_out}{stay}")


def not_approved(settlement: Settlement) -> CommandResult:
    """An end without approval; denied, timed out and undeliverable read differently."""
    match settlement.outcome:
        case Settled.DENIED:
            because = f" Reason: {settlement.reason}" if settlement.reason else ""
            who = f" by {settlement.by}" if settlement.by else ""
            text = f"Denied{who}. Nothing ran.{because} {_STAY}"
        case Settled.TIMED_OUT:
            text = f"Nobody answered in time, so it was not run. {_STAY}"
        case Settled.UNDELIVERABLE:
            text = f"Nobody could be asked, so it was not run: no place can show the request. {_STAY}"
        case _:
            text = "The request was cancelled. Nothing ran."
    return CommandResult(_STATUS.get(settlement.outcome, CommandStatus.CANCELLED), text)
