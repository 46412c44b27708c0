"""The fake's server: speaks HTTP on a port of its own, as the Bot API does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from adapters.testing.telegram.exceptions import ApiRefusal
from adapters.testing.telegram.faults import Fault, Faults, Kind
from adapters.testing.telegram.methods import METHODS, Upload, decoded
from adapters.testing.telegram.people import Chat, Message, Person
from adapters.testing.telegram.state import ChatState, Json, State

#: Longest poll that the server allows, in seconds.
MAX_POLL_S = 50

#: The token and the name of the fake bot. The token opens nothing anywhere.
TOKEN = "424242:fake-token-of-the-fake-server"  # noqa: S105
USERNAME = "porter_bot"

_TERMINATED = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it arrived, refused or not."""

    method: str
    params: Mapping[str, Any]
    at: float


class FakeTelegram:
    """A Bot API server for one bot, with people who chat with it.

    ::

        async with FakeTelegram.running() as telegram:
            ann = telegram.person("Ann")
            ...  # start what is tested with base_url=telegram.base_url and token=telegram.token
            ann.writes("hello")
            await ann.direct.until(lambda chat: "hi" in chat.texts)

    Attributes:
        faults: calls that shall fail.
        calls: every call but getUpdates, in order.
        polls: polls that were answered.
    """

    def __init__(self, token: str = TOKEN, username: str = USERNAME) -> None:
        self.token = token
        self.state = State(token, username)
        self.faults = Faults()
        self.calls: list[Call] = []
        self.polls = 0
        self._port = 0
        self._runner: web.AppRunner | None = None
        self._poll: asyncio.Future[None] | None = None

    @classmethod
    @asynccontextmanager
    async def running(cls, **options: Any) -> AsyncIterator[FakeTelegram]:
        """Serve until the block ends."""
        fake = cls(**options)
        await fake.listen()
        try:
            yield fake
        finally:
            await fake.refuse_connections()

    @property
    def base_url(self) -> str:
        """What a client puts before the token."""
        return f"http://127.0.0.1:{self._port}/bot"

    async def listen(self) -> None:
        """Accept connections, on the same port as before if there was one."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/bot{token}/{method}", self._handle)
        app.router.add_get("/file/bot{token}/{path:.+}", self._file)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True).start()
        self._port = int(self._runner.addresses[0][1])

    async def refuse_connections(self) -> None:
        """Close everything; until :meth:`listen` connections are refused."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    # What tests play

    def person(self, name: str, *, is_bot: bool = False, username: str = "") -> Person:
        """Somebody who has begun a chat with the bot."""
        user: Json = {"id": self.state.new_id(), "is_bot": is_bot, "first_name": name}
        if username:
            user["username"] = username
        self.state.chats[user["id"]] = ChatState(user["id"], "private", person=user)
        return Person(self.state, user)

    def group(self, title: str, *, forum: bool = False) -> Chat:
        """A group that the bot is in; with ``forum`` it has topics."""
        number = self.state.new_id()
        group = ChatState(-1_000_000_000_000 - number, "supergroup", title, forum=forum)
        self.state.chats[group.id] = group
        return Chat(self.state, group)

    def move(self, group: Chat) -> Chat:
        """Make a new supergroup of a group, as the server does when it grows: the old id is gone."""
        new = self.group(group.state.title)
        group.state.moved_to = new.id
        old = self.state.put_message(group.state, self.state.me, {"migrate_to_chat_id": new.id})
        self.state.push({"message": dict(old)})
        return new

    def push_raw(self, update: Json) -> Json:
        """Queue an update as it is, however malformed; it gets an id."""
        return self.state.push(update)

    def push_again(self, update: Json) -> None:
        """Deliver an update once more under another id, as the server may."""
        self.state.push({key: value for key, value in update.items() if key != "update_id"})

    def expire_taps(self) -> None:
        """No tap so far can be answered any more."""
        for tap in self.state.taps.values():
            tap.expired = True

    def called(self, method: str) -> list[Call]:
        """The calls of one method."""
        return [call for call in self.calls if call.method.lower() == method.lower()]

    def file_of(self, message: Message) -> bytes:
        """The content of a message's document."""
        return self.state.files[message.data["document"]["file_id"]]

    async def until(self, condition: Callable[[FakeTelegram], bool], *, patience_s: float = 30.0) -> None:
        """Wait until ``condition`` holds; looked at after each change. ``TimeoutError`` after ``patience_s``."""
        async with asyncio.timeout(patience_s):
            while not condition(self):
                await self.state.changed()

    # What the wire does

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.match_info["token"] != self.token:
            return _answer(ApiRefusal(401, "Unauthorized"))
        fault = self.faults.take(method)
        if fault is not None:
            self.state.tell()
        try:
            if fault is not None and fault.kind is not Kind.CUT_AFTER:
                return await self._fail(request, fault)
            result = await self._call(request, method)
        except ApiRefusal as refusal:
            return _answer(refusal)
        finally:
            self.state.tell()
        if fault is not None:
            return _cut(request)
        return web.json_response({"ok": True, "result": result})

    async def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.refusal is not None:
            self._note(request.match_info["method"], await _params(request))
            raise fault.refusal
        match fault.kind:
            case Kind.GATEWAY:
                return web.Response(
                    status=fault.status, text="<html><h1>Bad Gateway</h1></html>", content_type="text/html"
                )
            case Kind.HANG:
                await asyncio.Event().wait()
        return _cut(request)

    async def _call(self, request: web.Request, method: str) -> Any:
        params = await _params(request)
        if method.lower() == "getupdates":
            return await self._get_updates(params)
        self._note(method, params)
        handler = METHODS.get(method.lower())
        if handler is None:
            raise ApiRefusal(404, "Not Found: method not found")
        return handler(self.state, params)

    def _note(self, method: str, params: Mapping[str, Any]) -> None:
        self.calls.append(Call(method, params, time.monotonic()))

    async def _get_updates(self, params: Json) -> list[Json]:
        """Wait for updates. A second poller ends the wait of the first one with 409, as on the real server."""
        if self.state.webhook["url"]:
            raise ApiRefusal(409, _WEBHOOK)
        if self._poll is not None and not self._poll.done():
            self._poll.set_exception(ApiRefusal(409, _TERMINATED))
        mine = self._poll = asyncio.get_running_loop().create_future()
        offset, limit = int(params.get("offset") or 0), int(params.get("limit") or 100)
        allowed = params.get("allowed_updates")
        end = time.monotonic() + min(float(params.get("timeout") or 0), MAX_POLL_S)
        try:
            while True:
                updates = [one for one in self.state.pending(offset, limit) if _allowed(one, allowed)]
                left = end - time.monotonic()
                if updates or left <= 0:
                    self.polls += 1
                    return updates
                await self._news(mine, left)
        finally:
            mine.cancel()

    async def _news(self, mine: asyncio.Future[None], left: float) -> None:
        change = asyncio.ensure_future(self.state.changed())
        try:
            await asyncio.wait({change, mine}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()
            await asyncio.wait({change})
        if mine.done():
            mine.result()

    async def _file(self, request: web.Request) -> web.StreamResponse:
        file_id = request.match_info["path"].rpartition("/")[2]
        if request.match_info["token"] != self.token or file_id not in self.state.files:
            return _answer(ApiRefusal(404, "Not Found"))
        return web.Response(body=self.state.files[file_id])


def _answer(refusal: ApiRefusal) -> web.Response:
    return web.json_response(refusal.body(), status=refusal.code)


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _allowed(update: Json, allowed: object) -> bool:
    return not isinstance(allowed, list) or not allowed or any(name in update for name in allowed)


async def _params(request: web.Request) -> Json:
    raw: Json = dict(request.query)
    if request.content_type == "application/json":
        raw.update(json.loads(await request.read()))
    elif request.method == "POST":
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                raw[name] = Upload(value.filename, value.file.read())
            else:
                raw[name] = value.decode() if isinstance(value, (bytes, bytearray)) else value
    params = decoded(raw)
    # a file may be named elsewhere by attach://NAME
    for name, value in list(params.items()):
        if isinstance(value, str) and value.startswith("attach://"):
            params[name] = params.pop(value.removeprefix("attach://"), None)
    return params
