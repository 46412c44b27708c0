"""Characters that a person would not see, and letters that only look like others."""

from __future__ import annotations

import pytest

from agent.control.guard import Verdict, normalise
from tests.agent.control.guard import corpus


@pytest.mark.parametrize(
    "char",
    [
        "\u200b",
        "\u200e",
        "\u202e",
        "\u2066",
        "\ufeff",
        "\x1b",
        "\x00",
        "\x07",
        "\r",
        "\x7f",
        "\x85",
        "\u2028",
        "\u00ad",
        "\u3164",
    ],
)
def test_hidden_characters_ask(char: str) -> None:
    judgement = corpus.guard().judge(f"ls{char} -la")
    assert "unreadable.hidden" in judgement.rules
    assert judgement.verdict is Verdict.APPROVE


def test_the_reason_names_the_character() -> None:
    assert "zero width space" in corpus.guard().judge("ls\u200b").why
    assert "0x1b" in corpus.guard().judge("\x1b[2Kls").why


@pytest.mark.parametrize(
    "text",
    [
        "caf\u00e9",
        "\u5168\u89d2",
        "\u2013 \u00bd",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u2764\ufe0f\u200d\U0001f525",
    ],
)
def test_ordinary_text_does_not(text: str) -> None:
    assert corpus.verdict(f'echo "{text}"') is Verdict.SAFE


def test_a_joiner_elsewhere_is_hidden() -> None:
    assert corpus.verdict("ls\u200d") is Verdict.APPROVE


def test_the_folded_form_is_judged_too() -> None:
    """`\uff52\uff4d` is `rm`, a no-break space is a blank, and a zero-width space does not hide a word."""
    assert corpus.verdict("\uff52\uff4d -rf /") is Verdict.REFUSE
    assert corpus.verdict("rm\u00a0-rf\u00a0/") is Verdict.REFUSE
    assert "chmod.world" in corpus.rules("chmod\u200b -R 777 public")
    assert corpus.verdict("\uff44\uff44 if=/dev/zero of=/dev/sdb") is Verdict.REFUSE


def test_private_characters_forge_no_mark() -> None:
    """A character that the guard uses itself is text like any other."""
    assert "\ue003" not in normalise.read("kill -9 \ue003").text
    assert corpus.verdict("kill -9 \ue003") is corpus.verdict("kill -9 \ufffd")
    assert corpus.verdict("\ue0100\ue011 x") is Verdict.SAFE


def test_lone_surrogates_ask() -> None:
    assert corpus.verdict("echo \ud800") is Verdict.APPROVE


@pytest.mark.parametrize("word", ["l\u0455", "b\u0430sh", "g\u0456t"])
def test_words_of_several_alphabets_ask(word: str) -> None:
    assert "unreadable.scripts" in corpus.rules(f"{word} -la")


def test_words_of_one_alphabet_do_not() -> None:
    assert not normalise.mixes_scripts("\u043f\u0440\u0438\u0432\u0435\u0442")
    assert not normalise.mixes_scripts("\u7f16\u8bd1x")
