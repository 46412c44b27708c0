"""Markdown to the tree of :mod:`.tree`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it.token import Token

from adapters.text.syntax import EXCESS, MAX_NESTING, parser
from adapters.text.tree import (
    Block,
    Bold,
    Break,
    Code,
    Document,
    Fence,
    Heading,
    Inline,
    Inlines,
    Italic,
    Item,
    Link,
    List,
    Paragraph,
    Quote,
    Rule,
    Strike,
    Table,
    Text,
    has_link,
    inline_text,
)
from adapters.text.units import columns

#: Longer targets are shown as they were written: browsers and Telegram refuse them anyway.
LONGEST_TARGET = 2048
#: Emphasis within emphasis beyond this changes nothing that a reader could see.
_DEEPEST_INLINE = 12
#: Lone surrogates cannot be sent in any encoding; NUL is no character of a message.
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
#: Names of Python and its files that CommonMark takes for strong emphasis.
_DUNDERS = re.compile(
    "init|main|name|file|all|doc|call|(a?)(enter|exit|iter|next)|new|del|repr|str|dict|slots|class|module|version|"
    "author|path|spec|package|builtins|future|import|annotations|qualname|await|len|eq|hash|lt|le|gt|ge|ne|bool|"
    "(get|set|del)(attr|item)|getattribute|contains|add|sub|mul|get|set|post_init|init_subclass|pycache|debug|mro"
)


class _Reader:
    """Tokens one after the other, with a look at the next."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def __iter__(self) -> Iterator[Token]:
        return self

    def __next__(self) -> Token:
        if self._at == len(self._tokens):
            raise StopIteration
        self._at += 1
        return self._tokens[self._at - 1]

    def peek(self) -> Token:
        return self._tokens[self._at]


def clean(text: str) -> str:
    """The text with line feeds as the only line ends, and U+FFFD for NUL and lone surrogates."""
    return _UNUSABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def parse(text: str) -> Document:
    """Parse markdown; any text is markdown, so nothing is raised.

    Text that is nested too deep to be formatted becomes one paragraph of its letters as they were written.
    """
    source = clean(text)
    try:
        tokens = parser().parse(source)
    except RecursionError:
        return _literal(source)
    if any(token.level >= MAX_NESTING - 1 for token in tokens):
        return _literal(source)
    spans = [
        (token.map[0], token.map[1])
        for token in tokens
        if token.level == 0 and token.nesting >= 0 and token.map is not None
    ]
    return Document(source, _blocks(_Reader(tokens), ""), tuple(spans))


def _literal(source: str) -> Document:
    return Document(source, (Paragraph((Text(source),)),), ((0, source.count("\n") + 1),))


def _blocks(tokens: _Reader, closing: str) -> tuple[Block, ...]:
    """Blocks up to the token that closes their container."""
    blocks: list[Block] = []
    for token in tokens:
        if token.type == closing:
            break
        blocks.append(_block(token, tokens))
    return tuple(blocks)


def _block(token: Token, tokens: _Reader) -> Block:  # noqa: PLR0911 - one for each kind
    match token.type:
        case "paragraph_open":
            return Paragraph(_content(tokens))
        case "heading_open":
            return Heading(int(token.tag[1:]), _content(tokens))
        case "blockquote_open":
            return Quote(_blocks(tokens, "blockquote_close"))
        case "bullet_list_open" | "ordered_list_open":
            return _list(token, tokens)
        case "fence" | "code_block":
            return Fence(token.content.removesuffix("\n"), token.info.strip(), token.markup)
        case "table_open":
            return _table(token, tokens)
        case "hr":
            return Rule()
        case _:
            # no rule of the parser makes another token; its letters would still be shown
            return Paragraph((Text(token.content),))


def _content(tokens: _Reader) -> Inlines:
    """The inline nodes of a paragraph, heading or cell, whose closing token is consumed."""
    content = next(tokens)
    next(tokens)
    return _inlines(content.children or [])


