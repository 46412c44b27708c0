from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.control.request import CommandRequest, CommandResult, CommandStatus
from agent.loop import run_conversation
from agent.models.base import (
    MAX_CALLS,
    AssistantMessage,
    Done,
    Message,
    ModelRequest,
    StopReason,
    TextDelta,
    ToolSpec,
    UserMessage,
)
from agent.models.offline import OfflineModel
from agent.models.offline.phrases import SHOWN_CHARS, pieces
from agent.models.offline.words import WORDS
from agent.testing import FakeGate, MemoryJournal, ran
from agent.turn_context import Answer
from tests.agent.turns import Turn

ALL = ("terminal", "read_file", "write_file", "list_files")


async def answer(messages: Sequence[Message], tools: Sequence[str] = ALL) -> tuple[Done, list[str]]:
    specs = tuple(ToolSpec(name, "", {"type": "object"}) for name in tools)
    events = [event async for event in OfflineModel().stream(ModelRequest("", tuple(messages), specs))]
    done = events.pop()
    assert isinstance(done, Done)
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(deltas) == len(events)
    assert "".join(deltas) == done.message.text
    return done, deltas


async def read(text: str, tools: Sequence[str] = ALL) -> list[tuple[str, Any]]:
    done, _ = await answer([UserMessage(text)], tools)
    return [(call.name, json.loads(call.arguments)) for call in done.message.calls]


async def talk(text: str, gate: FakeGate) -> Answer:
    return await run_conversation(Turn(OfflineModel(), MemoryJournal([UserMessage(text)]), gate).ctx())


class TestReading:
    @pytest.mark.parametrize(
        ("text", "calls"),
        [
            ("$ echo hi", [("terminal", {"script": "echo hi"})]),
            ("  $ echo hi \n", [("terminal", {"script": "echo hi"})]),
            ("$ a\n$ b\r\n$ c", [("terminal", {"script": script}) for script in "abc"]),
            (
                "$ cat <<'E'\none\n\n  two\nE\n$ next",
                [("terminal", {"script": "cat <<'E'\none\n\n  two\nE"}), ("terminal", {"script": "next"})],
            ),
            ("please do\n$ this", [("terminal", {"script": "this"})]),
            ("$ echo a | wc -l", [("terminal", {"script": "echo a | wc -l"})]),
            ("$ read x", [("terminal", {"script": "read x"})]),
            ("read a.txt", [("read_file", {"path": "a.txt"})]),
            ("READ A.txt", [("read_file", {"path": "A.txt"})]),
            ('read "my file.txt"', [("read_file", {"path": "my file.txt"})]),
            ("读取 a.txt", [("read_file", {"path": "a.txt"})]),
            ("write a.txt hello there", [("write_file", {"path": "a.txt", "content": "hello there"})]),
            ("Write 'b c' one\ntwo", [("write_file", {"path": "b c", "content": "one\ntwo"})]),
            ("write a.txt\n  indented", [("write_file", {"path": "a.txt", "content": "  indented"})]),
            ("写入 a.txt 你好", [("write_file", {"path": "a.txt", "content": "你好"})]),
            ("list", [("list_files", {})]),
            ("List sub", [("list_files", {"path": "sub"})]),
            ("列出", [("list_files", {})]),
        ],
    )
    async def test_what_is_understood(self, text: str, calls: list[tuple[str, Any]]) -> None:
        assert await read(text) == calls

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "hello",
            "$",
            "$5 please",
            "read",
            "read all of this",
            "list all of it",
            "write a.txt",
            "readme a",
            "listen",
        ],
    )
    async def test_anything_else_gets_the_list(self, text: str) -> None:
        done, deltas = await answer([UserMessage(text)])
        assert done.message.calls == ()
        assert done.stop is StopReason.END
        assert "offline interpreter, not a language model" in done.message.text
        assert "`$ COMMAND`" in done.message.text
        assert len(deltas) > 3

    async def test_a_word_without_its_tool_is_not_one(self) -> None:
        assert await read("read a.txt", ["terminal"]) == []
        done, _ = await answer([UserMessage("help")], ["read_file"])
        assert "`read PATH`" in done.message.text
        assert "`$ COMMAND`" not in done.message.text
        done, _ = await answer([UserMessage("help")], [])
        assert "no tool is available" in done.message.text

    async def test_one_line_that_nobody_knows_stops_the_whole_message(self) -> None:
        done, _ = await answer([UserMessage("$ echo a\n!files:clean path=/x\n$ echo b")])
        assert done.message.calls == ()
        assert "nothing was run" in done.message.text
        assert "!files:clean path=/x" in done.message.text

    async def test_too_many_calls_are_refused_before_any_runs(self) -> None:
        assert len(await read("$ a\n" * MAX_CALLS)) == MAX_CALLS
        done, _ = await answer([UserMessage("$ a\n" * (MAX_CALLS + 1))])
        assert done.message.calls == ()
        assert "at most 32 calls" in done.message.text

    async def test_calls_end_with_their_stop_reason(self) -> None:
        done, _ = await answer([UserMessage("$ a")])
        assert done.stop is StopReason.TOOL_CALLS

    @given(st.text(alphabet="$! \nabread写", max_size=60))
    @settings(deadline=None)
    async def test_any_text_is_answered_the_same_way_twice(self, text: str) -> None:
        first, _ = await answer([UserMessage(text)])
        second, _ = await answer([UserMessage(text)])
        assert first == second
        assert bool(first.message.calls) != bool(first.message.text)


