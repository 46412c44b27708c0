"""What a request over HTTP can be refused for.

::

    ApiError
    +-- BadRequest          400  the request does not say what it must; the message names the field
    +-- Unauthorized        401  nobody is behind the request
    +-- Forbidden           403  not theirs to do
    +-- NotFound            404  no such session, ask or path, or not theirs
    +-- TimedOut            408  the body did not arrive in time
    +-- Settled             409  the ask has ended; ``outcome`` says how
    +-- Expired             410  the ask timed out
    +-- TooLarge            413  the body is over the limit
    +-- QueueFull           429  the session's queue is full; nothing was accepted
    +-- TooManyStreams      429  the caller holds too many streams open
    +-- Unavailable         503  nothing was accepted; the same request may be made again
"""

from __future__ import annotations


class ApiError(Exception):
    """A request that is answered with an error.

    Attributes:
        status: the HTTP status.
        code: the stable word that clients test for.
        message: one sentence for people.
        retry_after_s: seconds for ``Retry-After``; 0 for none.
        outcome: how an ask ended; empty for everything else.
    """

    status = 500
    code = "internal"

    def __init__(self, message: str, *, retry_after_s: int = 0, outcome: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s
        self.outcome = outcome


class BadRequest(ApiError):
    """The request does not say what it must; the message names the field."""

    status = 400
    code = "bad_request"


class Unauthorized(ApiError):
    """Nobody is behind the request."""

    status = 401
    code = "unauthorized"


class Forbidden(ApiError):
    """Not theirs to do."""

    status = 403
    code = "forbidden"


class NotFound(ApiError):
    """No such session, ask or path, or not theirs."""

    status = 404
    code = "not_found"


class TimedOut(ApiError):
    """The body did not arrive in time."""

    status = 408
    code = "bad_request"


class Settled(ApiError):
    """The ask has ended otherwise than by its deadline."""

    status = 409
    code = "settled"


class Expired(ApiError):
    """The ask timed out."""

    status = 410
    code = "expired"


class TooLarge(ApiError):
    """The body is over the limit."""

    status = 413
    code = "too_large"


class QueueFull(ApiError):
    """The session's queue is full; nothing was accepted."""

    status = 429
    code = "queue_full"


class TooManyStreams(ApiError):
    """The caller holds too many streams open."""

    status = 429
    code = "too_many_streams"


class Unavailable(ApiError):
    """Nothing was accepted; the same request may be made again."""

    status = 503
    code = "unavailable"
