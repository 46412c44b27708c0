"""The vocabulary between platforms and the gateway.

An adapter turns platform events into :class:`Inbound` and :class:`Tap`, and shows text and :class:`Card`. It knows
nothing of sessions, agents or rights; the gateway knows nothing of platforms beyond :class:`Capabilities`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from aiohttp import web


class ConversationKind(enum.Enum):
    """What a conversation is to its members."""

    DIRECT = "direct"
    GROUP = "group"
    #: A named session of one caller, as over HTTP.
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A place where messages are exchanged.

    Attributes:
        chat: the platform's id of the chat; for NAMED the session's name.
        thread: the platform's id of topic or thread, empty where there is none.
    """

    platform: str
    chat: str
    kind: ConversationKind
    thread: str = ""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who wrote or tapped, by the platform's stable id; names are for display only."""

    platform: str
    id: str
    name: str = ""
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file by reference; fetched only after its sender was authorised."""

    ref: str
    name: str
    mime: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message as it arrived.

    Attributes:
        event_key: unique per platform and stable over redelivery.
        message_ref: the platform's id of the message (over HTTP the client's ``message_id``).
        reply_to: text of the message that this one answers, empty where none.
        mergeable: whether it may be joined with neighbours that a client has split; never over HTTP.
    """

    event_key: str
    conversation: Conversation
    sender: Sender
    text: str
    message_ref: str
    reply_to: str = ""
    attachments: tuple[Attachment, ...] = ()
    mergeable: bool = True


class Verdict(enum.Enum):
    """What became of an inbound message."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    #: The session's queue is full; nothing was stored.
    QUEUE_FULL = "queue_full"
    #: The sender has no right to be served; nothing was stored.
    STRANGER = "stranger"
    #: The store is not taking messages right now; nothing was stored, the platform should deliver again.
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to :meth:`Intake.accept`; ACCEPTED and DUPLICATE are durable when it returns.

    Attributes:
        session: key of the session that took it.
        queued: messages of that session that wait before this one.
        retry_after_s: when to try again after QUEUE_FULL or UNAVAILABLE.
    """

    verdict: Verdict
    session: str = ""
    queued: int = 0
    retry_after_s: int = 0


class Amendment(enum.Enum):
    """What became of a changed message."""

    #: It still waited; its turn will see the new text.
    CHANGED = "changed"
    #: It is not waiting: under way, answered, never taken, or not this person's. Nothing happens.
    IGNORED = "ignored"
    #: The store is not taking changes right now; the platform should deliver again.
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Choice:
    """One button."""

    value: str
    label: str


class CardKind(enum.Enum):
    """What a card wants to know."""

    APPROVAL = "approval"
    TOKEN = "token"  # noqa: S105 - a kind of question, not a secret
    LINE = "line"
    QUESTION = "question"


@dataclass(frozen=True, slots=True)
class Card:
    """A request to a person: shown with buttons, answered once.

    Attributes:
        id: unguessable and single-use; the only thing that a button carries.
        code: four characters, unique among the open cards of the chat, for typed answers.
        command: the whole command; adapters show invisible and bidi characters visibly and never cut it.
        token: what the person must type, for kind TOKEN.
        origin: names the child or job that asks; empty for the person's own turn.
        session: name of the session that asks, as the HTTP API spells it; empty where it has none.
    """

    id: str
    code: str
    request_id: str
    kind: CardKind
    title: str
    command: str
    reason: str
    rules: tuple[str, ...]
    choices: tuple[Choice, ...]
    requested_by: str
    expires_at: datetime
    impact: str = ""
    token: str = ""
    origin: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class CardEnd:
    """How a card ended, for the edit that takes its buttons away.

    Attributes:
        outcome: ``approved``, ``denied``, ``timed_out``, ``cancelled``, ``undeliverable`` or ``answered``.
        by: display name or principal of who answered; empty where nobody did.
    """

    outcome: str
    choice: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """Where a message stands: what is needed to edit it and to check a tap on it."""

    chat: str
    message: str


@dataclass(frozen=True, slots=True)
class Tap:
    """A person's answer to a card.

    Attributes:
        choice: value of the button; None for a typed answer.
        text: typed answer; None for a button.
        shown_at: the message that carries the card; None where the platform has no such thing (HTTP).
    """

    ask_id: str
    sender: Sender
    choice: str | None = None
    text: str | None = None
    reason: str = ""
    shown_at: Sent | None = None


class TapVerdict(enum.Enum):
    """What became of a tap."""

    SETTLED = "settled"
    #: Counted, but more people have to answer, or a wrong text left it open.
    PENDING = "pending"
    NOT_A_CHOICE = "not_a_choice"
    NOT_YOURS = "not_yours"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    ALREADY_SETTLED = "already_settled"
    #: Could not be committed; tap again.
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class TapResult:
    """The answer to :meth:`Intake.tap`.

    Attributes:
        outcome: how the card ended (``approved`` ...), or ``pending``; empty for UNKNOWN and NOT_YOURS.
        have: answers so far, where several people must answer.
        need: answers needed.
        text: one short sentence for the person who tapped.
    """

    verdict: TapVerdict
    outcome: str = ""
    choice: str = ""
    have: int = 0
    need: int = 1
    text: str = ""


