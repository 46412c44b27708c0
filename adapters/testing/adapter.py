"""A platform in memory: what is sent through it stays readable, and it can be told to fail."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from aiohttp import web

from adapters.base import (
    Capabilities,
    Card,
    CardEnd,
    Conversation,
    ConversationKind,
    DeliveryError,
    Health,
    Inbound,
    Intake,
    Part,
    Piece,
    Receipt,
    Rejected,
    Sender,
    Sent,
    Tap,
    TapResult,
    Uncertain,
)


@dataclass(frozen=True, slots=True)
class Shown:
    """Something that stands in a chat.

    Attributes:
        text: of a message, as last edited; empty for a card.
        part: the last part that was sent or edited in; None for a card.
        end: how the card ended; None while it is open, and for messages.
    """

    conversation: Conversation
    sent: Sent
    text: str = ""
    part: Part | None = None
    card: Card | None = None
    end: CardEnd | None = None


class MemoryAdapter:
    """An :class:`~adapters.base.Adapter` without a platform behind it.

    ::

        adapter = MemoryAdapter()
        adapter.fail_next(NotSent("refused", retry_after_s=2))
        await adapter.start(intake)
        await adapter.say("hello", sender="42")
        await adapter.until(lambda a: a.texts() == ["hi"])

    Attributes:
        shown: messages and cards in the order in which they arrived, with their edits applied.
        calls: names of the operations that were tried (``send``, ``edit``, ``show_card``, ``end_card``), failed or not.
    """

    def __init__(self, name: str = "memory", *, capabilities: Capabilities | None = None) -> None:
        self.name = name
        self.capabilities = capabilities or Capabilities(pushes=True)
        self.shown: list[Shown] = []
        self.calls: list[str] = []
        self._intake: Intake | None = None
        self._health = Health(ready=False, reason="not started")
        self._failures: deque[DeliveryError] = deque()
        self._ids = itertools.count(1)
        self._changed = asyncio.Condition()

    # What the gateway calls

    async def start(self, intake: Intake) -> None:
        """Keep ``intake`` for :meth:`say` and :meth:`tap`."""
        self._intake = intake
        self._health = Health(ready=True)

    async def stop(self) -> None:
        """Take no more."""
        self._intake = None
        self._health = Health(ready=False, reason="stopped")

    def health(self) -> Health:
        """Ready from start to stop, unless :meth:`disconnect` was called."""
        return self._health

    def routes(self) -> Sequence[web.RouteDef]:
        """None."""
        return ()

    def split(self, text: str) -> Sequence[Piece]:
        """One piece."""
        return (Piece(text),)

    async def send(self, conversation: Conversation, part: Part) -> Sent:
        """Keep the message.

        Raises:
            DeliveryError: the next one of :meth:`fail_next`.
        """
        return await self._show("send", Shown(conversation, self._place(conversation), text=part.text, part=part))

    async def edit(self, conversation: Conversation, sent: Sent, part: Part) -> None:  # noqa: ARG002
        """Replace the text of a message.

        Raises:
            DeliveryError: the next one of :meth:`fail_next`; Rejected for a message that does not stand here.
        """
        await self._change("edit", sent, lambda old: replace(old, text=part.text, part=part))

    async def show_card(self, conversation: Conversation, card: Card) -> Sent:
        """Keep the card.

        Raises:
            DeliveryError: the next one of :meth:`fail_next`.
        """
        return await self._show("show_card", Shown(conversation, self._place(conversation), card=card))

    async def end_card(self, conversation: Conversation, sent: Sent, card: Card, end: CardEnd) -> None:  # noqa: ARG002
        """Note how the card ended.

        Raises:
            DeliveryError: the next one of :meth:`fail_next`; Rejected for a card that does not stand here.
        """
        await self._change("end_card", sent, lambda old: replace(old, end=end))

    # What tests call

    def fail_next(self, *errors: DeliveryError) -> None:
        """Raise ``errors``, one an operation, from the next ones on. Uncertain ones arrive all the same."""
        self._failures.extend(errors)

    def disconnect(self, reason: str) -> None:
        """Be not ready, for ``reason``."""
        self._health = Health(ready=False, reason=reason)

    def reconnect(self) -> None:
        """Be ready again."""
        self._health = Health(ready=True)

    def texts(self, chat: str | None = None) -> list[str]:
        """Texts of the messages, of one chat or of all."""
        return [one.text for one in self.shown if one.card is None and (chat is None or one.conversation.chat == chat)]

    def cards(self, *, still_open: bool = False) -> list[Shown]:
        """The cards, or only those that have not ended."""
        return [one for one in self.shown if one.card is not None and not (still_open and one.end is not None)]

    async def say(
        self,
        text: str,
        *,
        sender: str = "42",
        chat: str | None = None,
        kind: ConversationKind = ConversationKind.DIRECT,
        event_key: str | None = None,
    ) -> Receipt:
        """Deliver a message to the gateway as the platform would; a repeated ``event_key`` is a redelivery."""
        number = str(next(self._ids))
        return await self._gateway().accept(
            Inbound(
                event_key=event_key or f"{self.name}:{number}",
                conversation=Conversation(platform=self.name, chat=chat or sender, kind=kind),
                sender=Sender(platform=self.name, id=sender),
                text=text,
                message_ref=number,
            )
        )

    async def tap(self, shown: Shown, choice: str, *, sender: str = "42", reason: str = "") -> TapResult:
        """Tap a button of a card, also one that it does not have or that has ended."""
        if shown.card is None:
            raise ValueError("only a card can be tapped")
        return await self._gateway().tap(
            Tap(
                ask_id=shown.card.id,
                sender=Sender(platform=self.name, id=sender),
                choice=choice,
                reason=reason,
                shown_at=shown.sent,
            )
        )

    async def until(self, condition: Callable[[MemoryAdapter], bool]) -> None:
        """Wait until ``condition`` holds; looked at after each change."""
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self))

    def _gateway(self) -> Intake:
        if self._intake is None:
            raise RuntimeError(f"adapter {self.name} is not started")
        return self._intake

    def _place(self, conversation: Conversation) -> Sent:
        return Sent(chat=conversation.chat, message=f"m{next(self._ids)}")

    async def _show(self, call: str, shown: Shown) -> Sent:
        self.calls.append(call)
        failure = self._failures.popleft() if self._failures else None
        if failure is None or isinstance(failure, Uncertain):
            self.shown.append(shown)
        await self._tell()
        if failure is not None:
            raise failure
        return shown.sent

    async def _change(self, call: str, sent: Sent, change: Callable[[Shown], Shown]) -> None:
        self.calls.append(call)
        failure = self._failures.popleft() if self._failures else None
        place = next((index for index, one in enumerate(self.shown) if one.sent == sent), None)
        if failure is None and place is None:
            failure = Rejected(f"message {sent.message} does not stand in chat {sent.chat}")
        if place is not None and (failure is None or isinstance(failure, Uncertain)):
            self.shown[place] = change(self.shown[place])
        await self._tell()
        if failure is not None:
            raise failure

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