class TestChinese:
    async def test_the_list(self) -> None:
        done, _ = await answer([UserMessage("你好")])
        assert "不是语言模型" in done.message.text
        assert "offline" not in done.message.text

    async def test_the_other_sentences(self) -> None:
        done, _ = await answer([UserMessage("!未知")])
        assert "没有运行" in done.message.text
        done, _ = await answer([UserMessage("$ 文\n" * 40)])
        assert "最多 32 次" in done.message.text
        done, _ = await answer([UserMessage("你好")], [])
        assert "没有可用的工具" in done.message.text

    def test_every_word_is_described_in_both(self) -> None:
        assert all(word.english and word.chinese for word in WORDS)


class TestResults:
    async def test_output(self) -> None:
        assert await talk("$ echo hi", FakeGate(lambda _: ran("hi\n"))) == Answer("```\nhi\n```")

    async def test_exit_status(self) -> None:
        assert await talk("$ x", FakeGate(lambda _: ran("oops\n", 2))) == Answer("```\noops\nexit status 2\n```")

    async def test_the_reason_of_a_refusal(self) -> None:
        gate = FakeGate(judge=lambda _: CommandStatus.REFUSED)
        assert await talk("$ rm -rf /", gate) == Answer("Not run: refused.")

    async def test_several_calls_each_under_its_command_line(self) -> None:
        def judge(request: CommandRequest) -> CommandStatus | None:
            return CommandStatus.DENIED if request.args["script"].startswith("rm") else None

        def run(request: CommandRequest) -> CommandResult:
            return ran(f"out of {request.args['script'][:4]}")

        text = "$ echo a\n$ rm b\n$ cat <<E\nx\nE"
        parts = (await talk(text, FakeGate(run, judge=judge))).text.split("\n\n")
        assert parts == [
            "```\n$ echo a\nout of echo\n```",
            "```\n$ rm b\n```\nNot run: denied.",
            "```\n$ cat <<E …\nout of cat \n```",
        ]

    async def test_sentences_are_not_shown_as_output(self) -> None:
        assert await talk("write a.txt x", FakeGate(lambda _: ran("Wrote 1 byte."))) == Answer("Wrote 1 byte.")

    async def test_the_fence_is_longer_than_any_in_the_output(self) -> None:
        reply = await talk("$ x", FakeGate(lambda _: ran("a\n````\nb")))
        assert reply.text == "`````\na\n````\nb\n`````"

    async def test_the_output_is_bounded_and_keeps_its_ends(self) -> None:
        reply = await talk("$ x", FakeGate(lambda _: ran("a" * 200_000 + "\n", 9)))
        assert len(reply.text) < SHOWN_CHARS + 200
        assert reply.text.startswith("```\naaa")
        assert reply.text.endswith("aaa\nexit status 9\n```")
        assert "characters left out" in reply.text

    async def test_the_next_message_is_read_afresh(self) -> None:
        turn = Turn(OfflineModel(), MemoryJournal([UserMessage("$ a")]), FakeGate(lambda _: ran("first")))
        first = await run_conversation(turn.ctx())
        turn.journal.messages += [AssistantMessage(first.text), UserMessage("hello")]
        assert "offline interpreter" in (await run_conversation(turn.ctx())).text


@given(st.text(alphabet="ab \n`文", max_size=300))
@settings(deadline=None)
def test_the_pieces_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text
    assert all(len(piece) <= 61 for piece in pieces(text))