class Intake(Protocol):
    """What an adapter may ask of the gateway."""

    async def accept(self, inbound: Inbound) -> Receipt:
        """Take a message; when it returns ACCEPTED or DUPLICATE, the message is durable and may be acknowledged."""
        ...

    async def amend(self, inbound: Inbound) -> Amendment:
        """Take the new text of a message that was changed; ``event_key`` is that of the message when it was new."""
        ...

    async def tap(self, tap: Tap) -> TapResult:
        """Take an answer to a card; when it returns SETTLED the decision is durable."""
        ...

    async def dead_letter(self, platform: str, event_key: str, raw: bytes, reason: str) -> None:
        """Keep an event that cannot be parsed, so that the offset may move on."""
        ...


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a platform can do, as data.

    Attributes:
        pushes: whether the gateway sends messages through the adapter. False where clients read the session's events
            themselves (HTTP): nothing is put into the outbox then.
        text_utf16: longest text of a message in UTF-16 code units.
        shows_cards: whether :meth:`Adapter.show_card` works; a surface that cannot show a card denies.
    """

    pushes: bool = True
    text_utf16: int = 4096
    can_edit: bool = True
    can_thread: bool = True
    shows_cards: bool = True


@dataclass(frozen=True, slots=True)
class Health:
    """Whether an adapter is connected; ``reason`` says why not."""

    ready: bool
    reason: str = ""


class DeliveryError(Exception):
    """Root of what sending can raise.

    ::

        DeliveryError
        +-- NotSent       certainly not sent; try again (after ``retry_after_s``)
        +-- Uncertain     may have been sent; re-sent once, marked
        +-- Rejected      certainly not sent, and never will be as it is
    """


class NotSent(DeliveryError):
    """Certainly not sent: refused connection or a rate limit; ``retry_after_s`` is honoured in full."""

    def __init__(self, message: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Uncertain(DeliveryError):
    """A cut connection, a time-out or a server error: it may have arrived."""


class Rejected(DeliveryError):
    """The platform will not take it; ``formatting`` when plain text may succeed."""

    def __init__(self, message: str, *, formatting: bool = False) -> None:
        super().__init__(message)
        self.formatting = formatting


@dataclass(frozen=True, slots=True)
class Piece:
    """What fits one message, of a text that was split.

    Attributes:
        text: as it was written; by itself it need not be the same markdown.
        formatted: the same in the platform's own format; empty where ``text`` is to be formatted when it is sent.
    """

    text: str
    formatted: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One message to send.

    Attributes:
        part_id: unique; lets a platform with metadata look for it before a re-send.
        text: markdown unless ``plain``.
        repeated: it may have been sent already; shown with a visible mark.
        formatted: see :class:`Piece`; what is sent unless ``plain``.
    """

    part_id: str
    text: str
    plain: bool = False
    repeated: bool = False
    formatted: str = ""


class Adapter(Protocol):
    """A platform. Failing never ends the daemon: an adapter retries for ever and says in ``health`` why."""

    name: str
    capabilities: Capabilities

    async def start(self, intake: Intake) -> None:
        """Begin to deliver events to ``intake``; returns once under way, connected or not."""
        ...

    async def stop(self) -> None:
        """Stop taking events, let sends in flight end, close connections."""
        ...

    def health(self) -> Health:
        """Whether it is connected now."""
        ...

    def routes(self) -> Sequence[web.RouteDef]:
        """HTTP routes that it needs on the gateway's listener.

        Those of a platform that is pushed to are called by the platform: the listener asks for no token there, and
        each handler must check a signature or a secret before anything else.
        """
        ...

    def split(self, text: str) -> Sequence[Piece]:
        """Markdown as pieces that fit one message each; every piece is sent, retried and marked by itself."""
        ...

    async def send(self, conversation: Conversation, part: Part) -> Sent:
        """Send one message.

        Raises:
            DeliveryError: see its tree.
        """
        ...

    async def edit(self, conversation: Conversation, sent: Sent, part: Part) -> None:
        """Replace the text of a message; an identical text counts as success.

        Raises:
            DeliveryError: see its tree.
        """
        ...

    async def show_card(self, conversation: Conversation, card: Card) -> Sent:
        """Show a card with its buttons.

        Raises:
            DeliveryError: see its tree.
        """
        ...

    async def end_card(self, conversation: Conversation, sent: Sent, card: Card, end: CardEnd) -> None:
        """Take the buttons away and say how it ended.

        Raises:
            DeliveryError: see its tree.
        """
        ...


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a session's stream, as clients get it.

    Attributes:
        id: rises over restarts too; 0 for events that are not kept (``delta``).
        type: ``turn.started``, ``delta``, ``message``, ``tool``, ``ask``, ``ask.settled``, ``progress``, ``notice``,
            ``turn.finished`` or ``reset``.
        data: a JSON object.
    """

    id: int
    type: str
    data: dict[str, object] = field(default_factory=dict)
