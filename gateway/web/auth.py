"""Who makes a request: bearer tokens, one-time login links, and the cookie that a link is exchanged for.

Secrets are compared as digests in constant time, all of them each time, so that the time says nothing about which one
was nearly right. A cookie is signed with a key that is derived from its user's tokens: it survives a restart without
being stored anywhere, and is void as soon as those tokens change.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from agent.control.clock import Clock
from gateway.web.exceptions import WebRefused

COOKIE = "ostiary_session"
OWNER = "owner"
#: Seconds that a login link is valid; part of the published interface.
CODE_S = 600.0
#: Links that are open at once; the oldest gives way to a new one.
MAX_CODES = 16
#: Failed logins that are answered before the rest have to wait, and how many a second come back.
_FAILURES = 20
_REFILL_PER_S = 1 / 3


@dataclass(frozen=True, slots=True)
class Token:
    """A configured bearer token."""

    token: str = field(repr=False)
    user: str


class Tokens:
    """The bearer tokens and their users.

    Raises:
        WebRefused: a token or a user is empty, or one token names two users.
    """

    def __init__(self, tokens: Iterable[Token]) -> None:
        entries: dict[bytes, str] = {}
        for number, one in enumerate(tokens):
            if not one.token.strip() or not one.user:
                raise WebRefused(f"token {number} is empty or has no user; give it both, or remove it")
            digest = _digest(one.token)
            if entries.setdefault(digest, one.user) != one.user:
                raise WebRefused(f"{one.user} and {entries[digest]} have the same token; give each their own")
        self._entries = tuple(entries.items())

    def user_of(self, token: str) -> str | None:
        """The user whose token this is; an empty one is nobody's."""
        given = _digest(token)
        found: str | None = None
        for digest, user in self._entries:
            if hmac.compare_digest(digest, given):
                found = user
        return found if token else None

    def users(self) -> frozenset[str]:
        """Everybody who has a token."""
        return frozenset(user for _, user in self._entries)

    def cookie_key(self, user: str) -> bytes | None:
        """The key that signs the cookies of ``user``; another one as soon as their tokens are. None for a stranger."""
        mine = sorted(digest for digest, name in self._entries if name == user)
        if not mine:
            return None
        # The digests of the tokens would do as a key if they were not what a leak of this table shows first.
        return hmac.digest(b"".join(mine), b"ostiary cookie v1\0" + user.encode(), "sha256")


class LoginCodes:
    """One-time codes for the browser: single use, valid for :data:`CODE_S`, at most :data:`MAX_CODES` at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: dict[bytes, tuple[str, float]] = {}

    def new(self, user: str) -> str:
        """A code that lets its holder in as ``user``, once."""
        self._expire()
        while len(self._codes) >= MAX_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(24)
        self._codes[_digest(code)] = (user, self._clock.monotonic() + CODE_S)
        return code

    def take(self, code: str) -> str | None:
        """The user that ``code`` lets in; the code is used up. None for one that is unknown, used or too old."""
        self._expire()
        given = _digest(code)
        found = None
        for digest in self._codes:
            if hmac.compare_digest(digest, given):
                found = digest
        return None if found is None else self._codes.pop(found)[0]

    def _expire(self) -> None:
        now = self._clock.monotonic()
        for digest, (_, until) in list(self._codes.items()):
            if now >= until:
                del self._codes[digest]


class Cookies:
    """Signed cookies: ``v1.USER.EXPIRES.NONCE.SIGNATURE``."""

    def __init__(self, tokens: Tokens, clock: Clock, *, days: float) -> None:
        self._tokens = tokens
        self._clock = clock
        self.max_age_s = int(days * 86_400)

    def issue(self, user: str) -> str:
        """A cookie value for ``user``.

        Raises:
            LookupError: ``user`` has no token.
        """
        key = self._tokens.cookie_key(user)
        if key is None:
            raise LookupError(f"{user} has no token")
        expires = int(self._clock.now().timestamp()) + self.max_age_s
        payload = f"v1.{_b64(user.encode())}.{expires}.{secrets.token_urlsafe(9)}"
        return f"{payload}.{_sign(key, payload)}"

    def user_of(self, value: str) -> str | None:
        """The user of a cookie that is genuine and not too old; else None."""
        payload, _, signature = value.rpartition(".")
        parts = payload.split(".")
        if len(parts) != 4 or parts[0] != "v1":
            return None
        try:
            user = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)).decode()
            expires = int(parts[2])
        except (ValueError, binascii.Error):
            return None
        # A stranger's cookie is checked against a key too, so that the time does not tell who exists.
        key = self._tokens.cookie_key(user)
        genuine = hmac.compare_digest(_sign(key or b"nobody", payload).encode(), _as_bytes(signature))
        if not genuine or key is None or self._clock.now().timestamp() >= expires:
            return None
        return user


class Patience:
    """A bucket of failed logins: each one takes a drop, and an empty bucket makes everybody wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = float(_FAILURES)
        self._at = clock.monotonic()

    def wait_s(self) -> int:
        """Whole seconds until a login may be tried again; 0 for now."""
        now = self._clock.monotonic()
        self._left = min(float(_FAILURES), self._left + (now - self._at) * _REFILL_PER_S)
        self._at = now
        return 0 if self._left >= 1 else int((1 - self._left) / _REFILL_PER_S) + 1

    def failed(self) -> None:
        """Note a failed login."""
        self._left -= 1


class Auth:
    """Everything that tells who makes a request.

    Args:
        owner_token: content of the home's ``http_token``, the bearer token of user ``owner``.
        tokens: the configured ones, ``adapters.http.tokens``.
        cookie_days: ``adapters.http.cookie_days``.

    Attributes:
        configured: whether there are tokens beside the owner's.

    Raises:
        WebRefused: a token is empty, or belongs to two users.
    """

    def __init__(self, *, owner_token: str, tokens: Iterable[Token], clock: Clock, cookie_days: float = 30) -> None:
        given = tuple(tokens)
        if not owner_token.strip():
            raise WebRefused("http_token is empty; remove the file, and the next start makes a new one")
        self.configured = bool(given)
        self.tokens = Tokens((Token(owner_token.strip(), OWNER), *given))
        self.codes = LoginCodes(clock)
        self.cookies = Cookies(self.tokens, clock, days=cookie_days)
        self.patience = Patience(clock)

    def user_of(self, authorization: list[str], cookie: str | None) -> str | None:
        """The user behind a request's ``Authorization`` headers, or without any, its cookie."""
        if authorization:
            if len(authorization) > 1:
                return None
            scheme, _, token = authorization[0].partition(" ")
            return self.tokens.user_of(token.strip()) if scheme.lower() == "bearer" else None
        return self.cookies.user_of(cookie) if cookie else None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(_as_bytes(secret)).digest()


def _as_bytes(text: str) -> bytes:
    # Total on purpose: whatever a header or an address held compares as unequal instead of raising.
    return text.encode("utf-8", "backslashreplace")


def _sign(key: bytes, payload: str) -> str:
    return _b64(hmac.digest(key, _as_bytes(payload), "sha256"))


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
