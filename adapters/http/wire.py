"""The shapes of the HTTP API: what clients may send, and how values are written as JSON.

Values that are absent are ``null``; times are RFC 3339 in UTC with a ``Z``.
"""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from aiohttp import web

from adapters.base import Card, Event
from adapters.http.exceptions import ApiError, BadRequest, TimedOut, TooLarge, Unauthorized
from adapters.http.ports import History, SessionRow

#: Largest body of a request, in bytes; part of the published interface.
MAX_BODY = 1024 * 1024
#: Longest ``message_id``, in characters.
MAX_MESSAGE_ID = 128
#: Longest typed answer and longest reason for a denial, in characters.
MAX_ANSWER = 16_384
#: Longest ``?wait=``, in seconds; part of the published interface.
MAX_WAIT_S = 600.0
#: Messages a page of history, without and at most with ``?limit=``.
DEFAULT_LIMIT = 50
MAX_LIMIT = 500

_SESSION = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_RESERVED = ("telegram:", "slack:", "job:", "hook:")
_DIGITS = re.compile(r"[0-9]{1,18}")

_encoder = msgspec.json.Encoder()

S = TypeVar("S", bound=msgspec.Struct)


class NewMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/sessions/{session}/messages``."""

    text: str
    message_id: str | None = None


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/asks/{id}``."""

    choice: str | None = None
    text: str | None = None
    reason: str | None = None


