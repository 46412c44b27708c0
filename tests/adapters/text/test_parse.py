"""The tree that markdown becomes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given

from adapters.text import Document, clean, parse, to_source
from adapters.text.syntax import parser
from adapters.text.tree import (
    Bold,
    Break,
    Code,
    Fence,
    Heading,
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
)
from tests.adapters.text.strategies import ANYTHING


def test_blocks_with_the_lines_that_they_came_from() -> None:
    document = parse("# T\n\na\nb\n\n- x\n\n---\n")
    assert document.blocks == (
        Heading(1, (Text("T"),)),
        Paragraph((Text("a"), Break(), Text("b"))),
        List((Item((Paragraph((Text("x"),)),)),)),
        Rule(),
    )
    assert [document.source.split("\n")[start] for start, _ in document.spans] == ["# T", "a", "- x", "---"]


def test_inline() -> None:
    (paragraph,) = parse("**b *i*** ~~s~~ `c` [l](u) ![p](v) <http://a> \\* &amp;\\\nx").blocks
    assert paragraph == Paragraph(
        (
            Bold((Text("b "), Italic((Text("i"),)))),
            Text(" "),
            Strike((Text("s"),)),
            Text(" "),
            Code("c"),
            Text(" "),
            Link((Text("l"),), "u"),
            Text(" "),
            Link((Text("p"),), "v", image=True),
            Text(" "),
            Link((Text("http://a"),), "http://a", auto=True),
            Text(" "),
            Text("*", "\\*"),
            Text(" "),
            Text("&", "&amp;"),
            Break(hard=True),
            Text("x"),
        )
    )


def test_lists_keep_start_mark_nesting_and_tightness() -> None:
    (block,) = parse("3) a\n   - b\n\n     c\n4) d").blocks
    inner = List((Item((Paragraph((Text("b"),)), Paragraph((Text("c"),)))),), tight=False)
    assert block == List((Item((Paragraph((Text("a"),)), inner)), Item((Paragraph((Text("d"),)),))), start=3, mark=")")


def test_fences_are_exact_and_close_only_with_a_bare_marker() -> None:
    (block,) = parse("```python\n  a\n```javascript\n\tb \n\n```").blocks
    assert block == Fence("  a\n```javascript\n\tb \n", "python")


def test_table() -> None:
    (block,) = parse("|a|b|\n|-:|-|\n|1|2|3|\n|漢字|").blocks
    assert block == Table(
        header=((Text("a"),), (Text("b"),)),
        rows=(((Text("1"),), (Text("2"), Text(" | 3"))), ((Text("漢字"),), ())),
        aligns=("right", ""),
        widths=(4, 5),
    )


def test_excess_cells_are_kept_within_a_quote_too() -> None:
    (quote,) = parse("> |a|\n> |-|\n> |1|2\\|x|").blocks
    assert isinstance(quote, Quote)
    (table,) = quote.blocks
    assert isinstance(table, Table)
    assert table.rows == (((Text("1"), Text(" | 2|x")),),)


def test_unusable_characters_and_line_ends() -> None:
    assert clean("a\r\nb\rc\x00\ud83d") == "a\nb\nc\ufffd\ufffd"
    assert clean("🚀") == "🚀"


def test_a_target_too_long_for_a_link_is_text() -> None:
    (paragraph,) = parse(f"[x](http://h/{'y' * 3000})").blocks
    assert isinstance(paragraph, Paragraph)
    assert not any(isinstance(node, Link) for node in paragraph.content)
    assert to_source([paragraph]).startswith("[x](http://h/yyy")


def test_threads_share_the_parser_from_its_first_text_on() -> None:
    text = "# T\n\n- **a**\n\n|a|\n|-|\n"
    expected = parse(text)
    parser.cache_clear()
    barrier = threading.Barrier(8)

    def first(_: int) -> Document:
        barrier.wait()
        return parse(text)

    with ThreadPoolExecutor(8) as pool:
        assert all(document == expected for document in pool.map(first, range(8)))


@pytest.mark.parametrize(
    "text",
    [
        "# T *i*",
        "a  \nb\nc",
        '**b** _i_ ~~s~~ ``c`d`` [l](u "t") ![p](v) <http://a> \\* &amp;',
        "> a\n>\n> > b",
        "3. a\n   b\n\n   c\n\n4. d",
        "- a\n  - b\n- c",
        "```sh\n x\n\n y\n```",
        "````\n```\n````",
        "| a | b |\n| --: | --- |\n| 1 | **2** |",
        "---",
    ],
)
def test_source_is_what_was_written(text: str) -> None:
    assert to_source(parse(text).blocks) == text


@given(ANYTHING)
def test_source_is_written_without_an_error_and_spans_cover_the_text(text: str) -> None:
    document = parse(text)
    to_source(document.blocks)
    assert len(document.blocks) == len(document.spans)
    lines = document.source.split("\n")
    covered = {line for start, end in document.spans for line in range(start, end)}
    assert all(not lines[line].strip() for line in set(range(len(lines))) - covered)
