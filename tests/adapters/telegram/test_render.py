"""What Telegram is sent for the texts of ``tests/data/text``: ``NAME.md`` beside ``NAME.html``.

``NAME.LIMIT.md`` is split at that limit; its messages stand apart by a line of equals signs. After a change that is
meant, ``OSTIARY_WRITE_GOLDEN=1`` writes the files anew, to be read before they are committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapters.telegram.render import HTML, MOST_ENTITIES
from adapters.text import split_markdown, utf16_len
from tests.adapters.telegram.html import NotTelegramHTML, read

DATA = Path(__file__).parents[2] / "data" / "text"
SAMPLES = sorted(path.stem for path in DATA.glob("*.md"))
BETWEEN = "\n==========\n"
WRITE = "OSTIARY_WRITE_GOLDEN" in os.environ


def limit_of(name: str) -> int:
    _, _, limit = name.partition(".")
    return int(limit or 4096)


def rendered(text: str, limit: int = 4096) -> list[str]:
    return [chunk.text for chunk in split_markdown(text, limit=limit, render=HTML)]


@pytest.mark.parametrize("name", SAMPLES)
def test_sample(name: str) -> None:
    text = (DATA / f"{name}.md").read_bytes().decode()
    chunks = rendered(text, limit_of(name))
    for chunk in chunks:
        assert utf16_len(read(chunk).text) <= limit_of(name)
    file = DATA / f"{name}.html"
    if WRITE:
        file.write_text(BETWEEN.join(chunks) + "\n", encoding="utf-8")
    assert BETWEEN.join(chunks) + "\n" == file.read_text(encoding="utf-8")


def test_there_are_enough_samples() -> None:
    assert len(SAMPLES) >= 40


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://h.test/a_b and http://h.test/c_d", "http://h.test/a_b and http://h.test/c_d"),
        ("_italic_ and snake_case_name", "<i>italic</i> and snake_case_name"),
        ("这是**重点**内容", "这是<b>重点</b>内容"),
        ("**“引”**后 and 前**（注）**后", "<b>“引”</b>后 and 前<b>（注）</b>后"),
        ("访问https://h.test/a_b，**重点**", "访问https://h.test/a_b，<b>重点</b>"),
        ("3*4*5 and 2**3**4 but a**b**c", "3*4*5 and 2**3**4 but a<b>b</b>c"),
        ("<!channel> & <@U123>", "&lt;!channel&gt; &amp; &lt;@U123&gt;"),
        ("__bold__ and __init__", "<b>bold</b> and __init__"),
        ('[x](https://h.test/"><b>)', '<a href="https://h.test/&quot;&gt;&lt;b&gt;">x</a>'),
        ("[x](https://h.test/\u0001y)", "[x](https://h.test/\u0001y)"),
        ("[x](HTTPS://h.test)", '<a href="HTTPS://h.test">x</a>'),
        ("[x](javascript:alert)", "[x](javascript:alert)"),
        ("# **bold** `code`", "<b>bold </b><code>code</code>"),
        ("[a **b *c***](https://h.test)", '<a href="https://h.test">a <b>b <i>c</i></b></a>'),
        ("[![alt](https://h.test/i)](https://h.test)", '<a href="https://h.test">alt</a>'),
        ("*a **b***", "<i>a <b>b</b></i>"),
        ("***a** b*", "<i><b>a</b> b</i>"),
        ("**a** **b**", "<b>a</b> <b>b</b>"),
    ],
)
def test_inline(text: str, expected: str) -> None:
    assert rendered(text) == [expected]


@pytest.mark.parametrize(
    ("info", "tag"),
    [
        ("python", '<code class="language-python">'),
        ("c++", '<code class="language-c++">'),
        ("js title=1", '<code class="language-js">'),
        ("rust,ignore", '<code class="language-rust">'),
        ('x"y', ""),
        ("{.haskell}", ""),
        ("a" * 40, ""),
    ],
)
def test_language(info: str, tag: str) -> None:
    assert rendered(f"```{info}\nx\n```") == [f"<pre>{tag}x</code></pre>" if tag else "<pre>x</pre>"]


def test_deep_nesting_is_shown_with_every_letter() -> None:
    """The parser drops what is nested too deep; it is shown as it was written instead."""
    quotes = ">" * 60 + " deep"
    assert rendered(quotes) == ["&gt;" * 60 + " deep"]
    lists = "\n".join("  " * depth + f"- level {depth}" for depth in range(60))
    shown = "\n".join([*rendered(lists), ""])
    assert all(f"level {depth}\n" in shown for depth in range(60))


def test_emphasis_nested_without_end() -> None:
    assert rendered("*" * 3000 + "a" + "*" * 3000) == ["<b>a</b>"]
    assert "".join(rendered("[" * 5000)) == "[" * 5000


@pytest.mark.parametrize("depth", [10, 60, 100, 140, 180, 2000])
def test_images_within_images(depth: int) -> None:
    """The parser recurses for each; where it gives up, the text is shown as it was written."""
    chunks = rendered("![word " * depth + "](https://h.test/x)" * depth)
    assert sum(read(chunk).text.count("word") for chunk in chunks) == depth


def test_more_formatted_ranges_than_telegram_keeps_are_spread_over_messages() -> None:
    chunks = rendered(" ".join(f"**b{n}**" for n in range(250)))
    ranges = [len(read(chunk).entities) for chunk in chunks]
    assert sum(ranges) == 250
    assert max(ranges) <= MOST_ENTITIES
    assert len(chunks) <= 5


def test_escapes_do_not_make_the_html_too_long() -> None:
    chunks = rendered("&" * 9000)
    assert max(len(chunk) for chunk in chunks) <= 4 * 4096
    assert sum(chunk.count("&amp;") for chunk in chunks) == 9000


class TestReader:
    """The judge of these tests is strict."""

    @pytest.mark.parametrize(
        "html",
        [
            "a & b",
            "a < b",
            "<b>x",
            "x</b>",
            "<b><i>x</b></i>",
            "<b></b>",
            "<p>x</p>",
            "<b><code>x</code></b>",
            "<blockquote><pre>x</pre></blockquote>",
            "<blockquote>a<blockquote>b</blockquote></blockquote>",
            '<a href="x"><a href="y">z</a></a>',
            '<a onclick="x">z</a>',
            "<a>z</a>",
            '<code class="language-x">z</code>',
            "&nbsp;",
            "<br/>",
        ],
    )
    def test_refuses(self, html: str) -> None:
        with pytest.raises(NotTelegramHTML):
            read(html)

    def test_reads(self) -> None:
        assert read('<b>a<i>&lt;</i></b> <a href="u&amp;v">c</a>').entities == [
            ("i", 1, 2, ""),
            ("b", 0, 2, ""),
            ("a", 3, 4, "u&v"),
        ]
