"""Whatever a model writes, Telegram takes it, nothing is lost and nothing is too long."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adapters.telegram.render import HTML, MOST_ENTITIES
from adapters.text import SMALLEST_LIMIT, clean, parse, split_markdown, utf16_len
from tests.adapters.telegram.html import read
from tests.adapters.text.strategies import ANYTHING, DOCUMENTS

SLOW = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def letters(text: str) -> str:
    """Without white space, which a cut may drop."""
    return re.sub(r"\s", "", text)


@SLOW
@given(ANYTHING, st.integers(SMALLEST_LIMIT, 400))
def test_every_chunk_is_within_the_limit_and_well_formed(text: str, limit: int) -> None:
    for chunk in split_markdown(text, limit=limit, render=HTML):
        message = read(chunk.text)
        assert 0 < utf16_len(message.text) <= limit
        assert message.text.strip()
        assert message.text == HTML.visible(chunk.text)
        assert utf16_len(chunk.plain) <= limit
        chunk.plain.encode()
        chunk.text.encode()
        # a language is an attribute of the block, not a range of its own
        assert len([tag for tag, *_, value in message.entities if tag != "code" or not value]) <= MOST_ENTITIES


@SLOW
@given(DOCUMENTS, st.integers(300, 700))
def test_nothing_is_lost_repeated_or_reordered(text: str, limit: int) -> None:
    whole = read(HTML.render(parse(text).blocks)).text
    chunks = split_markdown(text, limit=limit, render=HTML)
    if letters(whole):
        assert letters("".join(read(chunk.text).text for chunk in chunks)) == letters(whole)


@SLOW
@given(DOCUMENTS, st.integers(300, 700))
def test_plain_texts_hold_every_word_that_was_written(text: str, limit: int) -> None:
    plain = "\n".join(chunk.plain for chunk in split_markdown(text, limit=limit, render=HTML))
    for word in ("alpha", "beta", "bold", "snake_case_name", "重点", "https://h.test/p.png", "src/x.py", "def f(x):"):
        assert plain.count(word) >= text.count(word)


@SLOW
@given(ANYTHING)
def test_a_text_that_fits_is_one_message_with_its_source(text: str) -> None:
    chunks = split_markdown(text, limit=100_000, render=HTML)
    assert len(chunks) <= 1 or len(read(HTML.render(parse(text).blocks)).entities) > MOST_ENTITIES
    if len(chunks) == 1:
        assert chunks[0].plain == parse(text).source


@SLOW
@given(ANYTHING)
def test_nothing_that_a_stock_renderer_shows_is_missing(text: str) -> None:
    """The library's own HTML is the witness, which does not go through our tree."""
    stock = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).render(clean(text))
    expected = Counter(character for character in unescape(re.sub("<[^>]*>", "", stock)) if character.isalnum())
    shown = Counter(HTML.visible("".join(chunk.text for chunk in split_markdown(text, limit=4096, render=HTML))))
    assert not expected - shown


@SLOW
@given(
    st.lists(st.sampled_from(["def f():", "    return 1", "", "\tx", "`", "long-" * 50]), max_size=80),
    st.integers(60, 300),
)
def test_code_keeps_every_character(lines: list[str], limit: int) -> None:
    code = "\n".join(["start", *lines])
    chunks = split_markdown(f"````python\n{code}\n````", limit=limit, render=HTML)
    parts = [read(chunk.text) for chunk in chunks]
    assert "".join(part.text.replace("\n", "") for part in parts) == code.replace("\n", "")
    assert all(("code", 0, len(part.text), "language-python") in part.entities for part in parts)
