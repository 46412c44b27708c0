"""Words become fields as bash would make them, as far as the text tells."""

from __future__ import annotations

import pytest

from agent.control.guard.exceptions import OverLimit
from agent.control.guard.expand import Expander
from agent.control.guard.marks import GATEWAY, JOB, ONE, OUTPUT, SECRET, STAR, UNKNOWN, Stream
from agent.control.guard.state import State
from tests.agent.control.guard import corpus


def _substitute(text: str, state: State) -> Stream:
    del state
    return Stream(text.removeprefix("echo ")) if text.startswith("echo ") else Stream(None, frozenset(("local",)))


def _channel(direction: str, text: str, state: State) -> int:
    del direction, text, state
    return 0


def fields(raw: str, **variables: str | list[str]) -> list[str]:
    """The fields of a word."""
    state = State.initial(corpus.assume())
    state.variables.update(variables)
    return Expander(_substitute, _channel).fields(raw, state)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a", ["a"]),
        ("r''m", ["rm"]),
        ('r"m"', ["rm"]),
        ("\\rm", ["rm"]),
        ("r\\\nm", ["rm"]),
        ("$'\\x72\\155'", ["rm"]),
        ("$'a\\tb'", ["a\tb"]),
        ("''", [""]),
        ("{a,b}{1,2}", ["a1", "a2", "b1", "b2"]),
        ("{1..3}", ["1", "2", "3"]),
        ("{c..a}", ["c", "b", "a"]),
        ("{a}", ["{a}"]),
        ("'{a,b}'", ["{a,b}"]),
        ("a{b,{c,d}}", ["ab", "ac", "ad"]),
        ("${x}{a,b}", [f"{UNKNOWN}a", f"{UNKNOWN}b"]),
        ("~", ["/home/agent"]),
        ("~/x", ["/home/agent/x"]),
        ("~bob/x", ["/home/bob/x"]),
        ("~root", ["/root"]),
        ("of=~/x", ["of=/home/agent/x"]),
        ("'~'", ["~"]),
        ("a~", ["a~"]),
        ("$HOME", ["/home/agent"]),
        ('"$HOME"/', ["/home/agent/"]),
        ("*.py", [f"{STAR}.py"]),
        ("'*'.py", ["*.py"]),
        ("a?", [f"a{ONE}"]),
        ("$(echo rm)", ["rm"]),
        ("`echo rm`", ["rm"]),
        ('"$(echo a b)"', ["a b"]),
        ("$(echo a b)", ["a", "b"]),
        ("$(ls)", [OUTPUT]),
        ("rm${IFS}-rf${IFS}x", ["rm", "-rf", "x"]),
        ("$unset", [UNKNOWN]),
        ("$!", [JOB]),
        ("$PPID", [GATEWAY]),
        ("$GATEWAY_PID", [GATEWAY]),
        ("$GATEWAY_HOME", ["/home/agent/.gateway"]),
        ("$AWS_SECRET_ACCESS_KEY", [SECRET]),
        ("$((1+2))", [UNKNOWN]),
        ("a$", ["a$"]),
    ],
)
def test_fields(raw: str, expected: list[str]) -> None:
    assert fields(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("$v", ["a", "b"]),
        ('"$v"', ["a b"]),
        ("${v}c", ["a", "bc"]),
        ("${#v}", [UNKNOWN]),
        ("${v:-x}", ["a", "b"]),
        ("${w:-x}", ["x"]),
        ("${e:-x}", ["x"]),
        ("${e-x}", []),
        ("${v:+x}", ["x"]),
        ("${e:+x}", []),
        ("${v:2}", ["b"]),
        ('"${v:0:1}"', ["a"]),
        ("${f#*.}", ["b.c"]),
        ("${f##*.}", ["c"]),
        ("${f%.*}", ["a.b"]),
        ("${f%%.*}", ["a"]),
        ("${f/./-}", ["a-b.c"]),
        ("${f//./-}", ["a-b-c"]),
        ("${f/#a/x}", ["x.b.c"]),
        ("${f/%c/x}", ["a.b.x"]),
        ("${f^^}", ["A.B.C"]),
        ("${n}", ["f"]),
        ("${!n}", ["a.b.c"]),
        ('"${l[@]}"', ["1", "2 3"]),
        ("${l[1]}", ["2", "3"]),
        ('"${l[*]}"', ["1 2 3"]),
        ("$l", ["1"]),
        ("x${e}y", ["xy"]),
        ("$g", [STAR]),
        ('"$g"', ["*"]),
    ],
)
def test_parameters(raw: str, expected: list[str]) -> None:
    assert fields(raw, v="a b", e="", f="a.b.c", n="f", g="*", l=["1", "2 3"]) == expected


def test_assigning_a_default_sets_the_variable() -> None:
    state = State.initial(corpus.assume())
    expander = Expander(_substitute, _channel)
    assert expander.fields("${x:=rm}", state) == ["rm"]
    assert expander.fields("$x", state) == ["rm"]


@pytest.mark.parametrize("raw", ["{a,b}" * 15, "{1..1000}", "{1..200}{1..200}"])
def test_fields_are_bounded(raw: str) -> None:
    with pytest.raises(OverLimit):
        fields(raw)


def test_characters_are_bounded() -> None:
    with pytest.raises(OverLimit):
        fields("$x$x", x="a" * 40_000)
