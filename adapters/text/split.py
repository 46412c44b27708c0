"""Split a formatted text into messages that a platform takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from adapters.text.cut import GAP, Cutter
from adapters.text.parse import parse
from adapters.text.source import to_source
from adapters.text.tree import Block, Document, Paragraph, Text
from adapters.text.units import grapheme_start, utf16_len

#: A surrogate pair, and the longest way to write one character (``&quot;``), fit into less than this.
SMALLEST_LIMIT: Final = 8


class Renderer(Protocol):
    """Writes a tree in the format of a platform."""

    def render(self, blocks: Sequence[Block]) -> str:
        """The blocks in the platform's format; complete in itself, whatever they are parts of."""
        ...

    def visible(self, text: str) -> str:
        """What a reader sees of a rendered text: without tags, with escapes resolved."""
        ...

    def load(self, text: str, limit: int) -> float:
        """The share that a rendered text takes of what a message of ``limit`` UTF-16 units may hold.

        Up to 1 the platform takes it. A single character of prose must fit at the smallest limit.
        """
        ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """One message.

    Attributes:
        text: rendered for the platform.
        plain: what was written, for a platform that refuses the formatting; within the limit too.
    """

    text: str
    plain: str


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block of the document, or what is left of one.

    Attributes:
        lines: first line of the source and the one after the last; None for a part.
        literal: a paragraph of letters as they were written, the last resort.
    """

    block: Block
    lines: tuple[int, int] | None = None
    literal: bool = False


def split_markdown(text: str, *, limit: int, render: Renderer) -> list[Chunk]:
    """Render markdown as messages, in order, of which none is longer than the limit and nothing is lost.

    Messages end between blocks where they can, else between items or lines, sentences, words, and last between
    characters as a reader sees them. What a cut goes through is closed before it and opened again after it: code
    with its language, quotes, lists with their numbers, emphasis. White space at a cut in prose is dropped; in code
    only the line end.

    Args:
        text: markdown; any text is.
        limit: UTF-16 units of a message, at least :data:`SMALLEST_LIMIT`.
        render: the platform's renderer.

    Returns:
        The messages; none for a text without anything to see.

    Raises:
        ValueError: the limit is too small.
    """
    if limit < SMALLEST_LIMIT:
        raise ValueError(f"a message needs a limit of at least {SMALLEST_LIMIT} UTF-16 units, not {limit}")
    return _Splitter(parse(text), limit, render).split()


class _Splitter:
    """Splits one document; what is left of it is a stack with the next piece on top."""

    def __init__(self, document: Document, limit: int, render: Renderer) -> None:
        self._document = document
        self._lines = document.source.split("\n")
        self._limit = limit
        self._render = render
        self._cutter = Cutter(limit)
        pieces = [_Piece(block, lines) for block, lines in zip(document.blocks, document.spans, strict=True)]
        self._left = pieces[::-1]

    def split(self) -> list[Chunk]:
        if utf16_len(self._document.source) <= self._limit:
            whole, load = self._chunk(self._left[::-1])
            if load <= 1 and self._seen(whole):
                return [Chunk(whole.text, self._document.source)]
        chunks = []
        while self._left:
            chunk = self._next()
            if self._seen(chunk):
                chunks.append(chunk)
        if not chunks and self._document.source.strip():
            # marks without content, as a lone quote sign: show them rather than nothing
            self._left = [_Piece(Paragraph((Text(self._document.source),)), literal=True)]
            while self._left:
                chunks.append(self._next())
        return chunks

    def _seen(self, chunk: Chunk) -> bool:
        return bool(self._render.visible(chunk.text).strip())

    def _next(self) -> Chunk:
        """Take the next message off the stack."""
        room = self._limit
        while room > 1:
            taken, whole, rest = self._pack(room)
            if not taken:
                break
            chunk, load = self._chunk(taken)
            if load <= 1:
                del self._left[len(self._left) - whole :]
                if rest is not None:
                    self._left[-1] = rest
                return chunk
            # what was counted was too little; by how much tells what to count on
            room = min(int(room / load), room - 1)
        return self._forced()

    def _pack(self, room: int) -> tuple[list[_Piece], int, _Piece | None]:
        """The pieces for a message, how many of the stack they use up, and what is left of the one after those."""
        # a block takes two units at least, which bounds what is looked at
        ahead = self._left[: -room // GAP - 1 : -1]
        blocks, rest = self._cutter.take([piece.block for piece in ahead], room)
        whole = len(ahead) - len(rest)
        taken = ahead[: len(blocks)]
        if len(blocks) > whole:
            taken[-1] = _Piece(blocks[-1], literal=taken[-1].literal)
        parted = bool(rest) and rest[0] is not ahead[whole].block
        return taken, whole, _Piece(rest[0], literal=ahead[whole].literal) if parted else None

    def _chunk(self, pieces: Sequence[_Piece]) -> tuple[Chunk, float]:
        """The message of some pieces, and the share that it takes of the limits, formatted and plain."""
        text = self._render.render([piece.block for piece in pieces])
        plain = self._plain(pieces)
        return Chunk(text, plain), max(self._render.load(text, self._limit), utf16_len(plain) / self._limit)

    def _plain(self, pieces: Sequence[_Piece]) -> str:
        """What was written: whole blocks to the character with what stands between them, parts by their tree."""
        parts: list[str] = []
        index = 0
        while index < len(pieces):
            lines = pieces[index].lines
            if lines is None:
                parts.append(to_source([pieces[index].block]))
                index += 1
                continue
            first, (start, end) = index, lines
            index += 1
            while index < len(pieces) and (following := pieces[index].lines) is not None:
                end = following[1]
                index += 1
            written = "\n".join(self._lines[start:end]).strip("\n")
            if utf16_len(written) > self._limit:
                # markup without effect, as a thousand asterisks around a word
                written = to_source([piece.block for piece in pieces[first:index]])
            parts.append(written)
        return "\n\n".join(parts)

    def _forced(self) -> Chunk:
        """A message where formatting has no room: the next piece as it was written, cut between characters."""
        piece = self._left.pop()
        if not piece.literal:
            self._left.append(_Piece(Paragraph((Text(self._plain([piece])),)), literal=True))
            return self._next()
        text = to_source([piece.block])
        place = max(1, grapheme_start(text, 1))
        if text[place:]:
            self._left.append(_Piece(Paragraph((Text(text[place:]),)), literal=True))
        return Chunk(self._render.render([Paragraph((Text(text[:place]),))]), text[:place])