def _list(opening: Token, tokens: _Reader) -> List:
    items: list[Item] = []
    tight = True
    for token in tokens:
        if token.type != "list_item_open":
            break
        # the parser hides the paragraphs of a tight list
        inside = tokens.peek()
        tight = tight and not (inside.type == "paragraph_open" and not inside.hidden)
        items.append(Item(_blocks(tokens, "list_item_close")))
    ordered = opening.type == "ordered_list_open"
    start = int(opening.attrs.get("start", 1)) if ordered else None
    return List(tuple(items), start, opening.markup, tight)


def _table(opening: Token, tokens: _Reader) -> Table:
    excess: dict[int, list[str]] = opening.meta.get(EXCESS, {})
    rows: list[tuple[Inlines, ...]] = []
    cells: list[Inlines] = []
    aligns: list[str] = []
    for token in tokens:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            cells = []
        elif token.type == "tr_close":
            rows.append(tuple(cells))
        elif token.type in {"th_open", "td_open"}:
            if token.type == "th_open":
                aligns.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
            cells.append(_content(tokens))
    for row, more in excess.items():
        if row + 1 < len(rows):
            *others, last = rows[row + 1]
            rows[row + 1] = (*others, (*last, Text(" | " + " | ".join(more))))
    widths = tuple(max(columns(inline_text(row[column])) for row in rows) for column in range(len(aligns)))
    links = any(has_link(cell) for row in rows for cell in row)
    return Table(rows[0], tuple(rows[1:]), tuple(aligns), widths, links)


def _inlines(tokens: Sequence[Token]) -> Inlines:
    """Inline nodes; what a token opens is gathered on a stack until the one that closes it."""
    stack: list[tuple[Token, list[Inline]]] = []
    nodes: list[Inline] = []
    passed = 0
    for token in tokens:
        if token.nesting == 1:
            if len(stack) >= _DEEPEST_INLINE:
                passed += 1
            else:
                stack.append((token, nodes))
                nodes = []
        elif token.nesting == -1:
            if passed:
                passed -= 1
            else:
                opening, outer = stack.pop()
                outer += _closed(opening, tuple(nodes))
                nodes = outer
        else:
            nodes += _leaf(token)
    return tuple(nodes)


def _leaf(token: Token) -> list[Inline]:
    match token.type:
        case "softbreak" | "hardbreak":
            return [Break(hard=token.type == "hardbreak")]
        case "code_inline":
            return [Code(token.content, token.markup)]
        case "image":
            label = _inlines(token.children or [])
            return _link(label, str(token.attrs.get("src", "")), str(token.attrs.get("title", "")), image=True)
        case "text_special" if token.markup != token.content:
            return [Text(token.content, token.markup)]
        case _:
            return [Text(token.content)] if token.content else []


def _closed(opening: Token, children: Inlines) -> list[Inline]:
    match opening.type:
        case "strong_open":
            if opening.markup == "__" and _DUNDERS.fullmatch(inline_text(children)):
                return [Text("__"), *children, Text("__")]
            return [Bold(children, opening.markup)]
        case "em_open":
            return [Italic(children, opening.markup)]
        case "s_open":
            return [Strike(children, opening.markup)]
        case "link_open":
            href, title = str(opening.attrs.get("href", "")), str(opening.attrs.get("title", ""))
            return _link(children, href, title, auto=opening.markup == "autolink")
        case _:
            return list(children)


def _link(label: Inlines, href: str, title: str, *, auto: bool = False, image: bool = False) -> list[Inline]:
    if not inline_text(label).strip():
        label = (Text(href),) if href else (Text("()"),)
    if len(href) > LONGEST_TARGET:
        return [Text("!" if image else ""), Text("["), *label, Text("]("), Text(href), Text(")")]
    return [Link(label, href, title, auto, image)]
