"""A formatted text as a small immutable tree, the same for every platform.

::

    Document
    +-- Block    Paragraph Heading Quote List(Item) Fence Table Rule
        +-- Inline   Text Code Break  Bold Italic Strike Link
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

#: Columns of a monospace font that a message shows on a desktop without wrapping its lines.
WIDEST_TABLE: Final = 60


@dataclass(frozen=True, slots=True)
class Text:
    r"""Letters as a reader sees them.

    Attributes:
        source: how they were written where that differs (``\*``, ``&amp;``); such a text is never cut.
    """

    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Code within a line; ``mark`` is the run of backticks around it."""

    text: str
    mark: str = "`"


@dataclass(frozen=True, slots=True)
class Break:
    """The end of a line within a paragraph; ``hard`` where the author insisted."""

    hard: bool = False


@dataclass(frozen=True, slots=True)
class Bold:
    """Strong emphasis."""

    children: tuple[Inline, ...]
    mark: str = "**"


@dataclass(frozen=True, slots=True)
class Italic:
    """Emphasis."""

    children: tuple[Inline, ...]
    mark: str = "*"


@dataclass(frozen=True, slots=True)
class Strike:
    """Text struck through."""

    children: tuple[Inline, ...]
    mark: str = "~~"


@dataclass(frozen=True, slots=True)
class Link:
    """A link, or an image by reference; the label is never empty.

    Attributes:
        href: the target as it was written.
        auto: written as ``<https://...>``.
        image: written as ``![label](href)``.
    """

    children: tuple[Inline, ...]
    href: str
    title: str = ""
    auto: bool = False
    image: bool = False


Inline: TypeAlias = Text | Code | Break | Bold | Italic | Strike | Link
Inlines: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines of prose."""

    content: Inlines


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    content: Inlines


@dataclass(frozen=True, slots=True)
class Quote:
    """Quoted blocks."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list; ``continued`` when it began in an earlier message and so has no marker."""

    blocks: tuple[Block, ...]
    continued: bool = False


@dataclass(frozen=True, slots=True)
class List:
    """A list.

    Attributes:
        start: number of the first item that is not ``continued``; None for bullets.
        mark: the bullet, or what follows the number.
        tight: no blank lines between the items.
    """

    items: tuple[Item, ...]
    start: int | None = None
    mark: str = "-"
    tight: bool = True


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code, to the character; ``content`` has no final line end.

    Attributes:
        info: what follows the opening marker, usually the language.
        mark: the marker; empty for code by indentation.
    """

    content: str
    info: str = ""
    mark: str = "```"


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        aligns: ``left``, ``right``, ``center`` or empty, one a column.
        widths: columns of a monospace font that each column of the whole table needs, also in a part of it.
        links: some cell of the whole table holds a link.
        continued: the header was shown in an earlier message.
    """

    header: tuple[Inlines, ...]
    rows: tuple[tuple[Inlines, ...], ...]
    aligns: tuple[str, ...]
    widths: tuple[int, ...]
    links: bool = False
    continued: bool = False

    @property
    def width(self) -> int:
        """Columns of a line with three between two cells."""
        return sum(self.widths) + 3 * (len(self.widths) - 1)

    @property
    def fits_aligned(self) -> bool:
        """Whether it can be shown as aligned columns; else, as it is too wide or has links, as a list."""
        return not self.links and self.width <= WIDEST_TABLE


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across."""


Block: TypeAlias = Paragraph | Heading | Quote | List | Fence | Table | Rule


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed text.

    Attributes:
        source: the text it was made from, line ends and unusable characters put right.
        blocks: what it consists of.
        spans: for each block the lines of ``source`` that it was made from: first, and the one after the last.
    """

    source: str
    blocks: tuple[Block, ...]
    spans: tuple[tuple[int, int], ...]


def inline_text(nodes: Sequence[Inline], most: int | None = None) -> str:
    """The letters of inline nodes, a break as a line end; no more than ``most`` of them."""
    parts: list[str] = []
    have = 0
    for node in nodes:
        if most is not None and have >= most:
            break
        if isinstance(node, (Text, Code)):
            part = node.text if most is None else node.text[: most - have]
        elif isinstance(node, Break):
            part = "\n"
        else:
            part = inline_text(node.children, None if most is None else most - have)
        parts.append(part)
        have += len(part)
    return "".join(parts)


def has_link(nodes: Sequence[Inline]) -> bool:
    """Whether a link or an image is among the nodes."""
    return any(
        isinstance(node, Link) or (isinstance(node, (Bold, Italic, Strike)) and has_link(node.children))
        for node in nodes
    )


def table_as_list(table: Table) -> List:
    """A list with an item a row, each cell on a line after the name of its column, for tables too wide to align."""
    items = []
    for row in table.rows or ((),):
        lines: list[Inline] = []
        cells = row if table.rows else table.header
        for column, cell in enumerate(cells):
            name = table.header[column] if table.rows else ()
            if not cell and not name:
                continue
            if lines:
                lines.append(Break(hard=True))
            if name:
                lines += [*name, Text(": " if cell else ":")]
            lines += cell
        if lines:
            items.append(Item((Paragraph(tuple(lines)),)))
    return List(tuple(items))
