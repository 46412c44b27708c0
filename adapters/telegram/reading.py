"""From an update to what the gateway understands; who is not served is sorted out here.

Only entities that the server made count as a mention, by their exact slice: neither mail addresses nor longer names are
one. Bots, and messages on behalf of a chat (anonymous administrators, channels), are nobody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from telegram import (
    Audio,
    CallbackQuery,
    Document,
    Message,
    MessageEntity,
    Update,
    User,
    Video,
    Voice,
)

from adapters.base import Attachment, Conversation, ConversationKind, Inbound, Sender, Sent, Tap
from adapters.telegram.cards import read_data

PLATFORM = "telegram"

#: What clients write when somebody opens the chat with a bot for the first time.
_START = re.compile(r"/start(?:\s.*)?", re.DOTALL)

_KINDS = {
    "private": ConversationKind.DIRECT,
    "group": ConversationKind.GROUP,
    "supergroup": ConversationKind.GROUP,
}

#: Kinds of entities in which somebody is addressed.
_ADDRESSING: list[str | None] = [MessageEntity.MENTION, MessageEntity.TEXT_MENTION, MessageEntity.BOT_COMMAND]


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself."""

    id: int
    username: str


@dataclass(frozen=True, slots=True)
class Written:
    """Somebody wrote, or changed what they wrote (``edited``)."""

    inbound: Inbound
    edited: bool = False


@dataclass(frozen=True, slots=True)
class Tapped:
    """Somebody tapped a button.

    Attributes:
        query: id of what must be answered.
        tap: None where the button is not one of ours.
        genuine: the message that it claims to be on has this button; data can be forged, messages cannot.
    """

    query: str
    tap: Tap | None
    genuine: bool = False


def read(update: Update, me: Me, *, require_mention: bool) -> Written | Tapped | None:
    """What happened, or None for what does not concern the gateway."""
    if update.callback_query is not None:
        return _tapped(update.callback_query)
    if update.message is not None:
        inbound = _inbound(update.message, me, require_mention)
        return Written(inbound) if inbound is not None else None
    if update.edited_message is not None:
        inbound = _inbound(update.edited_message, me, require_mention)
        return Written(inbound, edited=True) if inbound is not None else None
    return None


def _tapped(query: CallbackQuery) -> Tapped:
    known = read_data(query.data or "")
    if known is None:
        return Tapped(query.id, None)
    # a tap that does not say where it was made matches no place
    shown = Sent(str(query.message.chat.id), str(query.message.message_id)) if query.message else Sent("", "")
    tap = Tap(ask_id=known[0], sender=_sender(query.from_user), choice=known[1], shown_at=shown)
    return Tapped(query.id, tap, genuine=_has_button(query))


def _has_button(query: CallbackQuery) -> bool:
    keyboard = query.message.reply_markup if isinstance(query.message, Message) else None
    return keyboard is not None and any(
        button.callback_data == query.data for row in keyboard.inline_keyboard for button in row
    )


def _inbound(message: Message, me: Me, require_mention: bool) -> Inbound | None:
    kind = _KINDS.get(message.chat.type)
    user = message.from_user
    if kind is None or user is None or user.is_bot or message.sender_chat is not None:
        return None
    text = message.text or message.caption or ""
    attachment = _attachment(message)
    if not text and attachment is None:
        return None
    if kind is ConversationKind.GROUP:
        addressed = _addressed(message, me)
        if addressed is False or (require_mention and not addressed):
            return None
        text = _without_name(message, text, me)
    elif _START.fullmatch(text):
        text = "/help"
    chat = str(message.chat.id)
    thread = str(message.message_thread_id) if message.is_topic_message and message.message_thread_id else ""
    return Inbound(
        event_key=f"{PLATFORM}:{me.id}:{chat}:{message.message_id}",
        conversation=Conversation(PLATFORM, chat, kind, thread),
        sender=_sender(user),
        text=text or (f"[{attachment.name}]" if attachment else ""),
        message_ref=str(message.message_id),
        reply_to=_answered(message),
        attachments=(attachment,) if attachment else (),
    )


def _sender(user: User) -> Sender:
    return Sender(PLATFORM, str(user.id), user.full_name, is_bot=user.is_bot)


def _addressed(message: Message, me: Me) -> bool | None:
    """True when the bot is meant, False when a command names another bot, None when nobody is named."""
    entities = message.parse_entities(_ADDRESSING) or message.parse_caption_entities(_ADDRESSING)
    meant: bool | None = None
    for entity, said in entities.items():
        name = said.rpartition("@")[2].lower() if "@" in said else ""
        if entity.type == MessageEntity.TEXT_MENTION:
            meant = meant or (entity.user is not None and entity.user.id == me.id) or None
        elif name and name == me.username.lower():
            meant = True
        elif name and entity.type == MessageEntity.BOT_COMMAND and entity.offset == 0:
            return False
    answered = message.reply_to_message
    if answered is not None and answered.forum_topic_created is None:
        meant = meant or (answered.from_user is not None and answered.from_user.id == me.id) or None
    return meant


def _without_name(message: Message, text: str, me: Me) -> str:
    """The text without the bot's name at its beginning, which is an address and not part of the request."""
    for entity in message.entities or message.caption_entities:
        if entity.offset != 0 or entity.type not in {MessageEntity.MENTION, MessageEntity.TEXT_MENTION}:
            continue
        raw = text.encode("utf-16-le", "surrogatepass")
        said = raw[: 2 * entity.length].decode("utf-16-le", "replace")
        ours = said.lower() == f"@{me.username}".lower() or (entity.user is not None and entity.user.id == me.id)
        rest = raw[2 * entity.length :].decode("utf-16-le", "surrogatepass").lstrip(" ,:\n")
        return rest if ours and rest else text
    return text


def _answered(message: Message) -> str:
    answered = message.reply_to_message
    if message.quote is not None:
        return message.quote.text
    return (answered.text or answered.caption or "") if answered is not None else ""


def _attachment(message: Message) -> Attachment | None:
    """The file that came with a message, by reference."""
    found = message.effective_attachment
    if isinstance(found, Sequence):
        return Attachment(found[-1].file_id, "photo", "image/jpeg", found[-1].file_size)
    if isinstance(found, (Document, Audio, Video)):
        name = found.file_name or type(found).__name__.lower()
        return Attachment(found.file_id, name, found.mime_type or "", found.file_size)
    if isinstance(found, Voice):
        return Attachment(found.file_id, "voice", found.mime_type or "", found.file_size)
    return None
