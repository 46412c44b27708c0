"""Sentences and sizes that the adapter uses without the bot library."""

from __future__ import annotations

from adapters.base import Receipt

#: Longest text of a message (Bot API) in UTF-16 units.
MAX_TEXT = 4096

#: Stands before what may have arrived already.
REPEATED = "🔁 (sent again; you may have it already)\n"

#: Length of a part, so that :data:`REPEATED` fits before it.
LIMIT = MAX_TEXT - 64


#: Stands for a text without anything to see, which Telegram does not take.
EMPTY = "(an empty answer)"


def busy_text(receipt: Receipt) -> str:
    """For somebody whose message was not taken."""
    return (
        f"Too much waits here already ({receipt.queued} messages), so this one was not taken. "
        "Please send it again later; /stop ends what runs now."
    )
