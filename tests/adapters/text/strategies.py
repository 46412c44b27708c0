"""Markdown as hypothesis draws it: well-formed documents, and text that only looks like one."""

from __future__ import annotations

import re

from hypothesis import strategies as st

LETTERS = st.lists(
    st.one_of(
        st.sampled_from("abc xyz 1.2_*`~[]()<>&|#-+!\"'\\/:\n"),
        st.characters(),
        st.sampled_from(
            [
                "👩‍👩‍👧‍👦",
                "🇩🇪",
                "🚀",
                "e\u0301",
                "重",
                "点",
                "，",
                "“",
                "ש",
                "\u202e",
                "한",
                "\t",
                "\x00",
                "\ud800",
                "\r",
            ]
        ),
    ),
    max_size=80,
).map("".join)
_PHRASES = """
alpha|beta|**bold**|*it*|~~gone~~|`code()`|[link](https://h.test/a_(b))|snake_case_name|重点|**重点**|🚀|a&b|<tag>|**_both_**
end.|Why?|1*2*3|http://h.test/a_b_c|_a_|\\*|&lt;|![pic](https://h.test/p.png)|[rel](src/x.py)|__init__
"""
WORDS = st.lists(st.sampled_from(re.split(r"[|\n]", _PHRASES.strip())), min_size=1, max_size=40).map(" ".join)
CODE = st.lists(
    st.sampled_from(
        ["def f(x):", "    return x < 1", "", "\tindented", "``", "# not a heading", "长行" * 30, "x" * 90]
    ),
    max_size=25,
)


def _indented(text: str, by: str) -> str:
    return "\n".join(by + line if line else line for line in text.split("\n"))


def _listed(children: list[str]) -> str:
    return "\n".join(f"- {_indented(child, '  ').lstrip()}" for child in children)


def _numbered(children: list[str]) -> str:
    return "\n".join(f"{n}. {_indented(child, '    ').lstrip()}" for n, child in enumerate(children, 7))


def _quoted(child: str) -> str:
    return _indented(child.replace("\n\n", "\n>\n"), "> ")


def _table(rows: list[list[str]]) -> str:
    head, *body = ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
    return "\n".join([head, "|---|:-:|", *body])


_FENCES = st.tuples(st.sampled_from(["", "python", "c++ x=1"]), CODE).map(
    lambda drawn: f"```{drawn[0]}\n" + "\n".join(drawn[1]) + "\n```"
)
_LEAVES = st.one_of(
    WORDS,
    _FENCES,
    WORDS.map(lambda words: f"## {words}"),
    st.just("---"),
    st.lists(st.lists(WORDS.map(lambda words: words[:30]), min_size=2, max_size=2), min_size=1, max_size=12).map(
        _table
    ),
)
BLOCKS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=5).map(_listed),
        st.lists(inner, min_size=1, max_size=5).map(_numbered),
        st.lists(inner, min_size=1, max_size=3).map("\n\n".join).map(_quoted),
        st.lists(inner, min_size=1, max_size=3).map("\n\n".join),
    ),
    max_leaves=8,
)
DOCUMENTS = st.lists(BLOCKS, max_size=6).map("\n\n".join)
ANYTHING = st.one_of(LETTERS, DOCUMENTS, st.tuples(DOCUMENTS, LETTERS).map("\n".join))
