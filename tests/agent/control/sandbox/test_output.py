from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from agent.control.sandbox.output import OutputCollector, make_visible


def collected(data: bytes, limit: int = 64, piece: int = 7) -> OutputCollector:
    collector = OutputCollector(limit)
    for start in range(0, len(data), piece):
        collector.add(data[start : start + piece])
    return collector


class TestMakeVisible:
    def test_colours_go_and_their_text_stays(self) -> None:
        assert make_visible("\x1b[1;31mred\x1b[0m \x1b[Kend") == "red end"

    def test_other_escapes_are_shown(self) -> None:
        assert make_visible("\x1b]0;title\x07\x1b[2Jx") == "\u241b]0;title\u2407\u241b[2Jx"

    def test_nul_backspace_and_delete_are_shown(self) -> None:
        assert make_visible("a\0b\b\x7f") == "a\u2400b\u2408\u2421"

    def test_c1_and_bidi_controls_are_named(self) -> None:
        assert make_visible("\x9b\u202egpj.exe\u2066") == "<U+009B><U+202E>gpj.exe<U+2066>"

    def test_a_lone_carriage_return_hides_nothing(self) -> None:
        assert make_visible("rm -rf x\recho hi\r\ndone\n") == "rm -rf x\necho hi\ndone\n"

    def test_tabs_line_feeds_and_other_scripts_stay(self) -> None:
        assert make_visible("a\tb\n日本語 עברית 👩‍💻") == "a\tb\n日本語 עברית 👩‍💻"


class TestOutputCollector:
    def test_short_output_is_whole(self) -> None:
        output = collected(b"hello\n").output()
        assert (output.text, output.total_bytes, output.truncated) == ("hello\n", 6, False)

    def test_exactly_the_limit_is_whole(self) -> None:
        assert collected(b"x" * 64).output().text == "x" * 64

    def test_head_and_tail_stay_with_the_number_of_bytes_between(self) -> None:
        output = collected(b"A" * 32 + b"-" * 1_234_567 + b"Z" * 32, piece=1000).output()
        assert output.text == "A" * 32 + "\n[... 1,234,567 bytes left out ...]\n" + "Z" * 32
        assert output.total_bytes == 1_234_631
        assert output.truncated

    def test_a_character_across_two_reads_is_whole(self) -> None:
        collector = OutputCollector(4096)
        collector.add(b"x" * 1023 + "€".encode()[:1])
        collector.add("€".encode()[1:])
        assert collector.output().text == "x" * 1023 + "€"

    def test_a_character_at_the_cut_is_left_out_whole_and_counted(self) -> None:
        data = ("€" * 100).encode()
        output = collected(data, limit=20).output()
        head, mark, tail = output.text.split("\n")
        assert (head, tail) == ("€€€", "€€€")
        assert mark == "[... 282 bytes left out ...]"

    def test_invalid_bytes_are_replaced(self) -> None:
        assert collected(b"\x80\xfe ok").output().text == "\ufffd\ufffd ok"

    def test_asking_twice_gives_the_same(self) -> None:
        collector = collected(b"ab" * 1000)
        assert collector.output() == collector.output()

    def test_memory_is_flat(self) -> None:
        collector = OutputCollector(65_536)
        piece = b"x" * 65_536
        tracemalloc.start()
        for _ in range(1_000):
            collector.add(piece)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 512 * 1024
        assert collector.output().total_bytes == 65_536_000

    @given(st.binary(max_size=400), st.integers(2, 100), st.integers(1, 50))
    def test_any_bytes_give_bounded_valid_text(self, data: bytes, limit: int, piece: int) -> None:
        output = collected(data, limit, piece).output()
        assert output.total_bytes == len(data)
        assert len(output.text.encode("utf-8")) <= 4 * limit + 60
        assert not any(ord(char) < 32 and char not in "\n\t" for char in output.text)
        assert output.truncated == (len(data) > limit)

    @given(st.text(max_size=200), st.integers(1, 9))
    def test_valid_text_is_never_torn_by_reads(self, text: str, piece: int) -> None:
        assert collected(text.encode(), limit=10_000, piece=piece).output().text == make_visible(text)

    @given(st.text(alphabet="aé€😀", min_size=60, max_size=200), st.integers(2, 40))
    def test_valid_text_is_never_torn_by_the_cut(self, text: str, limit: int) -> None:
        assert "\ufffd" not in collected(text.encode(), limit).output().text
