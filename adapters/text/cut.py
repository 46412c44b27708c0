"""Cut a block so that its head fits into a message and nothing is lost.

Room is counted in UTF-16 units of what was written, which is never much less than what is shown: a renderer's own
measure has the last word, see :mod:`.split`. Whatever is looked at is bounded by the room, so cutting a long text into
many messages takes time in proportion to its length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from adapters.text.cut_inline import cut_inlines, fit, fitting
from adapters.text.source import inline_source
from adapters.text.tree import (
    Block,
    Fence,
    Heading,
    Item,
    List,
    Paragraph,
    Quote,
    Rule,
    Table,
    table_as_list,
)
from adapters.text.units import cut_utf16, grapheme_start, utf16_len

#: Units between two blocks: an empty line.
GAP: Final = 2
#: Units that an item's marker and a quote's mark take, and by which their lines are set in.
_ITEM_INDENT: Final = 6
_QUOTE_INDENT: Final = 2
_RULE: Final = 3
#: A block that must be cut anyway begins in the current message if this share of a message is left.
_WORTHWHILE: Final = 4


class Cutter:
    """Cuts blocks for messages of ``full`` units."""

    def __init__(self, full: int) -> None:
        self._full = full

    def take(
        self, blocks: Sequence[Block], room: int, *, indent: int = 0, fresh: bool = True
    ) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
        """As many blocks as ``room`` has space for, and the rest; one block may be parted between the two.

        Args:
            blocks: what is to be shown, in order.
            room: units left in the message.
            indent: units that each line is set in.
            fresh: nothing stands in the message yet, so that waiting for a fresh one gains nothing.
        """
        taken: list[Block] = []
        for index, block in enumerate(blocks):
            left = room - (GAP if taken else 0)
            cost = _cost(block, left, indent)
            if cost <= left:
                taken.append(block)
                room = left - cost
                continue
            head, rest = self._part(block, left, indent, fresh=fresh and not taken)
            if head is not None:
                taken.append(head)
            # a heading stays with what it heads
            if head is None and len(taken) > 1 and isinstance(taken[-1], Heading):
                return tuple(taken[:-1]), (taken[-1], *blocks[index:])
            return tuple(taken), (*(() if rest is None else (rest,)), *blocks[index + 1 :])
        return tuple(taken), ()

    def _part(  # noqa: PLR0911 - one for each kind
        self, block: Block, room: int, indent: int, *, fresh: bool
    ) -> tuple[Block | None, Block | None]:
        """The part of a block that does not fit whole, None where it should begin in a fresh message, and the rest."""
        if isinstance(block, Quote):
            inside, rest = self.take(block.blocks, room - _QUOTE_INDENT, indent=indent + _QUOTE_INDENT, fresh=fresh)
            if not inside:
                return None, block
            return Quote(inside), Quote(rest) if rest else None
        if isinstance(block, List):
            return self._part_of_list(block, room, indent, fresh=fresh)
        if not fresh:
            full = self._full - indent
            if room * _WORTHWHILE < self._full or _cost(block, full, indent) <= full:
                return None, block
        match block:
            case Paragraph() | Heading():
                head, rest_of_line = cut_inlines(block.content, room, indent)
                if not head:
                    return None, block
                return (
                    dataclasses.replace(block, content=head),
                    dataclasses.replace(block, content=rest_of_line) if rest_of_line else None,
                )
            case Fence():
                return _cut_fence(block, room, indent)
            case Table():
                return self._part_of_table(block, room, indent, fresh=fresh)
            case Rule():
                return None, block

    def _part_of_list(self, block: List, room: int, indent: int, *, fresh: bool) -> tuple[List | None, List | None]:
        gap = 1 if block.tight else GAP
        indent += _ITEM_INDENT
        taken: list[Item] = []
        rest: tuple[Item, ...] = ()
        for index, item in enumerate(block.items):
            left = room - _ITEM_INDENT - (gap if taken else 0)
            cost = _blocks_cost(item.blocks, left, indent)
            if cost <= left:
                taken.append(item)
                room = left - cost
                continue
            first = fresh and not taken
            full = self._full - indent
            rest = block.items[index:]
            if first or _blocks_cost(item.blocks, full, indent) > full:
                inside, later = self.take(item.blocks, left, indent=indent, fresh=first)
                if inside:
                    taken.append(Item(inside, item.continued))
                    rest = (*((Item(later, continued=True),) if later else ()), *block.items[index + 1 :])
            break
        if not taken:
            return None, block
        if not rest:
            return block, None
        numbered = sum(not item.continued for item in taken)
        start = None if block.start is None else block.start + numbered
        return dataclasses.replace(block, items=tuple(taken)), dataclasses.replace(block, items=rest, start=start)

    def _part_of_table(self, block: Table, room: int, indent: int, *, fresh: bool) -> tuple[Block | None, Block | None]:
        count, _ = _fitting_rows(block, room, indent)
        if count:
            head = dataclasses.replace(block, rows=block.rows[:count])
            return head, dataclasses.replace(block, rows=block.rows[count:], continued=True)
        if not fresh:
            return None, block
        # a row, or the header, is longer than a message
        return self._part_of_list(table_as_list(block), room, indent, fresh=True)


def _cost(block: Block, most: int, indent: int) -> int:  # noqa: PLR0911 - one for each kind
    """Units of a block; some number above ``most`` as soon as it is known to be more."""
    match block:
        case Paragraph() | Heading():
            _, used, whole = fit(block.content, most - indent, indent)
            return used + indent if whole else most + 1
        case Fence():
            frame = _frame(block, indent)
            if cut_utf16(block.content, most - frame) < len(block.content):
                return most + 1
            return frame + utf16_len(block.content) + indent * (block.content.count("\n") + 1)
        case Quote():
            return _QUOTE_INDENT + _blocks_cost(block.blocks, most - _QUOTE_INDENT, indent + _QUOTE_INDENT)
        case List():
            gap = 1 if block.tight else GAP
            used = 0
            for item in block.items:
                used += _ITEM_INDENT + gap
                used += _blocks_cost(item.blocks, most - used, indent + _ITEM_INDENT)
                if used > most:
                    break
            return used
        case Table():
            count, used = _fitting_rows(block, most, indent)
            return used if count == len(block.rows) and used <= most else most + 1
        case Rule():
            return _RULE + indent


def _blocks_cost(blocks: Sequence[Block], most: int, indent: int) -> int:
    used = 0
    for block in blocks:
        used += GAP if used else 0
        used += _cost(block, most - used, indent)
        if used > most:
            break
    return used


def _frame(block: Fence, indent: int) -> int:
    """Units of a fence's markers and info string."""
    return 2 * max(3, len(block.mark)) + 2 + utf16_len(block.info) + 2 * indent


