"""What every request passes before its handler: Host, origin, token; and what every response carries.

The order is fixed: a request under a foreign name is turned away first, then one from a foreign page, then one without
a token. Unknown paths come last, so that strangers learn nothing about which exist.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from adapters.http.exceptions import ApiError, Forbidden, NotFound, TooLarge, Unauthorized
from adapters.http.ports import CALLER, Caller
from adapters.http.wire import MAX_BODY, refusal, reply
from gateway.web.auth import COOKIE, OWNER, Auth
from gateway.web.hosts import Hosts, same_origin

#: Paths that anybody may ask for; everything below ``/static/`` is public too.
PUBLIC = frozenset({"/healthz", "/readyz", "/login"})
#: The page itself, which tells a stranger how to get in.
PAGES = frozenset({"/"})

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "ostiary",
}

log = structlog.get_logger(__name__)


class WrongHost(ApiError):
    """The request was meant for another name than this gateway's."""

    status = 421
    code = "wrong_host"


class MethodNotAllowed(ApiError):
    """The path exists, but not for this method."""

    status = 405
    code = "method_not_allowed"


class Internal(ApiError):
    """A fault of the gateway's; the message holds the id under which it was logged."""


def tcp_door(
    hosts: Hosts,
    auth: Auth,
    signed: Collection[str],
    locked: Handler,
    unfinished: set[asyncio.Task[web.StreamResponse]],
) -> Middleware:
    """The middleware of the TCP listener.

    Args:
        hosts: the names that it answers to.
        auth: who has which token or cookie.
        signed: paths whose handlers check a signature themselves; they need no token, and are not interrupted when
            the platform that calls hangs up.
        locked: answers a stranger who asks for a page.
        unfinished: holds the handlers of ``signed`` paths that are under way; its owner awaits them at the end.
    """
    signed_paths = frozenset(signed)

    def admit(request: web.Request) -> bool:
        """Let the request in, or raise; False for a page that the caller may not see."""
        if not hosts.ours(request):
            raise WrongHost(
                "this gateway does not answer to that name; if it should, add it to adapters.http.allowed_hosts"
            )
        if not same_origin(request):
            raise Forbidden("a page of another origin may not do this")
        user = auth.user_of(request.headers.getall("Authorization", []), request.cookies.get(COOKIE))
        if user is not None:
            request[CALLER] = Caller(user=user)
            return True
        path = request.path
        if path in PUBLIC or path in signed_paths or path.startswith("/static/"):
            return True
        if path in PAGES:
            return False
        raise Unauthorized("a token is needed: Authorization: Bearer TOKEN, or a link from `ostiary link`")

    @web.middleware
    async def door(request: web.Request, handler: Handler) -> web.StreamResponse:
        async def past_the_door(request: web.Request) -> web.StreamResponse:
            return await (handler if admit(request) else locked)(request)

        if request.path not in signed_paths:
            return await _answered(request, past_the_door)
        task = asyncio.create_task(_answered(request, past_the_door), name=f"webhook {request.path}")
        unfinished.add(task)
        task.add_done_callback(unfinished.discard)
        return await asyncio.shield(task)

    return door


def control_door() -> Middleware:
    """The middleware of ``control.sock``: who can open the socket's file is user ``owner``."""

    @web.middleware
    async def door(request: web.Request, handler: Handler) -> web.StreamResponse:
        request[CALLER] = Caller(user=OWNER)
        return await _answered(request, handler)

    return door


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:  # noqa: ARG001 - aiohttp's signal
    """Give each response the headers that keep browsers strict; for ``Application.on_response_prepare``."""
    for name, value in _HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The handler's response, or the JSON that says what went wrong."""
    try:
        return await handler(request)
    except ApiError as error:
        return refusal(error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _as_json(error)
    except Exception as error:
        if isinstance(error, ConnectionError) and (request.transport is None or request.transport.is_closing()):
            raise  # the client has gone; aiohttp ends the connection
        return _failed(request, error)


def _as_json(error: web.HTTPException) -> web.Response:
    """Errors of aiohttp in the shape of ours."""
    match error:
        case web.HTTPRequestEntityTooLarge():
            return refusal(TooLarge(f"the body is over {MAX_BODY} bytes"))
        case web.HTTPNotFound():
            return refusal(NotFound("there is no such path"))
        case web.HTTPMethodNotAllowed():
            response = refusal(MethodNotAllowed(f"{error.method} is not possible here"))
            response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
            return response
    code = error.reason.lower().replace(" ", "_")
    return reply({"error": {"code": code, "message": error.reason}}, error.status)


def _failed(request: web.Request, error: Exception) -> web.StreamResponse:
    """Log a fault once, under an id that the client is given too."""
    fault_id = secrets.token_hex(8)
    resource = request.match_info.route.resource
    log.error(
        "request_failed",
        fault_id=fault_id,
        method=request.method,
        route=resource.canonical if resource is not None else "",
        exc_info=error,
    )
    if request.writer.output_size > 0:
        # The response has begun and cannot become another one: a broken connection is the only sign left.
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)
    return refusal(Internal(f"something went wrong here; the log has it under {fault_id}"))
