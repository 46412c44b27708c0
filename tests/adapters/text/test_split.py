"""Splitting as every platform shares it, with renderers of two kinds."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.telegram.render import HTML
from adapters.text import SMALLEST_LIMIT, Chunk, parse, split_markdown, to_source, utf16_len
from adapters.text.tree import Block, Fence
from tests.adapters.text.strategies import ANYTHING


class Markdown:
    """A renderer whose platform counts markup and escapes too, as Slack does."""

    def render(self, blocks: Sequence[Block]) -> str:
        return to_source(blocks).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    def visible(self, text: str) -> str:
        return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")

    def load(self, text: str, limit: int) -> float:
        return utf16_len(text) / limit


def split(text: str, limit: int) -> list[Chunk]:
    return split_markdown(text, limit=limit, render=HTML)


def plain(text: str, limit: int) -> list[str]:
    return [chunk.plain for chunk in split(text, limit)]


@pytest.mark.parametrize("limit", [-1, 0, 1, SMALLEST_LIMIT - 1])
def test_a_limit_too_small_raises_at_once(limit: int) -> None:
    with pytest.raises(ValueError, match="limit of at least"):
        split("abc", limit)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\r\n "])
def test_nothing_to_see_is_no_message(text: str) -> None:
    assert split(text, 100) == []


@pytest.mark.parametrize("text", [">", "```\n```", "&#32;"])
def test_marks_without_content_are_shown_as_written(text: str) -> None:
    assert [chunk.plain for chunk in split(text, 100)] == [text]
    assert HTML.visible(split(text, 100)[0].text) == text


def test_surrogate_pairs_are_counted_and_kept() -> None:
    chunks = plain("\U0001f680" * 3000, 4096)
    assert [utf16_len(chunk) for chunk in chunks] == [4096, 1904]
    assert "".join(chunks) == "\U0001f680" * 3000


def test_text_of_exactly_the_limit_is_one_message() -> None:
    assert plain("a" * 4096, 4096) == ["a" * 4096]
    assert [len(chunk) for chunk in plain("a" * 4097, 4096)] == [4096, 1]


@pytest.mark.parametrize("over", range(-12, 12))
def test_markers_of_a_fence_are_part_of_the_budget(over: int) -> None:
    fence = "```python\n" + "x" * (200 + over) + "\n```"
    for renderer in (HTML, Markdown()):
        for chunk in split_markdown(fence, limit=214, render=renderer):
            assert renderer.load(chunk.text, 214) <= 1
            assert utf16_len(chunk.plain) <= 214


def test_a_fence_is_closed_and_opened_again_with_its_info_string() -> None:
    code = "\n".join(f"    indented {n}" for n in range(20))
    chunks = plain(f"~~~~c++ title\n{code}\n~~~~", 120)
    assert len(chunks) > 2
    assert all(chunk.startswith("~~~~c++ title\n    indented") and chunk.endswith("\n~~~~") for chunk in chunks)
    inside = [chunk.removeprefix("~~~~c++ title\n").removesuffix("\n~~~~") for chunk in chunks]
    assert "\n".join(inside) == code


def test_code_with_fences_inside_gets_longer_markers_in_each_part() -> None:
    code = "```\n" * 10 + "end"
    blocks = [parse(part).blocks for part in plain("`````\n" + code + "\n`````", 40)]
    assert len(blocks) > 1
    assert "\n".join(block.content for (block,) in blocks if isinstance(block, Fence)) == code


def test_list_numbers_go_on_and_a_cut_item_has_one_number() -> None:
    text = "7) " + "seven " * 30 + "\n8) eight\n"
    shown = [HTML.visible(chunk.text) for chunk in split(text, 100)]
    assert shown[0].startswith("7) seven")
    assert all(chunk.startswith("  seven") for chunk in shown[1:])
    assert shown[-1].endswith("\n8) eight")


def test_a_heading_stays_with_what_it_heads() -> None:
    first, second = ("a " * 30).strip(), ("b " * 30).strip()
    assert plain(f"{first}\n\n# H\n\n{second}", 80) == [first, f"# H\n\n{second}"]


def test_a_block_that_fits_into_a_message_is_not_cut() -> None:
    paragraphs = ["word " * 11 + "end." for _ in range(4)]
    assert plain("\n\n".join(paragraphs), 100) == paragraphs


def test_plain_text_of_whole_blocks_is_what_was_written() -> None:
    text = "Title\n=====\n\n*  item\n*  other\n\n\n\n+ third __x__ &copy;\n\nlast " + "word " * 30
    first = plain(text, 120)[0]
    assert text.startswith(first)


def test_a_long_link_does_not_stop_the_splitting() -> None:
    chunks = split(f"[label](https://h.test/{'a' * 500}) after", 100)
    assert all(HTML.load(chunk.text, 100) <= 1 and utf16_len(chunk.plain) <= 100 for chunk in chunks)
    assert "".join(chunk.plain for chunk in chunks).count("a") >= 500


@settings(max_examples=60)
@given(ANYTHING, st.integers(SMALLEST_LIMIT, 300))
def test_a_renderer_whose_markup_counts_is_served_too(text: str, limit: int) -> None:
    renderer = Markdown()
    for chunk in split_markdown(text, limit=limit, render=renderer):
        assert utf16_len(chunk.text) <= limit
        assert utf16_len(chunk.plain) <= limit
        assert chunk.text.strip()


@settings(max_examples=60)
@given(st.text(alphabet=st.sampled_from("ab 🚀é\n."), min_size=1), st.integers(SMALLEST_LIMIT, 60))
def test_prose_is_complete_and_in_order(text: str, limit: int) -> None:
    assert re.sub(r"\s", "", "".join(plain(text, limit))) == re.sub(r"\s", "", text)


class Counting(Markdown):
    """Counts the letters that it was asked to render."""

    letters = 0

    def render(self, blocks: Sequence[Block]) -> str:
        text = super().render(blocks)
        self.letters += len(text)
        return text


def test_work_grows_with_the_text_not_with_its_square() -> None:
    """Counted in letters rendered, which no busy machine changes."""
    small, large = Counting(), Counting()
    for render, size in ((small, 20_000), (large, 80_000)):
        text = "Some words & `code` here.\n\n" * (size // 29) + "```\n" + "x = 1\n" * (size // 6) + "```"
        split_markdown(text, limit=4096, render=render)
    assert 40_000 < small.letters < 200_000
    assert large.letters < 5 * small.letters