def _fitting_rows(block: Table, room: int, indent: int) -> tuple[int, int]:
    """How many rows fit after the header, and the units of header and rows; no row where the header does not fit."""
    width = block.width if block.fits_aligned else 0
    names = sum(utf16_len(inline_source(cell)) + 3 for cell in block.header)
    used = 0 if block.continued else max(2 * width, names + 6 * len(block.header)) + 2 * indent
    if used > room:
        return 0, used
    for count, row in enumerate(block.rows):
        cells = sum(utf16_len(inline_source(cell)) + 3 for cell in row)
        cost = (max(width, cells) if width else names + cells) + indent + 1
        if used + cost > room:
            return count, used + cost
        used += cost
    return len(block.rows), used


def _cut_fence(block: Fence, room: int, indent: int) -> tuple[Fence | None, Fence | None]:
    """Cut code between lines, after an empty one if one is near; a line longer than a message where it must be."""
    room -= _frame(block, indent)
    most = fitting(block.content, room, indent)
    if most <= 0:
        return None, block
    head = block.content[:most]
    line = most if block.content.startswith("\n", most) else head.rfind("\n")
    empty = head.rfind("\n\n", most * 3 // 4)
    if empty >= 0:
        line = empty + 1
    if line > 0:
        head, rest = block.content[:line], block.content[line + 1 :]
    else:
        most = grapheme_start(block.content, most)
        head, rest = block.content[:most], block.content[most:]
    return dataclasses.replace(block, content=head), dataclasses.replace(block, content=rest)
