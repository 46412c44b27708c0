"""A strict reader of Telegram's HTML, written from the Bot API's "Formatting options" and not from our renderer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(r"<(?P<end>/?)(?P<tag>[a-z]+)(?P<attributes>(?: [a-z]+=\"[^\"<>]*\")*)>|(?P<text>[^<>]+)")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot);")
_LETTER = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"'}
_STYLES = {"b", "i", "s", "u"}
_ATTRIBUTE = re.compile(r' ([a-z]+)="([^"]*)"')


class NotTelegramHTML(AssertionError):
    """The Bot API would refuse the text, or show it in another way than was meant."""


@dataclass
class Read:
    """What the Bot API makes of a text: letters, and ranges as tag, start, end, attribute value."""

    text: str = ""
    entities: list[tuple[str, int, int, str]] = field(default_factory=list)


def read(html: str) -> Read:
    """Parse a message.

    Raises:
        NotTelegramHTML: an unknown tag or attribute, an unescaped character, tags that do not balance, nest in a way
            that Telegram has not, or hold nothing.
    """
    result = Read()
    opened: list[tuple[str, int, str]] = []
    at = 0
    while at < len(html):
        token = _TOKEN.match(html, at)
        if token is None:
            raise NotTelegramHTML(f"at {at}: {html[at : at + 40]!r}")
        at = token.end()
        if token["text"] is not None:
            result.text += _letters(token["text"])
        elif token["end"]:
            if not opened or opened[-1][0] != token["tag"] or token["attributes"]:
                raise NotTelegramHTML(f"{token[0]} closes {opened}")
            tag, start, value = opened.pop()
            if start == len(result.text):
                raise NotTelegramHTML(f"empty {tag}")
            result.entities.append((tag, start, len(result.text), value))
        else:
            value = _opening(token["tag"], token["attributes"], [tag for tag, _, _ in opened])
            opened.append((token["tag"], len(result.text), value))
    if opened:
        raise NotTelegramHTML(f"not closed: {opened}")
    return result


def _letters(text: str) -> str:
    if "&" in _ENTITY.sub("", text):
        raise NotTelegramHTML(f"bare & in {text[:60]!r}")
    return _ENTITY.sub(lambda found: _LETTER[found[0]], text)


def _opening(tag: str, attributes: str, around: list[str]) -> str:
    given = dict(_ATTRIBUTE.findall(attributes))
    inside = set(around)
    match tag:
        case "b" | "i" | "s" | "u":
            good = not given and not inside & {"code", "pre", tag}
        case "a":
            good = set(given) == {"href"} and inside <= _STYLES | {"blockquote"}
        case "blockquote":
            good = not given and not inside
        case "pre":
            good = not given and not inside
        case "code" if around[-1:] == ["pre"]:
            good = set(given) == {"class"} and bool(re.fullmatch(r"language-[A-Za-z0-9+#._-]+", given["class"]))
        case "code":
            good = not given and inside <= {"blockquote"}
        case _:
            good = False
    if not good:
        raise NotTelegramHTML(f"<{tag}{attributes}> within {around}")
    return _letters(next(iter(given.values()), ""))
