"""Cut a line of prose, whatever formatting the cut goes through, with the rules of :mod:`.cut` for room."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from adapters.text.tree import Bold, Break, Code, Inline, Inlines, Italic, Link, Strike, Text, inline_text
from adapters.text.units import best_break, cut_utf16, utf16_len


def fitting(text: str, room: int, indent: int) -> int:
    """How many characters fit where each line after the first is set in."""
    start, end = 0, cut_utf16(text, room)
    if not indent:
        return end
    while (line_end := text.find("\n", start, end)) >= 0:
        room -= utf16_len(text[start:line_end]) + 1 + indent
        if room <= 0:
            return line_end
        start = line_end + 1
        end = start + cut_utf16(text[start : start + room], room)
    return end


def fit(nodes: Sequence[Inline], room: int, indent: int) -> tuple[int, int, bool]:
    """How many letters fit, the units that they take, and whether that is all of them."""
    letters = used = 0
    for node in nodes:
        left = room - used
        frame = _inline_frame(node, indent)
        if frame > left:
            return letters, used, False
        match node:
            case Text() if node.source:
                more, cost, whole = len(node.text), 0, True
            case Text() | Code():
                more = fitting(node.text, left - frame, indent)
                cost = utf16_len(node.text[:more]) + indent * node.text.count("\n", 0, more)
                whole = more == len(node.text) and frame + cost <= left
            case Break():
                more, cost, whole = 1, 0, True
            case _:
                more, cost, whole = fit(node.children, left - frame, indent)
        letters += more
        used += frame + cost
        if not whole:
            return letters, used, False
    return letters, used, True


def _inline_frame(node: Inline, indent: int) -> int:
    """Units that a node takes besides its letters."""
    match node:
        case Text():
            return utf16_len(node.source)
        case Break():
            return 3 + indent
        case Code():
            return 2 * len(node.mark) + 2
        case Link():
            return utf16_len(node.href) + utf16_len(node.title) + 8
        case Bold() | Italic() | Strike():
            return 2 * len(node.mark)


def cut_inlines(nodes: Inlines, room: int, indent: int) -> tuple[Inlines, Inlines]:
    """The nodes that fit, cut at the best place, and the rest; white space at the cut is dropped."""
    most, _, _ = fit(nodes, room - indent, indent)
    if most <= 0:
        return (), nodes
    head, rest = _cut_at(nodes, best_break(inline_text(nodes, most + 1), most))
    if not inline_text(head).strip():
        return (), nodes
    return head, _without_leading_space(rest)


def _cut_at(nodes: Inlines, place: int) -> tuple[Inlines, Inlines]:
    """The nodes before and after a letter; a node that holds it is cut in two."""
    for index, node in enumerate(nodes):
        if place <= 0:
            return nodes[:index], nodes[index:]
        size = _letters(node, place + 1)
        if size > place:
            before, after = _halves(node, place)
            return (*nodes[:index], *before), (*after, *nodes[index + 1 :])
        place -= size
    return nodes, ()


def _letters(node: Inline, most: int) -> int:
    match node:
        case Text() | Code():
            return len(node.text)
        case Break():
            return 1
        case _:
            return len(inline_text(node.children, most))


def _halves(node: Inline, place: int) -> tuple[Inlines, Inlines]:
    match node:
        case Text() if node.source:
            return (), (node,)
        case Break():
            return (), (node,)
        case Text() | Code():
            first, second = node.text[:place], node.text[place:]
            return (dataclasses.replace(node, text=first),), (dataclasses.replace(node, text=second),)
        case _:
            before, after = _cut_at(node.children, place)
            return (
                (dataclasses.replace(node, children=before),) if before else (),
                (dataclasses.replace(node, children=after),) if after else (),
            )


def _without_leading_space(nodes: Inlines) -> Inlines:
    for index, node in enumerate(nodes):
        rest = nodes[index + 1 :]
        if isinstance(node, Break):
            continue
        if isinstance(node, (Text, Code)):
            if isinstance(node, Text) and node.source:
                return nodes[index:]
            text = node.text.lstrip()
            if text:
                return (dataclasses.replace(node, text=text), *rest)
            continue
        children = _without_leading_space(node.children)
        if children:
            return (dataclasses.replace(node, children=children), *rest)
    return ()
