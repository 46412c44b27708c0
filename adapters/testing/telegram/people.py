"""People of the fake: they write, edit, reply and tap, and the server makes updates of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from adapters.testing.telegram.markup import Entity, found, utf16
from adapters.testing.telegram.state import ANONYMOUS_ADMIN, ChatState, Json, State, TapState


@dataclass(frozen=True, slots=True)
class Message:
    """A message that stands in a chat; always shows its present state."""

    chat: Chat
    id: int

    @property
    def data(self) -> Json:
        """The ``Message`` of the API."""
        return self.chat.state.messages[self.id]

    @property
    def text(self) -> str:
        """Its text, or the caption of its file."""
        return str(self.data.get("text") or self.data.get("caption") or "")

    @property
    def buttons(self) -> dict[str, str]:
        """Callback data by label; empty where it has no buttons."""
        rows = (self.data.get("reply_markup") or {}).get("inline_keyboard", [])
        return {button["text"]: button["callback_data"] for row in rows for button in row}

    @property
    def entities(self) -> list[tuple[str, str]]:
        """Type and text of each entity."""
        raw = self.text.encode("utf-16-le")
        listed = self.data.get("entities") or self.data.get("caption_entities") or []
        return [
            (one["type"], raw[2 * one["offset"] : 2 * (one["offset"] + one["length"])].decode("utf-16-le"))
            for one in listed
        ]


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat as a test sees it; in a forum ``topic`` is one of its threads."""

    server: State
    state: ChatState
    topic: int | None = None

    @property
    def id(self) -> int:
        """The chat's id."""
        return self.state.id

    @property
    def messages(self) -> list[Message]:
        """Everything that stands here, the oldest first; of the topic alone, where this is one."""
        return [
            Message(self, id_)
            for id_, data in self.state.messages.items()
            if self.topic is None or data.get("message_thread_id") == self.topic
        ]

    @property
    def from_bot(self) -> list[Message]:
        """What the bot has written here."""
        return [message for message in self.messages if message.data["from"]["id"] == self.server.me["id"]]

    @property
    def texts(self) -> list[str]:
        """Texts of what the bot has written here."""
        return [message.text for message in self.from_bot]

    @property
    def cards(self) -> list[Message]:
        """The bot's messages that have buttons."""
        return [message for message in self.from_bot if message.buttons]

    def new_topic(self, name: str) -> Chat:
        """A thread of a forum."""
        thread = self.server.new_id()
        self.state.topics[thread] = name
        return Chat(self.server, self.state, thread)

    def block(self, reason: str = "bot was blocked by the user") -> None:
        """The bot may not write here any more."""
        self.state.blocked = reason

    def unblock(self) -> None:
        """The bot may write here again."""
        self.state.blocked = ""

    def channel_writes(self, text: str) -> Message:
        """Somebody writes on behalf of the chat: an anonymous administrator."""
        content: Json = {"text": text, "entities": found(text), "sender_chat": self.state.view()}
        return self._put(ANONYMOUS_ADMIN, content)

    async def until(self, condition: Callable[[Chat], bool], *, patience_s: float = 30.0) -> Chat:
        """Wait until ``condition`` holds; looked at after each change. ``TimeoutError`` after ``patience_s``."""
        async with asyncio.timeout(patience_s):
            while not condition(self):
                await self.server.changed()
        return self

    def put(self, sender: Json, content: Json) -> Message:
        """Add a message and tell the bot."""
        return self._put(sender, content)

    def _put(self, sender: Json, content: Json) -> Message:
        data = self.server.put_message(self.state, sender, content, self.topic)
        self.server.push({"message": dict(data)})
        return Message(self, data["message_id"])


@dataclass(frozen=True, slots=True)
class Tap:
    """A tap of somebody's, and what the bot answered."""

    server: State
    query: TapState

    @property
    def text(self) -> str | None:
        """The answer's text; None until there is one."""
        return None if self.query.answer is None else str(self.query.answer["text"])

    async def answered(self, *, patience_s: float = 30.0) -> str:
        """The answer's text, once there is one."""
        async with asyncio.timeout(patience_s):
            while self.text is None:
                await self.server.changed()
        return self.text or ""


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """Somebody with an account; ``is_bot`` makes it another bot."""

    server: State
    user: Json

    @property
    def id(self) -> int:
        """The account's id."""
        return int(self.user["id"])

    @property
    def direct(self) -> Chat:
        """The private chat with the bot."""
        return Chat(self.server, self.server.chats[self.id])

    def writes(
        self,
        text: str = "",
        *,
        to: Chat | None = None,
        reply_to: Message | None = None,
        mention: Json | None = None,
        content: Json | None = None,
    ) -> Message:
        """Write to a chat, or to the bot directly.

        Args:
            text: mentions, commands and mail addresses in it become entities, as the server makes them.
            to: the chat or topic.
            reply_to: the message that this one answers.
            mention: a user whom the whole text mentions by name (``text_mention``).
            content: a photo, a document or anything else that a ``Message`` may hold.
        """
        full: Json = dict(content or {})
        if text:
            entities: list[Entity] = found(text)
            if mention is not None:
                entities = [{"type": "text_mention", "offset": 0, "length": utf16(text), "user": mention}]
            full["caption" if content else "text"] = text
            full["caption_entities" if content else "entities"] = entities
        if reply_to is not None:
            full["reply_to_message"] = dict(reply_to.data)
        return (to or self.direct).put(self.user, full)

    def edits(self, message: Message, text: str) -> None:
        """Change a message of one's own."""
        message.data.update({"text": text, "entities": found(text), "edit_date": int(time.time())})
        self.server.push({"edited_message": dict(message.data)})

    def taps(self, message: Message, label: str) -> Tap:
        """Tap the button whose label begins with ``label``."""
        data = next(data for name, data in message.buttons.items() if name.startswith(label))
        return self.sends_tap(message, data)

    def sends_tap(self, message: Message, data: str) -> Tap:
        """Send callback data as if a button on ``message`` had it, as a forged or an old client may."""
        query = self.server.new_tap(data)
        update: Json = {
            "id": query.id,
            "from": self.user,
            "chat_instance": str(message.chat.id),
            "data": data,
            "message": dict(message.data),
        }
        self.server.push({"callback_query": update})
        return Tap(self.server, query)
