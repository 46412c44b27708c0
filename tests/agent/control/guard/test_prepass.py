"""The scan that takes words out of a command, and what it refuses."""

from __future__ import annotations

import pytest

from agent.control.guard import prepass
from agent.control.guard.exceptions import OverLimit, Unreadable
from agent.control.guard.marks import CLOSE, OPEN


def shape(source: str) -> tuple[str, list[str]]:
    """The text with marks shown as ``<n>``, and the words."""
    script = prepass.lift(source)
    return script.text.replace(OPEN, "<").replace(CLOSE, ">"), script.words


def test_plain_words_stay() -> None:
    assert shape("ls -la src/x.py | head -3") == ("ls -la src/x.py | head -3", [])


@pytest.mark.parametrize(
    ("source", "text", "words"),
    [
        ("echo 'a b' \"c d\"", "echo <0> <1>", ["'a b'", '"c d"']),
        ("echo `ls` $(ls)", "echo <0> <1>", ["`ls`", "$(ls)"]),
        ("{rm,-rf,/}", "<0>", ["{rm,-rf,/}"]),
        ("X='a b' ls", "X=<0> ls", ["'a b'"]),
        ("ls # rm -rf /\npwd", "ls \npwd", []),
        ("echo foo#bar", "echo <0>", ["foo#bar"]),
        ("r\\\nm x", "<0> x", ["r\\\nm"]),
        ("a \\\n b", "a b", []),
        ("cat <(ls) >f", "cat <0> >f", ["<(ls)"]),
        ("a=(1 '2 3')", "a=<0>", ["(1 '2 3')"]),
        ("[ 2 \\> 1 ]", "test 2 <0> 1 <1>", ["\\>", "]"]),
        ("[[ a =~ (b|c) ]] && d", "test <0> && d", ["a =~ (b|c)"]),
        ("for ((i=0;i<3;i++)); do ls; done", "for _ in <0>; do ls; done", ["i=0;i<3;i++"]),
        ("time -p ls", "ls", []),
        ("! ls", " ls", []),
        ("exec 5<>f", "exec 5>|f", []),
        ("echo !(a|b)", "echo <0>", ["!(a|b)"]),
        ('echo "${x:-it\'s}"', "echo <0>", ['"${x:-it\'s}"']),
        ("echo $((1<<2))", "echo <0>", ["$((1<<2))"]),
        ("echo done", "echo <0>", ["done"]),
        ("case x in a) ls;& b) pwd;; esac", "case x in a) ls;; b) pwd;; esac", []),
        ("echo $(case x in a) ls;; esac)", "echo <0>", ["$(case x in a) ls;; esac)"]),
        ("echo $(ls # )\n)", "echo <0>", ["$(ls # )\n)"]),
    ],
)
def test_words_are_lifted(source: str, text: str, words: list[str]) -> None:
    assert shape(source) == (text, words)


@pytest.mark.parametrize(
    ("source", "text", "bodies"),
    [
        ("cat <<E\na\nE\nls", "cat <<h0>\nls", [("E", "a\n", True)]),
        ("cat <<'E'; ls\na\nE\n", "cat <<h0>; ls\n", [("E", "a\n", False)]),
        ("cat <<E|ls\na\nE\n", "cat <<h0>|ls\n", [("E", "a\n", True)]),
        ("cat <<A <<B\n1\nA\n2\nB\n", "cat <<h0> <<h1>\n", [("A", "1\n", True), ("B", "2\n", True)]),
        ("cat <<-E\n\ta\n\tE\n", "cat <<h0>\n", [("E", "a\n", True)]),
        ("cat <<''\na\n\nls", "cat <<h0>\nls", [("", "a\n", False)]),
        ("cat <<\\E\nE: x\nE", "cat <<h0>\n", [("E", "E: x\n", False)]),
        ('cat << "A B"\nx\nA B', "cat <<h0>\n", [("A B", "x\n", False)]),
        ("cat <<E", "cat <<h0>", [("E", "", True)]),
        ("<<E cat\na\nE", "<<h0> cat\n", [("E", "a\n", True)]),
    ],
)
def test_here_documents_are_taken_out(source: str, text: str, bodies: list[tuple[str, str, bool]]) -> None:
    script = prepass.lift(source)
    assert script.text.replace(OPEN, "<").replace(CLOSE, ">") == text
    assert [(one.delimiter, one.body, one.expands) for one in script.documents] == bodies


@pytest.mark.parametrize(
    "source",
    ["echo 'a", 'echo "a', "echo `a", "echo $(a", "echo ${a", "(a", "a)", "case a in b) c", "[[ a", "echo $'a"],
)
def test_what_is_not_closed_cannot_be_read(source: str) -> None:
    with pytest.raises(Unreadable):
        prepass.lift(source)


@pytest.mark.parametrize("source", ["( " * 51 + ")" * 51, "$(" * 51 + ")" * 51, "${x:-" * 51 + "}" * 51, "((" * 5_000])
def test_nesting_is_bounded(source: str) -> None:
    with pytest.raises(OverLimit):
        prepass.lift(f"echo {source}" if source[0] == "$" else source)


def test_fifty_levels_are_read() -> None:
    prepass.lift("( " * 50 + "ls" + ")" * 50)


def test_a_part_is_written_as_it_was() -> None:
    script = prepass.lift("rm -rf 'a b' <<E\nx\nE")
    assert script.written(script.text).rstrip() == "rm -rf 'a b' <<E"
