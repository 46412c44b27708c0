"""The markdown tree as Telegram's HTML.

The rules are those of the Bot API, "Formatting options": a dozen tags; ``<``, ``>`` and ``&`` escaped; bold, italic and
strike-through nest, but hold no code; ``pre`` stands in nothing; quotes do not nest. What Telegram has no form for is
shown with letters: bullets, indentation, tables as aligned columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from adapters.text.split import Renderer
from adapters.text.tree import (
    Block,
    Bold,
    Break,
    Code,
    Fence,
    Heading,
    Inline,
    Inlines,
    Italic,
    List,
    Paragraph,
    Quote,
    Rule,
    Strike,
    Table,
    Text,
    inline_text,
    table_as_list,
)
from adapters.text.units import columns, utf16_len

#: Formatted ranges of a message that Telegram keeps; it drops those beyond silently.
MOST_ENTITIES: Final = 100
#: Characters of HTML for a UTF-16 unit shown, and what any message may have.
_MARKUP_SHARE: Final = 4
_MARKUP_FLOOR: Final = 4096
#: Targets that Telegram makes a link of; others are shown beside the label.
_LINKED = re.compile(r"(?:https?://|tg://|mailto:)\S", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9+#._-]{0,31}(?=[\s,{:]|\Z)")
_TAG = re.compile(r"<[^>]*>")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&"))
_RULE = "———"
_INDENT = "  "


def escape(text: str) -> str:
    """Text for Telegram's HTML, between tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_attribute(text: str) -> str:
    """Text for Telegram's HTML, between the quotation marks of an attribute."""
    return escape(text).replace('"', "&quot;")


class TelegramHTML:
    """Renders for ``parse_mode=HTML``; has no state."""

    def render(self, blocks: Sequence[Block]) -> str:
        """The blocks as HTML with an empty line between them."""
        return "".join(_joined(_units(blocks, _Place())))

    def visible(self, text: str) -> str:
        """What Telegram shows, which is what it counts."""
        shown = _TAG.sub("", text)
        for written, letter in _ENTITIES:
            shown = shown.replace(written, letter)
        return shown

    def load(self, text: str, limit: int) -> float:
        """The share of Telegram's limits that text, HTML and the number of formatted ranges take."""
        ranges = text.count("<") - text.count("</") - text.count("<pre><code")
        return max(
            utf16_len(self.visible(text)) / limit,
            len(text) / max(limit * _MARKUP_SHARE, _MARKUP_FLOOR),
            ranges / MOST_ENTITIES,
        )


HTML: Final[Renderer] = TelegramHTML()


