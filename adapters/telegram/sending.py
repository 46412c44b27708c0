"""Everything that goes out: text, edits, cards, answers to taps. One call each; delivery owns the retries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import structlog
from telegram import Bot, BotCommand, InlineKeyboardButton, InlineKeyboardMarkup, InputFile, LinkPreviewOptions, Message
from telegram.constants import ParseMode
from telegram.error import ChatMigrated, TelegramError

from adapters.base import Card, CardEnd, Conversation, DeliveryError, Inbound, Part, Receipt, Sent, Tap, Uncertain
from adapters.telegram.cards import button_data, face
from adapters.telegram.exceptions import delivery_error, not_modified
from adapters.telegram.render import HTML
from adapters.telegram.settings import Command
from adapters.telegram.wording import EMPTY, LIMIT, REPEATED, busy_text
from adapters.text import Chunk, split_markdown

log = structlog.get_logger(__name__)

T = TypeVar("T")

#: Longest answer to a tap, in characters (Bot API).
MAX_ANSWER = 200

#: Buttons beside each other.
_PER_ROW = 2

_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class Sending:
    """The bot's voice.

    Args:
        bot: the library's client, over our transport.
    """

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._moved: dict[str, str] = {}

    async def send(self, conversation: Conversation, part: Part) -> Sent:
        """Send a part; several messages only where it was not split before and has very many formatted pieces.

        Raises:
            DeliveryError: see its tree.
        """
        bodies = _bodies(part)
        message = await self._call(conversation, partial(self._message, conversation, *bodies[0]))
        try:
            for body in bodies[1:]:
                await self._call(conversation, partial(self._message, conversation, *body))
        except DeliveryError as error:
            raise Uncertain(f"only the beginning was sent: {error}") from error
        return _place(message)

    async def edit(self, sent: Sent, part: Part) -> None:
        """Replace the text of a message.

        Raises:
            DeliveryError: see its tree.
        """
        text, mode = _bodies(part)[0]
        await _edited(
            self._bot.edit_message_text(
                text,
                chat_id=_chat_id(sent.chat),
                message_id=int(sent.message),
                parse_mode=mode,
                link_preview_options=_NO_PREVIEW,
            )
        )

    async def show_card(self, conversation: Conversation, card: Card) -> Sent:
        """Show a card; one message, whose file holds the command where it is too long.

        Raises:
            DeliveryError: see its tree.
        """
        look, keyboard = face(card), _keyboard(card)

        async def show(chat: int | str) -> Message:
            thread = _thread(conversation)
            if look.document is not None:
                return await self._bot.send_document(
                    chat,
                    InputFile(look.document, filename=look.name),
                    caption=look.html,
                    parse_mode=ParseMode.HTML,
                    reply_markup=keyboard,
                    message_thread_id=thread,
                )
            return await self._bot.send_message(
                chat,
                look.html,
                parse_mode=ParseMode.HTML,
                reply_markup=keyboard,
                message_thread_id=thread,
                link_preview_options=_NO_PREVIEW,
            )

        return _place(await self._call(conversation, show))

    async def end_card(self, sent: Sent, card: Card, end: CardEnd) -> None:
        """Say how it ended; an edit without buttons takes them away.

        Raises:
            DeliveryError: see its tree.
        """
        look = face(card, end)
        chat, message = _chat_id(sent.chat), int(sent.message)
        if look.document is not None:
            work = self._bot.edit_message_caption(chat, message, caption=look.html, parse_mode=ParseMode.HTML)
        else:
            work = self._bot.edit_message_text(
                look.html, chat, message, parse_mode=ParseMode.HTML, link_preview_options=_NO_PREVIEW
            )
        await _edited(work)

    async def answer_tap(self, query: str, text: str, dead: Tap | None) -> None:
        """Answer a tap, once. That it came too late is no error: the record decides, the card tells."""
        try:
            await self._bot.answer_callback_query(query, text=text[:MAX_ANSWER] or None)
        except TelegramError as error:
            log.info("tap_not_answered", error=type(error).__name__)
        if dead is None or dead.shown_at is None or not dead.shown_at.message:
            return
        try:
            await self._bot.edit_message_reply_markup(_chat_id(dead.shown_at.chat), int(dead.shown_at.message))
        except TelegramError as error:
            if not not_modified(error):
                log.info("buttons_not_removed", error=type(error).__name__)

    async def busy(self, inbound: Inbound, receipt: Receipt) -> None:
        """Tell somebody that their message was not taken."""
        place = inbound.conversation
        try:
            await self._message(place, busy_text(receipt), None, _chat_id(place.chat))
        except TelegramError as error:
            log.warning("busy_not_told", error=type(error).__name__)

    async def set_menu(self, commands: Sequence[Command]) -> None:
        """Replace the bot's menu.

        Raises:
            telegram.error.TelegramError: it was not taken.
        """
        await self._bot.set_my_commands([BotCommand(command.name, command.help) for command in commands])

    async def _message(self, conversation: Conversation, text: str, mode: str | None, chat: int | str) -> Message:
        return await self._bot.send_message(
            chat,
            text,
            parse_mode=mode,
            message_thread_id=_thread(conversation),
            link_preview_options=_NO_PREVIEW,
        )

    async def _call(self, conversation: Conversation, call: Callable[[int | str], Awaitable[T]]) -> T:
        """Make one call to a chat, or to the supergroup that it became."""
        chat = self._moved.get(conversation.chat, conversation.chat)
        try:
            return await call(_chat_id(chat))
        except ChatMigrated as error:
            self._moved[conversation.chat] = str(error.new_chat_id)
        except TelegramError as error:
            raise delivery_error(error) from error
        log.info("chat_moved", chat=conversation.chat, to=self._moved[conversation.chat])
        try:
            return await call(_chat_id(self._moved[conversation.chat]))
        except TelegramError as error:
            raise delivery_error(error) from error


async def _edited(work: Awaitable[object]) -> None:
    """Await an edit; that the message looks so already is success."""
    try:
        await work
    except TelegramError as error:
        if not not_modified(error):
            raise delivery_error(error) from error


def _bodies(part: Part) -> list[tuple[str, str | None]]:
    """Texts to send, with their parse mode."""
    mark = REPEATED if part.repeated else ""
    if part.formatted:
        return [(mark + part.text, None) if part.plain else (mark + part.formatted, ParseMode.HTML)]
    chunks: list[Chunk] = split_markdown(part.text, limit=LIMIT, render=HTML)
    if part.plain or not chunks:
        if len(chunks) <= 1:
            return [(mark + (part.text if part.text.strip() else EMPTY), None)]
        return [(mark + chunk.plain, None) for chunk in chunks]
    return [(mark + chunk.text, ParseMode.HTML) for chunk in chunks]


def _keyboard(card: Card) -> InlineKeyboardMarkup | None:
    buttons = [
        InlineKeyboardButton(choice.label, callback_data=button_data(card, choice.value)) for choice in card.choices
    ]
    if not buttons:
        return None
    return InlineKeyboardMarkup([buttons[at : at + _PER_ROW] for at in range(0, len(buttons), _PER_ROW)])


def _chat_id(chat: str) -> int | str:
    return int(chat) if chat.lstrip("-").isdigit() else chat


def _thread(conversation: Conversation) -> int | None:
    return int(conversation.thread) if conversation.thread else None


def _place(message: Message) -> Sent:
    return Sent(str(message.chat.id), str(message.message_id))
