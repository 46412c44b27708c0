"""Lengths as platforms count them, and places where a text may be cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.text.units import best_break, columns, cut_utf16, grapheme_start, utf16_len


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("abc", 3), ("é", 1), ("重点", 2), ("🚀", 2), ("👩‍👩‍👧‍👦", 11), ("\ud800", 1)]
)
def test_utf16_len(text: str, length: int) -> None:
    assert utf16_len(text) == length


@given(st.text(), st.integers(-1, 50))
def test_cut_utf16_takes_all_that_fits_and_no_half_pair(text: str, room: int) -> None:
    most = cut_utf16(text, room)
    assert utf16_len(text[:most]) <= max(0, room)
    assert most == len(text) or utf16_len(text[: most + 1]) > room


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("abc", 2, 2),
        ("ae\u0301b", 2, 1),
        ("ae\u0301\u0323b", 3, 1),
        ("a❤\ufe0fb", 2, 1),
        ("a👍🏽b", 2, 1),
        ("a👩‍👧b", 2, 1),
        ("a👩‍👧b", 3, 1),
        ("🇩🇪🇫🇷", 1, 1),
        ("a🇩🇪🇫🇷", 2, 1),
        ("a🇩🇪🇫🇷", 3, 3),
        ("abc", 3, 3),
    ],
)
def test_grapheme_start(text: str, place: int, expected: int) -> None:
    assert grapheme_start(text, place) == expected


def test_a_character_that_never_ends_is_cut_all_the_same() -> None:
    assert grapheme_start("a" + "\u0301" * 500, 300) == 300


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("one two three", 9, "one two"),
        ("One two. Three four", 15, "One two."),
        ("line one\nline two", 12, "line one"),
        ("He said “yes.” Then more", 16, "He said “yes.”"),
        ("Version 1.2.3.4.5.6.7", 16, "Version"),
        ("这是。那是，还有", 6, "这是。"),
        ("abcdefgh", 4, "abcd"),
        ("abcd efgh", 4, "abcd"),
        ("a", 1, "a"),
    ],
)
def test_best_break(text: str, most: int, kept: str) -> None:
    assert text[: best_break(text, most)] == kept


@given(st.text(min_size=2), st.integers(1, 40))
def test_best_break_always_advances(text: str, most: int) -> None:
    most = min(most, len(text) - 1)
    assert 1 <= best_break(text, most) <= most


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("🚀", 2), ("a\u200bb", 2)])
def test_columns(text: str, width: int) -> None:
    assert columns(text) == width