@dataclass(frozen=True, slots=True)
class _Unit:
    """Lines that stand together.

    Attributes:
        html: complete in itself.
        gap: line ends before it, if it is not the first.
        quote: number of the quote that it belongs to; 0 for none.
    """

    html: str
    gap: int
    quote: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where blocks stand.

    Attributes:
        first: what the first line begins with: indentation and perhaps a marker.
        others: what the other lines begin with.
        gap: line ends before the first block, and ``between`` those between the blocks.
        quote: number of the quote around; 0 for none.
        listed: within a list.
    """

    first: str = ""
    others: str = ""
    gap: int = 2
    between: int = 2
    quote: int = 0
    listed: bool = False


def _joined(units: Iterable[_Unit]) -> Iterator[str]:
    """The units with the ends of lines between them, those of one quote within one tag."""
    quote = 0
    for index, unit in enumerate(units):
        if quote and unit.quote != quote:
            yield "</blockquote>"
        if index:
            yield "\n" * unit.gap
        if unit.quote and unit.quote != quote:
            yield "<blockquote>"
        quote = unit.quote
        yield unit.html
    if quote:
        yield "</blockquote>"


def _units(blocks: Sequence[Block], place: _Place) -> Iterator[_Unit]:
    """Units of blocks in a place; a marker that no line of prose takes stands on a line of its own."""
    quotes = 0
    for block in blocks:
        if isinstance(block, Quote) and not place.quote:
            quotes += 1
        empty = True
        for unit in _block(block, place, quotes):
            empty = False
            yield unit
        if not empty:
            place = replace(place, first=place.others, gap=place.between)
    if place.first != place.others:
        yield _Unit(escape(place.first.rstrip()), place.gap, place.quote)


def _block(block: Block, place: _Place, quotes: int) -> Iterator[_Unit]:
    match block:
        case Paragraph():
            yield from _prose(block.content, place)
        case Heading():
            yield from _prose((Bold(block.content),), place)
        case Rule():
            yield _Unit(place.first + _RULE, place.gap, place.quote)
        case Fence():
            yield from _preformatted(block.content, place, _language(block.info))
        case List():
            yield from _list(block, place)
        case Table():
            if block.fits_aligned:
                yield from _preformatted("\n".join(_aligned(block)), place, "")
            else:
                yield from _list(table_as_list(block), place)
        case Quote():
            yield from _quote(block, place, quotes)


def _quote(block: Quote, place: _Place, number: int) -> Iterator[_Unit]:
    if place.quote:
        inner = replace(place, first=place.first + _INDENT, others=place.others + _INDENT)
        yield from _units(block.blocks, inner)
        return
    units = list(_units(block.blocks, _Place(quote=number)))
    if not units:
        return
    if place.first != place.others:
        yield _Unit(place.first.rstrip(), place.gap)
        place = replace(place, gap=1)
    yield replace(units[0], gap=place.gap)
    yield from units[1:]


def _prose(content: Inlines, place: _Place) -> Iterator[_Unit]:
    html = _html(_runs(content, ()), place.others)
    if html:
        yield _Unit(escape(place.first) + html, place.gap, place.quote)


def _preformatted(content: str, place: _Place, language: str) -> Iterator[_Unit]:
    if not content:
        return
    if place.first != place.others and place.first.strip():
        yield _Unit(escape(place.first.rstrip()), place.gap, place.quote)
        place = replace(place, gap=1)
    code = escape(content)
    if language:
        code = f'<code class="language-{language}">{code}</code>'
    yield _Unit(f"<pre>{code}</pre>", place.gap)


def _language(info: str) -> str:
    found = _LANGUAGE.match(info)
    return found[0] if found else ""


def _list(block: List, place: _Place) -> Iterator[_Unit]:
    base = place.others + (_INDENT if place.listed else "")
    first = place.first + (_INDENT if place.listed and place.first == place.others else "")
    number = block.start or 0
    between = 1 if block.tight else 2
    for item in block.items:
        marker = "" if item.continued else "• " if block.start is None else f"{number}{block.mark} "
        number += not item.continued
        inner = _Place(first + (marker or _INDENT), base + _INDENT, place.gap, between, quote=place.quote, listed=True)
        yield from _units(item.blocks, inner)
        first = base
        place = replace(place, gap=between)


def _aligned(table: Table) -> Iterator[str]:
    """Rows of a table with each cell padded to its column."""
    if not table.continued:
        yield _row(table.header, table)
        yield "-+-".join("-" * width for width in table.widths)
    for row in table.rows:
        yield _row(row, table)


def _row(cells: Sequence[Inlines], table: Table) -> str:
    return " | ".join(
        _padded(inline_text(cell).replace("\n", " "), width, align)
        for cell, width, align in zip(cells, table.widths, table.aligns, strict=True)
    ).rstrip()


def _padded(text: str, width: int, align: str) -> str:
    space = max(0, width - columns(text))
    before = space if align == "right" else space // 2 if align == "center" else 0
    return " " * before + text + " " * (space - before)


#: A tag with its attributes, and letters within tags, outermost first.
_Tags = tuple[tuple[str, str], ...]
_Run = tuple[_Tags, str]


def _runs(nodes: Iterable[Inline], tags: _Tags) -> Iterator[_Run]:
    """The letters of inline nodes with the tags around them."""
    for node in nodes:
        match node:
            case Text():
                yield tags, node.text
            case Break():
                yield tags, "\n"
            case Code():
                # code holds no other formatting and stands in none; within a link it is a label
                yield (tags if _within("a", tags) else (("code", ""),)), node.text
            case Bold():
                yield from _runs(node.children, _with("b", tags))
            case Italic():
                yield from _runs(node.children, _with("i", tags))
            case Strike():
                yield from _runs(node.children, _with("s", tags))
            case _:
                target = _target(node.href)
                if _within("a", tags):
                    yield from _runs(node.children, tags)
                elif target:
                    yield from _runs(node.children, (*tags, ("a", f' href="{escape_attribute(target)}"')))
                else:
                    yield from _runs(node.children, tags)
                    if inline_text(node.children) != node.href:
                        yield tags, f" ({node.href})" if node.href else " ()"


def _within(name: str, tags: _Tags) -> bool:
    return any(tag == name for tag, _ in tags)


def _with(name: str, tags: _Tags) -> _Tags:
    return tags if _within(name, tags) else (*tags, (name, ""))


def _target(href: str) -> str:
    """The target of a link that Telegram makes, empty where it makes none."""
    href = _UNPRINTABLE.sub(lambda found: f"%{ord(found[0]):02X}", href)
    return href if _LINKED.match(href) else ""


def _html(runs: Iterable[_Run], indent: str) -> str:
    """Runs as HTML; a tag stays open over neighbours that share it."""
    parts: list[str] = []
    opened: _Tags = ()
    for tags, text in runs:
        if not text:
            continue
        shared = 0
        while shared < min(len(opened), len(tags)) and opened[shared] == tags[shared]:
            shared += 1
        parts += [f"</{name}>" for name, _ in opened[shared:][::-1]]
        parts += [f"<{name}{attributes}>" for name, attributes in tags[shared:]]
        parts.append(escape(text.replace("\n", "\n" + indent)))
        opened = tags
    parts += [f"</{name}>" for name, _ in opened[::-1]]
    return "".join(parts)
