"""The markdown that models write: CommonMark with tables and strike-through, and rules of our own.

- Emphasis with ``*`` works beside Chinese, Japanese and Korean text, which has no spaces
  (the amendment of markdown-cjk-friendly: a CJK neighbour counts like a space).
- A bare address is text to its end: an underscore in it marks nothing. Nor does an asterisk in ``3*4*5``, ``2**3`` and
  ``a*b*c``.
- Definitions of references are text, since a definition that nothing uses would vanish.
- Cells beyond the columns of a table's header are kept, where CommonMark drops them.
"""

from __future__ import annotations

import functools
import re

from markdown_it import MarkdownIt
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter

#: Key in the ``meta`` of ``table_open``: row -> the cells that it has beyond the header's columns.
EXCESS = "excess"
#: Nesting of blocks that the parser follows; it drops what lies deeper, so :mod:`.parse` checks for it.
MAX_NESTING = 40

_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u303f\u3040-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f"
    "\uff00-\uffef\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)
_SCHEME = re.compile(r"(?<![A-Za-z0-9+.-])(?:https?|ftps?)\Z", re.IGNORECASE)
# only as far as ASCII goes: text in scripts without spaces may follow at once, and the marks of emphasis are ASCII
_ADDRESS = re.compile(r"://(?:[!#-'+-;=?-Z^_a-z{}~]|\*(?![*\s])|\([!#-'*-;=?-Z^_a-z{}~]*\))+")


@functools.cache
def parser() -> MarkdownIt:
    """The parser; it keeps no state between texts and may serve several threads."""
    markdown = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING})
    markdown.enable(["table", "strikethrough"])
    # escapes and entities stay tokens of their own that know how they were written
    markdown.disable(["text_join", "reference"])
    markdown.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    markdown.inline.ruler.at("emphasis", _emphasis)
    markdown.inline.ruler.after("text", "bare_address", _bare_address)
    # targets come out as they were written; a renderer encodes them for its platform
    setattr(markdown, "normalizeLink", _unchanged)  # noqa: B010 - a method that the library means to be replaced
    setattr(markdown, "normalizeLinkText", _unchanged)  # noqa: B010 - likewise
    # its rules are put in order by the first text, which must not happen in two threads at once
    markdown.parse("*")
    return markdown


def _unchanged(url: str) -> str:
    return url


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The library's rule; then the cells that it left out are noted on the table's token."""
    first = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    if silent:
        return True
    columns = sum(token.type == "th_open" for token in state.tokens[first:])
    excess = {}
    for line in range(start + 2, state.line):
        row = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()
        cells = escapedSplit(row.removeprefix("|"))
        if len(cells) > columns:
            more = [cell.strip() for cell in cells[columns:] if cell.strip()]
            if more:
                excess[line - start - 2] = more
    state.tokens[first].meta[EXCESS] = excess
    return True


def _emphasis(state: StateInline, silent: bool) -> bool:
    """Each marker becomes a text token and a delimiter, as in the rule that this one replaces."""
    marker = state.src[state.pos]
    if silent or marker not in "_*":
        return False
    if marker == "_":
        scanned = state.scanDelims(state.pos, False)
        can_open, can_close, length = scanned.can_open, scanned.can_close, scanned.length
    else:
        can_open, can_close, length = _flanking(state)
    for _ in range(length):
        token = state.push("text", "", 0)
        token.content = marker
        state.delimiters.append(
            Delimiter(ord(marker), length=length, token=len(state.tokens) - 1, end=-1, open=can_open, close=can_close)
        )
    state.pos += length
    return True


def _flanking(state: StateInline) -> tuple[bool, bool, int]:
    """Whether a run of asterisks may open, may close, and its length."""
    source, start, end = state.src, state.pos, state.pos
    while end < state.posMax and source[end] == "*":
        end += 1
    before = source[start - 1] if start > 0 else " "
    after = source[end] if end < state.posMax else " "
    within_word = before.isascii() and after.isascii() and before.isalnum() and after.isalnum()
    if within_word and (end - start == 1 or (before.isdigit() and after.isdigit())):
        # an operator or a pattern
        return False, False, end - start
    space_before, space_after = isWhiteSpace(ord(before)), isWhiteSpace(ord(after))
    cjk_before, cjk_after = bool(_CJK.match(before)), bool(_CJK.match(after))
    mark_before, mark_after = _punctuation(before), _punctuation(after)
    opens = not space_after and (not mark_after or cjk_after or space_before or mark_before or cjk_before)
    closes = not space_before and (not mark_before or cjk_before or space_after or mark_after or cjk_after)
    return opens, closes, end - start


def _punctuation(character: str) -> bool:
    return isMdAsciiPunct(ord(character)) or isPunctChar(character)


def _bare_address(state: StateInline, silent: bool) -> bool:
    """Take the rest of an address, from the colon on, as text."""
    start = state.pos
    if state.src[start] != ":" or not _SCHEME.search(state.src, max(0, start - 8), start):
        return False
    found = _ADDRESS.match(state.src, start, state.posMax)
    if found is None:
        return False
    # marks at the end belong to the sentence, or close an emphasis around the address
    address = found[0].rstrip("*_~.,;:!?'")
    if len(address) <= len("://"):
        return False
    if not silent:
        state.append_pending(address)
    state.pos += len(address)
    return True
