"""A tree back to markdown, for the parts of a block that was cut; whole blocks are shown as they were written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
)

_DASHES = {"left": ":--", "right": "--:", "center": ":-:", "": "---"}


def to_source(blocks: Sequence[Block]) -> str:
    """Markdown of the blocks, with an empty line between them."""
    return "\n".join(_lines(blocks, tight=False))


def inline_source(nodes: Sequence[Inline]) -> str:
    """Markdown of inline nodes."""
    return "".join(_inline(node) for node in nodes)


def code_mark(fence: Fence) -> str:
    """The marker of a fence, longer than every run of it within the content."""
    mark = fence.mark or "```"
    longest = max((len(run[0]) for run in re.finditer(re.escape(mark[0]) + "{3,}", fence.content)), default=0)
    return mark[0] * max(len(mark), longest + 1) if longest else mark


def _inline(node: Inline) -> str:
    match node:
        case Text():
            return node.source or node.text
        case Code():
            pad = " " if node.text.startswith("`") or node.text.endswith("`") else ""
            return f"{node.mark}{pad}{node.text}{pad}{node.mark}"
        case Break():
            return "  \n" if node.hard else "\n"
        case Bold() | Italic() | Strike():
            return f"{node.mark}{inline_source(node.children)}{node.mark}"
        case _:
            if node.auto:
                return f"<{inline_source(node.children)}>"
            title = f' "{node.title}"' if node.title else ""
            href = f"<{node.href}>" if re.search(r"[\s()]", node.href) else node.href
            return f"{'!' if node.image else ''}[{inline_source(node.children)}]({href}{title})"


def _lines(blocks: Sequence[Block], *, tight: bool) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        if lines and not tight:
            lines.append("")
        lines += _block(block)
    return lines


def _block(block: Block) -> list[str]:  # noqa: PLR0911 - one for each kind
    match block:
        case Paragraph():
            return inline_source(block.content).split("\n")
        case Heading():
            return [f"{'#' * block.level} {inline_source(block.content)}".replace("\n", " ")]
        case Quote():
            return [f"> {line}".rstrip() for line in _lines(block.blocks, tight=False)]
        case Fence():
            mark = code_mark(block)
            return [f"{mark}{block.info}", *block.content.split("\n"), mark]
        case List():
            return _list(block)
        case Table():
            head = [] if block.continued else [_row(block.header), _cells(_DASHES[align] for align in block.aligns)]
            return [*head, *(_row(row) for row in block.rows)]
        case Rule():
            return ["---"]


def _list(block: List) -> list[str]:
    lines: list[str] = []
    number = block.start or 0
    for item in block.items:
        marker = f"{block.mark} " if block.start is None else f"{number}{block.mark} "
        indent = " " * len(marker)
        if item.continued:
            marker = indent
        else:
            number += 1
        if lines and not block.tight:
            lines.append("")
        first, *others = _lines(item.blocks, tight=block.tight) or [""]
        lines.append((marker + first).rstrip() if not first else marker + first)
        lines += [indent + line if line else "" for line in others]
    return lines


def _row(cells: Sequence[Inlines]) -> str:
    return _cells(inline_source(cell).replace("\n", " ") for cell in cells)


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
