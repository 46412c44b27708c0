"""Takes secrets out of text: every configured one, and whatever has the shape of one."""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

#: What stands in place of a secret.
MASK = "***"

#: Known secrets shorter than this are not looked for: ``abc`` occurs in too many words.
MIN_LENGTH = 6

#: Encoded forms shorter than this would match by chance.
_MIN_ENCODED = 8

#: A line of a secret of several lines counts as one by itself from this length on.
_MIN_LINE = 16

_WORDS = r"pass(?:word|wd|phrase)|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key|credentials?"

#: Shapes of secrets, each with texts of which one must occur (in lower case), so that most lines never meet a pattern.
#: Each repeats bounded pieces or single classes only: matching is linear in the text. A group named ``keep`` stays.
_SHAPES: tuple[tuple[tuple[str, ...], str], ...] = (
    # a PEM private key from its opening line to its end, or to the end of the text
    (
        ("private key-----",),
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?s:.)*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    ),
    ((":",), r"(?P<keep>:(?<=[0-9]{6}:))[A-Za-z0-9_-]{30,}"),  # Telegram bot, its public id stays
    (("xox", "xapp-"), r"\bxox[a-z]-[A-Za-z0-9-]{8,}|\bxapp-[A-Za-z0-9-]{8,}"),
    (("hooks.slack.com/",), r"(?P<keep>\bhooks\.slack\.com/services/)[A-Za-z0-9/_-]+"),
    (("sk-",), r"\bsk-[A-Za-z0-9_-]{12,}"),  # OpenAI, Anthropic and others that copied them
    (("gh", "glpat-"), r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"),
    (("akia", "asia"), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),  # AWS
    (("eyj",), r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?"),  # JSON web token
    (("bearer", "basic"), r"(?P<keep>(?i:\b(?:bearer|basic)\s{1,4}))[A-Za-z0-9._~+/=-]{8,}"),
    (("://",), r"(?P<keep>://[^/\s:@]{0,64}:)[^/\s@]{1,256}(?=@)"),  # password in an address
    (("code=", "key=", "sig=", "signature="), r"(?P<keep>[?&](?:code|key|sig|signature)=)[^&\s\"']{4,}"),
    (
        ("pass", "secret", "token", "key", "credential"),
        (
            rf"(?P<keep>(?i:{_WORDS})(?:[\"']|\\\")?\s{{0,4}}[=:]\s{{0,4}})"
            r"(?:\"[^\"\n]{1,4096}\"|'[^'\n]{1,4096}'|[^\s\"',;&}]+)"
        ),
    ),
)

_PATTERNS = tuple((hints, re.compile(pattern)) for hints, pattern in _SHAPES)
_SECRET_NAME = re.compile(rf"(?i)(?:{_WORDS}|authorization|cookie)$")


@functools.lru_cache(512)
def is_secret_name(name: str) -> bool:
    """Whether a field of that name holds a secret: ``password``, ``http_token``, ``Authorization``."""
    return _SECRET_NAME.search(name) is not None


class Redactor:
    """Replaces secrets by ``***``.

    The known ones are found literally, as JSON and Python escape them, URL-encoded, and inside base64 at any offset.
    Time is linear in the text.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: list[str] = []
        self.learn(*secrets)

    def learn(self, *secrets: str) -> None:
        """Look for these as well from now on, as for a token that was just made."""
        forms = {form for secret in secrets if len(secret) >= MIN_LENGTH for form in _forms(secret)}
        # the longest first: where one secret begins with another, the rest of the longer must not stay
        self._known = sorted({*self._known, *forms}, key=lambda form: (-len(form), form))

    def __call__(self, text: str) -> str:
        """``text`` without secrets."""
        text = self.known(text)
        lower = text.lower()
        for hints, pattern in _PATTERNS:
            if any(hint in lower for hint in hints):
                text = pattern.sub(_mask, text)
        return text

    def known(self, text: str) -> str:
        """``text`` without the known secrets; shapes are left alone."""
        for form in self._known:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def bounded(self, text: str, limit: int) -> str:
        """``text`` without secrets, cut to about ``limit`` characters.

        What lies beyond the limit is looked at too, as far as a secret can reach, so that none is left half.
        """
        if len(text) <= limit:
            return self(text)
        reach = limit + max(len(self._known[0]) if self._known else 0, 4096)
        return f"{self(text[:reach])[:limit]}... ({len(text):,} characters)"


def _mask(match: re.Match[str]) -> str:
    return (match.groupdict().get("keep") or "") + MASK


def _forms(secret: str) -> Iterable[str]:
    """The ways in which a secret appears in text."""
    yield secret
    # a key file is often shown line by line
    yield from (line.strip() for line in secret.splitlines() if len(line.strip()) >= _MIN_LINE)
    yield secret.encode("unicode_escape").decode()
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    raw = secret.encode("utf-8", "surrogatepass")
    yield quote(raw, safe="")
    yield quote(raw, safe="/")
    yield quote_plus(raw)
    for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            inner = _inside_base64(raw, offset, alphabet(b"\0" * offset + raw).decode())
            if len(inner) >= _MIN_ENCODED:
                yield inner


def _inside_base64(raw: bytes, offset: int, encoded: str) -> str:
    """The characters of ``encoded`` that depend on ``raw`` alone, whatever stands before and after it."""
    first = -(-offset * 8 // 6)
    last = (offset + len(raw)) * 8 // 6
    return encoded[first:last]
