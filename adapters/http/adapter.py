"""The HTTP adapter: requests to :class:`~adapters.http.ports.Desk`, and its answers to JSON.

Authentication is the listener's: it leaves the caller in the request under :data:`~adapters.http.ports.CALLER`, and a
request without one is refused here as well.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import structlog
from aiohttp import web

from adapters.base import (
    Capabilities,
    Card,
    CardEnd,
    Conversation,
    Health,
    Intake,
    Part,
    Piece,
    Rejected,
    Sender,
    Sent,
    Tap,
    TapVerdict,
    Verdict,
)
from adapters.http import wire
from adapters.http.exceptions import (
    ApiError,
    BadRequest,
    Expired,
    Forbidden,
    NotFound,
    QueueFull,
    Settled,
    Unauthorized,
    Unavailable,
)
from adapters.http.ports import CALLER, Caller, Desk, NoSuchSession, Posted, TurnState
from adapters.http.streams import KEEPALIVE_S, MAX_STREAMS, WRITE_S, Streams

#: Seconds within which the body of a request must have arrived.
BODY_S = 30.0
#: Seconds that what is being stored may take in :meth:`HttpAdapter.stop`.
STOP_S = 5.0
#: Requests of one caller that may wait for a turn at once; further ones are told at once where the turn stands.
MAX_WAITS = 128

T = TypeVar("T")
Handler: TypeAlias = Callable[[web.Request, Caller], Awaitable[web.StreamResponse]]

log = structlog.get_logger(__name__)


class HttpAdapter:
    """HTTP as a chat platform. Clients read the session's events themselves, so nothing is pushed through it.

    Args:
        desk: what the API offers.
        keepalive_s: seconds of silence after which a stream gets a comment line.
        write_s: seconds that a client may leave written bytes unread before its stream is cut.
        body_s: seconds within which a request's body must have arrived.
        max_streams: streams that one caller may hold open.
        max_waits: requests of one caller that may wait for a turn at once.
    """

    def __init__(
        self,
        desk: Desk,
        *,
        keepalive_s: float = KEEPALIVE_S,
        write_s: float = WRITE_S,
        body_s: float = BODY_S,
        max_streams: int = MAX_STREAMS,
        max_waits: int = MAX_WAITS,
    ) -> None:
        self.name = "http"
        self.capabilities = Capabilities(
            pushes=False, text_utf16=wire.MAX_BODY, can_edit=True, can_thread=False, shows_cards=True
        )
        self._desk = desk
        self._body_s = body_s
        self._max_waits = max_waits
        self._streams = Streams(keepalive_s=keepalive_s, write_s=write_s, most=max_streams)
        self._waits: dict[str, int] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._started = False
        self._stopping = asyncio.Event()

    @property
    def open_streams(self) -> int:
        """Streams that are open now."""
        return len(self._streams)

    async def start(self, intake: Intake) -> None:  # noqa: ARG002 - HTTP speaks to the desk, which is wider
        """Begin to serve requests."""
        self._started = True

    async def stop(self) -> None:
        """End all streams and waits, and let what is being stored be stored. May be called again."""
        self._stopping.set()
        await self._streams.close()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=STOP_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def health(self) -> Health:
        """Ready from start to stop: there is nothing to connect to."""
        if self._stopping.is_set():
            return Health(ready=False, reason="stopping")
        return Health(ready=True) if self._started else Health(ready=False, reason="not started")

    def split(self, text: str) -> Sequence[Piece]:
        """One piece: clients show a text of any length."""
        return (Piece(text),)

    def routes(self) -> Sequence[web.RouteDef]:
        """Everything under ``/v1/`` that this adapter serves."""
        session = "/v1/sessions/{session}"
        return (
            web.get("/v1/sessions", self._guard(self._sessions)),
            web.delete(session, self._guard(self._delete)),
            web.post(f"{session}/messages", self._guard(self._post_message)),
            web.get(f"{session}/messages", self._guard(self._messages)),
            # A HEAD request must not open a stream.
            web.get(f"{session}/events", self._guard(self._events), allow_head=False),
            web.post(f"{session}/stop", self._guard(self._stop_turn)),
            web.get("/v1/asks", self._guard(self._asks)),
            web.post("/v1/asks/{id}", self._guard(self._answer)),
        )

    async def send(self, conversation: Conversation, part: Part) -> Sent:  # noqa: ARG002
        """Clients read the events; nothing is sent.

        Raises:
            Rejected: always.
        """
        raise Rejected("HTTP clients read a session's events themselves; nothing is pushed to them")

    async def edit(self, conversation: Conversation, sent: Sent, part: Part) -> None:  # noqa: ARG002
        """See :meth:`send`.

        Raises:
            Rejected: always.
        """
        raise Rejected("HTTP clients read a session's events themselves; nothing is pushed to them")

    async def show_card(self, conversation: Conversation, card: Card) -> Sent:
        """The event ``ask`` shows the card; there is nothing to do but say where it stands."""
        return Sent(chat=conversation.chat, message=card.id)

    async def end_card(self, conversation: Conversation, sent: Sent, card: Card, end: CardEnd) -> None:
        """The event ``ask.settled`` ends the card."""

    # Handlers

    def _guard(self, handler: Handler) -> Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]:
        @functools.wraps(handler)
        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                caller = request.get(CALLER)
                if caller is None:
                    raise Unauthorized("a token is needed: Authorization: Bearer TOKEN")
                if not self._started or self._stopping.is_set():
                    raise Unavailable("the gateway is not serving right now; try again in a moment", retry_after_s=2)
                return await handler(request, caller)
            except ApiError as error:
                return wire.refusal(error)
            except NoSuchSession:
                return wire.refusal(NotFound("there is no such session of yours"))

        return guarded

    async def _post_message(self, request: web.Request, caller: Caller) -> web.Response:
        session = wire.session_name(request, creating=True)
        wait_s = wire.wait_seconds(request)
        message = wire.checked_message(await wire.read_body(request, wire.NewMessage, within_s=self._body_s))
        posted = await self._see_through(
            self._desk.post(caller, session, message.text, message.message_id), f"http-post {session}"
        )
        duplicate = _accepted(posted)
        body: dict[str, object] = {"session": session, "message_id": posted.message_id}
        if duplicate:
            body["duplicate"] = True
        if wait_s is None:
            body["queued"] = posted.receipt.queued
            return wire.reply(body, 200 if duplicate else 202)
        state = await self._wait(caller, session, posted.message_id, wait_s)
        if state.ended:
            return wire.reply(body | {"turn": state.turn or None, "reply": state.reply, "status": state.status})
        return wire.reply(body | {"status": state.status, "asks": [wire.ask_json(card) for card in state.asks]}, 202)

    async def _wait(self, caller: Caller, session: str, message_id: str, seconds: float) -> TurnState:
        """Wait for the turn, but not longer than this adapter runs."""
        waiting = self._waits.get(caller.user, 0)
        if waiting >= self._max_waits:
            seconds = 0.0
        if seconds > 0:
            self._waits[caller.user] = waiting + 1
            try:
                state = await self._until_stop(self._desk.wait(caller, session, message_id, seconds))
            finally:
                self._waits[caller.user] -= 1
                if not self._waits[caller.user]:
                    del self._waits[caller.user]
            if state is not None:
                return state
        return await self._desk.wait(caller, session, message_id, 0.0)

    async def _until_stop(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of ``work``, or None if the adapter stops first."""
        task = asyncio.create_task(work, name="http-wait")
        stop = asyncio.create_task(self._stopping.wait(), name="http-wait-stop")
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            for one in (task, stop):
                one.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)

    async def _messages(self, request: web.Request, caller: Caller) -> web.Response:
        session = wire.session_name(request)
        limit, before = wire.page_of(request)
        return wire.reply(wire.history_json(await self._desk.messages(caller, session, limit, before)))

    async def _events(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        session = wire.session_name(request)
        # The header is what a browser sends when it reconnects by itself, and then knows more than the address.
        last = request.headers.get("Last-Event-ID") or request.query.get("last_event_id") or None
        after = wire.whole_number(last, "Last-Event-ID")
        # Asked for before the stream begins, because a stream that has begun cannot answer 404 any more.
        await self._desk.messages(caller, session, 1, None)
        return await self._streams.serve(request, caller.user, self._desk.events(caller, session, after))

    async def _stop_turn(self, request: web.Request, caller: Caller) -> web.Response:
        session = wire.session_name(request)
        stopped = await self._see_through(self._desk.stop(caller, session), f"http-stop {session}")
        return wire.reply({"stopped": stopped})

    async def _delete(self, request: web.Request, caller: Caller) -> web.Response:
        session = wire.session_name(request)
        await self._see_through(self._desk.delete(caller, session), f"http-delete {session}")
        return web.Response(status=204)

    async def _sessions(self, request: web.Request, caller: Caller) -> web.Response:  # noqa: ARG002
        return wire.reply({"sessions": [wire.session_json(row) for row in await self._desk.sessions(caller)]})

    async def _asks(self, request: web.Request, caller: Caller) -> web.Response:  # noqa: ARG002
        return wire.reply({"asks": [wire.ask_json(card) for card in await self._desk.asks(caller)]})

    async def _answer(self, request: web.Request, caller: Caller) -> web.Response:
        ask_id = request.match_info["id"]
        answer = wire.checked_answer(await wire.read_body(request, wire.Answer, within_s=self._body_s))
        tap = Tap(
            ask_id=ask_id,
            sender=Sender(platform=self.name, id=caller.user),
            choice=answer.choice,
            text=answer.text,
            reason=answer.reason or "",
        )
        result = await self._see_through(self._desk.answer(tap), "http-answer")
        if result.verdict in {TapVerdict.SETTLED, TapVerdict.PENDING}:
            return wire.reply(
                {
                    "id": ask_id,
                    "outcome": result.outcome or "pending",
                    "choice": result.choice or None,
                    "have": result.have,
                    "need": result.need,
                }
            )
        raise _tap_error(result.verdict, result.text, result.outcome)

    async def _see_through(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Await ``work`` in a task of its own: a client that leaves does not interrupt what changes something."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_unheard)
            raise


def _accepted(posted: Posted) -> bool:
    """Whether the message had been accepted before.

    Raises:
        ApiError: it was not accepted.
    """
    receipt = posted.receipt
    match receipt.verdict:
        case Verdict.ACCEPTED:
            return False
        case Verdict.DUPLICATE:
            return True
        case Verdict.QUEUE_FULL:
            raise QueueFull(
                "the session's queue is full; nothing was accepted", retry_after_s=max(1, receipt.retry_after_s)
            )
        case Verdict.STRANGER:
            raise Forbidden("you have no right to be served here; ask an admin")
        case Verdict.UNAVAILABLE:
            raise Unavailable(
                "the gateway cannot store messages right now; nothing was accepted",
                retry_after_s=max(1, receipt.retry_after_s),
            )


_Failed: TypeAlias = Literal[
    TapVerdict.NOT_A_CHOICE,
    TapVerdict.NOT_YOURS,
    TapVerdict.UNKNOWN,
    TapVerdict.EXPIRED,
    TapVerdict.ALREADY_SETTLED,
    TapVerdict.UNAVAILABLE,
]


def _tap_error(verdict: _Failed, text: str, outcome: str) -> ApiError:
    """The error for a tap that settled nothing."""
    match verdict:
        case TapVerdict.NOT_A_CHOICE:
            return BadRequest(text or "that is not one of the choices")
        case TapVerdict.NOT_YOURS:
            return Forbidden(text or "this is not yours to answer")
        case TapVerdict.UNKNOWN:
            return NotFound(text or "there is no such request")
        case TapVerdict.EXPIRED:
            return Expired(text or "time is up; nothing ran", outcome=outcome or "timed_out")
        case TapVerdict.ALREADY_SETTLED:
            return Settled(text or "this has been answered already", outcome=outcome)
        case TapVerdict.UNAVAILABLE:
            return Unavailable(text or "the answer could not be stored; try again", retry_after_s=1)


def _log_unheard(task: asyncio.Task[Any]) -> None:
    """Say what went wrong where no client is left to be told."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("request_failed_unheard", task=task.get_name(), error=type(error).__name__)