def encode(value: object) -> bytes:
    """``value`` as one line of JSON in UTF-8; lone surrogates become escapes, which JSON allows and UTF-8 does not."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def reply(value: object, status: int = 200) -> web.Response:
    """A JSON response."""
    return web.Response(body=encode(value), status=status, content_type="application/json")


def refusal(error: ApiError) -> web.Response:
    """The response for an error: ``{"error": {"code", "message"}}``, with ``outcome`` for an ask that has ended."""
    body: dict[str, object] = {"code": error.code, "message": error.message}
    if error.outcome:
        body["outcome"] = error.outcome
    response = reply({"error": body}, error.status)
    if error.retry_after_s:
        response.headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


async def read_body(request: web.Request, kind: type[S], *, within_s: float) -> S:
    """The request's JSON body as ``kind``.

    Raises:
        BadRequest: not JSON, an unknown field, a missing one or one of the wrong type; the message names it.
        TooLarge: over :data:`MAX_BODY`.
        TimedOut: not complete ``within_s`` seconds.
    """
    if (request.content_length or 0) > MAX_BODY:
        raise TooLarge(f"the body is over {MAX_BODY} bytes")
    try:
        async with asyncio.timeout(within_s):
            raw = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise TooLarge(f"the body is over {MAX_BODY} bytes") from None
    except TimeoutError:
        raise TimedOut(f"the body did not arrive within {within_s:g} s") from None
    if len(raw) > MAX_BODY:
        raise TooLarge(f"the body is over {MAX_BODY} bytes")
    if not raw:
        raise BadRequest("the body is empty; a JSON object is expected")
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as exc:
        raise BadRequest(str(exc)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("the body is not valid JSON in UTF-8") from None


def session_name(request: web.Request, *, creating: bool = False) -> str:
    """The session that the path names.

    Raises:
        BadRequest: not a session name, or, when ``creating``, one with a prefix that belongs to another platform.
    """
    name = request.match_info["session"]
    if _SESSION.fullmatch(name) is None:
        raise BadRequest("a session name is 1 to 128 of the characters A-Z a-z 0-9 . _ : -")
    if creating and name.startswith(_RESERVED):
        prefix = name.split(":", 1)[0]
        raise BadRequest(f"session names that begin with {prefix}: are reserved; choose another one")
    return name


def checked_message(message: NewMessage) -> NewMessage:
    """``message`` if its fields hold what they must.

    Raises:
        BadRequest: naming the field.
    """
    if not message.text.strip():
        raise BadRequest("text is empty")
    if "\0" in message.text:
        raise BadRequest("text must not contain the character U+0000")
    if message.message_id is not None:
        _check_message_id(message.message_id)
    return message


def checked_answer(answer: Answer) -> Answer:
    """``answer`` if it holds exactly one of ``choice`` and ``text``, and neither is empty.

    Raises:
        BadRequest: naming the field.
    """
    given = [name for name in ("choice", "text") if getattr(answer, name) is not None]
    if len(given) != 1:
        raise BadRequest("exactly one of choice and text is needed")
    if not str(getattr(answer, given[0])).strip():
        raise BadRequest(f"{given[0]} is empty")
    for name in ("choice", "text", "reason"):
        value = getattr(answer, name)
        if value is not None and len(value) > MAX_ANSWER:
            raise BadRequest(f"{name} is longer than {MAX_ANSWER} characters")
        if value is not None and "\0" in value:
            raise BadRequest(f"{name} must not contain the character U+0000")
    return answer


def _check_message_id(message_id: str) -> None:
    if not 1 <= len(message_id) <= MAX_MESSAGE_ID or not message_id.isprintable():
        raise BadRequest(f"message_id must be 1 to {MAX_MESSAGE_ID} printable characters")


def wait_seconds(request: web.Request) -> float | None:
    """``?wait=``, or None without it.

    Raises:
        BadRequest: not a number of seconds from 0 to :data:`MAX_WAIT_S`.
    """
    text = request.query.get("wait")
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text) is None or float(text) > MAX_WAIT_S:
        raise BadRequest(f"wait must be a number of seconds from 0 to {MAX_WAIT_S:g}")
    return float(text)


def page_of(request: web.Request) -> tuple[int, int | None]:
    """``?limit=`` and ``?before=``.

    Raises:
        BadRequest: naming the one that is not a positive whole number, or a limit that is too high.
    """
    limit = whole_number(request.query.get("limit"), "limit")
    before = whole_number(request.query.get("before"), "before")
    if limit is not None and not 1 <= limit <= MAX_LIMIT:
        raise BadRequest(f"limit must be from 1 to {MAX_LIMIT}")
    return limit or DEFAULT_LIMIT, before


def whole_number(text: str | None, name: str) -> int | None:
    """``text`` as a number that is not negative; None stays None.

    Raises:
        BadRequest: anything else.
    """
    if text is None:
        return None
    if _DIGITS.fullmatch(text) is None:
        raise BadRequest(f"{name} must be a whole number")
    return int(text)


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ask_json(card: Card) -> dict[str, object]:
    """An open ask as clients get it, in ``asks`` and as the data of the event ``ask``."""
    return {
        "id": card.id,
        "code": card.code,
        "request_id": card.request_id,
        "kind": card.kind.value,
        "title": card.title,
        "command": card.command or None,
        "reason": card.reason or None,
        "rules": list(card.rules),
        "impact": card.impact or None,
        "token": card.token or None,
        "choices": [{"value": choice.value, "label": choice.label} for choice in card.choices],
        "requested_by": card.requested_by or None,
        "origin": card.origin or None,
        "session": card.session or None,
        "expires_at": timestamp(card.expires_at),
    }


def session_json(row: SessionRow) -> dict[str, object]:
    """A session as listed."""
    return {"session": row.session, "title": row.title, "state": row.state, "last_at": timestamp(row.last_at)}


def history_json(history: History) -> dict[str, object]:
    """A page of history."""
    return {
        "messages": [
            {
                "id": row.id,
                "turn": row.turn or None,
                "role": row.role,
                "text": row.text,
                "at": timestamp(row.at),
                "status": row.status,
            }
            for row in history.messages
        ],
        "last_event_id": history.last_event_id,
        "asks": [ask_json(card) for card in history.asks],
    }


def frame(event: Event) -> bytes:
    """One event of a stream; only kept events have an id, so that a client never resumes from a passing one."""
    head = f"id: {event.id}\nevent: {event.type}\ndata: " if event.id else f"event: {event.type}\ndata: "
    return head.encode() + encode(event.data) + b"\n\n"
