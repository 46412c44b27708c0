"""Cards as Telegram shows them: text with the whole command, and the data of the buttons.

A command that does not fit is attached as a file to the very message that carries the buttons, so that there is
nothing to be sent in two steps; the text of such a card is the file's caption.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from adapters.base import Card, CardEnd, CardKind, Rejected
from adapters.visible import visible

#: Longest text of a message and caption of a file, in UTF-16 units after tags are taken out (Bot API).
MAX_TEXT = 4096
MAX_CAPTION = 1024

#: Longest callback data of a button, in bytes (Bot API).
MAX_DATA = 64

#: Longest line of a card beside the command, in characters: in a message, and in a caption.
_LINE, _CAPTION_LINE = 400, 110

#: What a button carries.
_DATA = re.compile(r"a:([A-Za-z0-9_-]{1,48}):([^:]{1,40})")

_OUTCOMES = {
    "approved": "✅ Approved",
    "denied": "⛔ Denied",
    "timed_out": "⌛ Nobody answered in time: denied. Nothing ran.",
    "cancelled": "⏹ Cancelled: its turn has ended. Nothing ran.",
    "undeliverable": "⛔ Denied: it could not be shown everywhere.",
    "answered": "✅ Answered",
}
_CHOICES = {"once": " once", "session": " for this session", "always": " for good"}


@dataclass(frozen=True, slots=True)
class Face:
    """How a card looks.

    Attributes:
        html: text of the message, or caption of the file.
        document: the command as a file; None where it is in the text.
        name: the file's name.
    """

    html: str
    document: bytes | None = None
    name: str = ""


def button_data(card: Card, choice: str) -> str:
    """What a button carries: the card's id and the choice.

    Raises:
        Rejected: it would not fit.
    """
    data = f"a:{card.id}:{choice}"
    if len(data.encode()) > MAX_DATA or _DATA.fullmatch(data) is None:
        raise Rejected("a choice of this card does not fit on a button of Telegram")
    return data


def read_data(data: str) -> tuple[str, str] | None:
    """Id and choice of a button's data; None for data that is not ours."""
    match = _DATA.fullmatch(data)
    return (match[1], match[2]) if match else None


def face(card: Card, end: CardEnd | None = None) -> Face:
    """The card while it is open, or as it ended."""
    command = visible(card.command)
    if _fits(card, command):
        head, tail = _lines(card, end, _LINE)
        return Face("\n".join([*head, f"<pre>{_escaped(command)}</pre>", *tail]))
    head, tail = _lines(card, end, _CAPTION_LINE)
    note = f"The command has {len(card.command):,} characters. <b>Read all of it in the attached file.</b>"
    return Face("\n".join([*head, note, *tail]), document=command.encode(), name=f"command-{card.code}.txt")


def _fits(card: Card, command: str) -> bool:
    """Whether the command has room in a message; judged by the open card alone, with room for how it will end."""
    head, tail = _lines(card, None, _LINE)
    return _length(command) + sum(_length(_plain(line)) + 1 for line in (*head, *tail)) + _LINE + 1 <= MAX_TEXT


def _lines(card: Card, end: CardEnd | None, width: int) -> tuple[list[str], list[str]]:
    """What stands above the command, and below it."""
    head = [_ending(end, width)] if end is not None else []
    head.append(f"<b>{_short(card.title, width)}</b>")
    return head, [*_details(card, width), *(_answers(card) if end is None else ())]


def _details(card: Card, width: int) -> Iterator[str]:
    if card.reason:
        yield f"Why: {_short(card.reason, width)}"
    if card.impact:
        yield f"Impact: {_short(card.impact, width)}"
    if card.rules:
        yield f"Rules: {_short(', '.join(card.rules), width)}"
    asked = f"Asked by {card.requested_by}"
    yield _short(f"{asked}, from {card.origin}" if card.origin else asked, width)


def _answers(card: Card) -> Iterator[str]:
    until = f"{card.expires_at:%H:%M:%S} UTC"
    match card.kind:
        case CardKind.TOKEN:
            yield f"Type <code>{_escaped(card.token)}</code> to go on, until {until}."
        case CardKind.LINE:
            yield f"Type <code>confirm</code> to go on, until {until}."
        case _:
            yield f"Request <code>{_escaped(card.code)}</code>, until {until}; no answer denies."


def _ending(end: CardEnd, width: int) -> str:
    text = _OUTCOMES.get(end.outcome, end.outcome)
    if end.outcome == "approved":
        text += _CHOICES.get(end.choice, "")
    if end.by:
        text += f" by {end.by}"
    return f"<b>{_short(text, width)}</b>"


def _short(text: str, width: int) -> str:
    """One line of prose, bounded; commands never pass through here."""
    line = visible(" ".join(text.split()))
    if _length(line) > width:
        line = line.encode("utf-16-le")[: 2 * (width - 1)].decode("utf-16-le", "ignore") + "…"
    return _escaped(line)


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)


def _plain(line: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", line))


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
