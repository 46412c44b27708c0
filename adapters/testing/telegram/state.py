"""What the fake server remembers: people, chats, messages, updates that wait, buttons that were tapped."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass, field
from typing import Any

from adapters.testing.telegram.exceptions import bad_request

Json = dict[str, Any]

#: The user that stands for an administrator who writes anonymously, as in the Bot API.
ANONYMOUS_ADMIN: Json = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}

#: Updates that one answer holds at most (Bot API, getUpdates).
MAX_UPDATES = 100


@dataclass
class ChatState:
    """A chat.

    Attributes:
        blocked: why the bot may not write here; empty while it may.
        moved_to: id of the supergroup that this group became.
        topics: names by thread id.
    """

    id: int
    type: str
    title: str = ""
    person: Json | None = None
    forum: bool = False
    blocked: str = ""
    moved_to: int | None = None
    topics: dict[int, str] = field(default_factory=dict)
    messages: dict[int, Json] = field(default_factory=dict)

    def view(self) -> Json:
        """The ``Chat`` of the API."""
        view: Json = {"id": self.id, "type": self.type}
        if self.person is not None:
            view["first_name"] = self.person["first_name"]
        if self.title:
            view["title"] = self.title
        if self.forum:
            view["is_forum"] = True
        return view


@dataclass
class TapState:
    """A tapped button: the query that the bot must answer once.

    Attributes:
        answer: what the bot answered; None until it did.
        expired: the server takes no answer any more.
    """

    id: str
    data: str
    answer: Json | None = None
    expired: bool = False


class State:
    """Everything behind the API of one bot."""

    def __init__(self, token: str, username: str) -> None:
        self.token = token
        self.me: Json = {
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": "Porter",
            "username": username,
            "can_join_groups": True,
            "can_read_all_group_messages": True,
            "supports_inline_queries": False,
        }
        self.chats: dict[int, ChatState] = {}
        self.updates: list[Json] = []
        self.taps: dict[str, TapState] = {}
        self.files: dict[str, bytes] = {}
        self.commands: list[Json] = []
        self.webhook: Json = {"url": ""}
        self._update_ids = itertools.count(700_000_001)
        self._message_ids = itertools.count(11)
        self._other_ids = itertools.count(501)
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Return after the next change."""
        await self._changed.wait()

    def tell(self) -> None:
        """Wake everybody who waits for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    def new_id(self) -> int:
        """A number for a user, a chat or a topic."""
        return next(self._other_ids)

    def chat(self, chat_id: object) -> ChatState:
        """The chat that the bot may write to.

        Raises:
            ApiRefusal: there is none, it moved, or the bot is not allowed there.
        """
        try:
            chat = self.chats[int(str(chat_id))]
        except (KeyError, ValueError):
            raise bad_request("chat not found") from None
        if chat.moved_to is not None:
            raise bad_request("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.moved_to)
        return chat

    def put_message(self, chat: ChatState, sender: Json, content: Json, thread: int | None = None) -> Json:
        """Add a message to a chat; returns its ``Message``."""
        message: Json = {
            "message_id": next(self._message_ids),
            "date": int(time.time()),
            "chat": chat.view(),
            "from": sender,
            **content,
        }
        if thread is not None:
            message["message_thread_id"] = thread
            message["is_topic_message"] = True
        chat.messages[message["message_id"]] = message
        self.tell()
        return message

    def push(self, update: Json) -> Json:
        """Queue an update for the bot."""
        full = {"update_id": next(self._update_ids), **update}
        self.updates.append(full)
        self.tell()
        return full

    def pending(self, offset: int, limit: int) -> list[Json]:
        """Confirm every update before ``offset``; the next ones that wait."""
        if offset < 0:
            self.updates = self.updates[offset:]
        elif offset > 0:
            self.updates = [update for update in self.updates if update["update_id"] >= offset]
        return self.updates[: max(1, min(limit, MAX_UPDATES))]

    def new_tap(self, data: str) -> TapState:
        """A query that waits for its answer."""
        tap = TapState(id=str(next(self._other_ids) * 1_000_003), data=data)
        self.taps[tap.id] = tap
        return tap
