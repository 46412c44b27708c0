"""Text with entities: what the server reads out of HTML, and what it finds by itself in what people type."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Any

from adapters.testing.telegram.exceptions import BadMarkup

Entity = dict[str, Any]

#: Tags of parse mode HTML and the entity that each stands for (Bot API, "HTML style").
_TAGS = {
    "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
    "s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler",
    "span": "spoiler", "a": "text_link", "code": "code", "pre": "pre", "blockquote": "blockquote",
    "tg-emoji": "custom_emoji",
}  # fmt: skip

_TAG = re.compile(r"<(/?)([a-zA-Z0-9-]*)((?:\s[^<>]*)?)>", re.ASCII)
_REFERENCE = re.compile(r"&(?:(lt|gt|amp|quot)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_ATTRIBUTE = re.compile(r"""([a-zA-Z-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")

#: What the server marks in plain text. A mail address is one entity, so that no mention is found inside it.
_FOUND = re.compile(
    r"(?P<email>[\w.+-]+@[\w-]+\.[\w.-]+)"
    r"|(?<!\w)(?P<mention>@[A-Za-z][A-Za-z0-9_]{2,31})(?!\w)"
    r"|(?:(?<=\s)|^)(?P<bot_command>/[A-Za-z0-9_]{1,32}(?:@[A-Za-z0-9_]{3,32})?)(?![\w/])",
    re.ASCII | re.MULTILINE,
)


def utf16(text: str) -> int:
    """Length in UTF-16 code units, in which the Bot API counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def found(text: str) -> list[Entity]:
    """The entities that the server makes of what a person types."""
    return [
        {"type": match.lastgroup, "offset": utf16(text[: match.start()]), "length": utf16(match[0])}
        for match in _FOUND.finditer(text)
    ]


@dataclass
class _Open:
    tag: str
    entity: Entity


@dataclass
class _Parse:
    """One run over a text in parse mode HTML."""

    source: str
    out: list[str] = field(default_factory=list)
    length: int = 0
    open: list[_Open] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)

    def run(self) -> tuple[str, list[Entity]]:
        at = 0
        while at < len(self.source):
            char = self.source[at]
            if char == "<":
                at = self._tag(at)
            elif char == "&":
                at = self._reference(at)
            else:
                self._put(char)
                at += 1
        if self.open:
            raise BadMarkup(f'Can\'t find end tag corresponding to start tag "{self.open[-1].tag}"')
        self.entities.sort(key=lambda entity: (entity["offset"], -entity["length"]))
        return "".join(self.out), self.entities

    def _put(self, text: str) -> None:
        self.out.append(text)
        self.length += utf16(text)

    def _reference(self, at: int) -> int:
        match = _REFERENCE.match(self.source, at)
        if match is None:
            self._put("&")
            return at + 1
        self._put(html.unescape(match[0]))
        return match.end()

    def _tag(self, at: int) -> int:
        place = len(self.source[:at].encode())
        match = _TAG.match(self.source, at)
        if match is None:
            raise BadMarkup(f"Unclosed start tag at byte offset {place}")
        closing, tag, rest = match[1], match[2].lower(), match[3]
        if tag not in _TAGS:
            raise BadMarkup(f'Unsupported start tag "{tag}" at byte offset {place}')
        if closing:
            self._close(tag, place)
        else:
            self._begin(tag, rest, place)
        return match.end()

    def _begin(self, tag: str, rest: str, place: int) -> None:
        attributes = {name.lower(): html.unescape(a or b or c) for name, a, b, c in _ATTRIBUTE.findall(rest)}
        entity: Entity = {"type": _TAGS[tag], "offset": self.length}
        if tag == "span" and attributes.get("class") != "tg-spoiler":
            raise BadMarkup(f'Tag "span" must have class "tg-spoiler" at byte offset {place}')
        if tag == "a":
            entity["url"] = attributes.get("href", "")
        if tag == "blockquote" and "expandable" in attributes:
            entity["type"] = "expandable_blockquote"
        language = attributes.get("class", "").removeprefix("language-") if tag == "code" else ""
        if language and self.open and self.open[-1].tag == "pre":
            self.open[-1].entity["language"] = language
        self.open.append(_Open(tag, entity))

    def _close(self, tag: str, place: int) -> None:
        if not self.open:
            raise BadMarkup(f"Unexpected end tag at byte offset {place}")
        last = self.open.pop()
        if last.tag != tag:
            raise BadMarkup(f'Unmatched end tag at byte offset {place}, expected "</{last.tag}>", found "</{tag}>"')
        entity = last.entity
        entity["length"] = self.length - entity["offset"]
        inside_pre = tag == "code" and bool(self.open) and self.open[-1].tag == "pre"
        if entity["length"] and not inside_pre and entity.get("url") != "":
            self.entities.append(entity)


def parse(text: str, mode: str | None) -> tuple[str, list[Entity]]:
    """Text and entities of a message that a bot sends.

    Raises:
        BadMarkup: it does not parse, or the mode is not one that this fake knows (``HTML`` or none).
    """
    if not mode:
        return text, found(text)
    if mode.upper() != "HTML":
        raise BadMarkup(f"unsupported parse_mode {mode}")
    return _Parse(text).run()
