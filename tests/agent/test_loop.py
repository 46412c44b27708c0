from __future__ import annotations

import asyncio

import pytest

from agent.budget import IterationBudget
from agent.control.clock import ManualClock
from agent.control.request import CommandRequest, CommandStatus
from agent.events import ToolState
from agent.exceptions import ModelError
from agent.history import INTERRUPTED, validate
from agent.loop import run_conversation
from agent.models.base import (
    MAX_CALLS,
    AssistantMessage,
    Done,
    Message,
    ModelRequest,
    StopReason,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
    Working,
)
from agent.repeats import END_AT, NOTE, TELL_AT
from agent.testing import HANG, FakeGate, MemoryJournal, Pause, ScriptedModel, calls, ran
from agent.turn_context import Answer
from tests.agent.turns import Turn, journal_of, simple_tool

SHELL = ("terminal", '{"script": "echo hi"}')


def results(journal: MemoryJournal) -> list[ToolMessage]:
    return [message for message in journal.messages if isinstance(message, ToolMessage)]


class TestAnswer:
    async def test_plain_text_is_the_answer_and_streams(self) -> None:
        turn = Turn(ScriptedModel("one\ntwo\n"))
        assert await run_conversation(turn.ctx()) == Answer("one\ntwo")
        assert turn.sink.deltas == ["one\n", "two\n"]
        assert turn.journal.messages == [UserMessage("do it")]

    async def test_the_stream_is_closed_before_the_turn_goes_on(self) -> None:
        model = ScriptedModel("done")
        await run_conversation(Turn(model).ctx())
        assert model.open_streams == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def test_the_model_sees_system_history_and_tools(self) -> None:
        model = ScriptedModel("done")
        turn = Turn(model)
        await run_conversation(turn.ctx())
        (request,) = model.requests
        assert request.system == "You are a test."
        assert request.messages == (UserMessage("do it"),)
        assert [tool.name for tool in request.tools] == ["terminal", "read_file", "write_file", "list_files"]

    async def test_calls_are_run_and_their_results_given_back(self) -> None:
        model = ScriptedModel(calls(SHELL, text="I look."), "done")
        turn = Turn(model, gate=FakeGate(lambda _: ran("hi\n")))
        assert await run_conversation(turn.ctx()) == Answer("done")
        assert turn.sink.tools == [("terminal", ToolState.START), ("terminal", ToolState.END)]
        assistant, result = turn.journal.messages[1:]
        assert isinstance(assistant, AssistantMessage)
        assert assistant.text == "I look."
        assert result == ToolMessage(assistant.calls[0].id, "terminal", "hi")
        assert model.requests[1].messages == tuple(turn.journal.messages)

    async def test_call_ids_are_our_own_and_become_request_ids(self) -> None:
        turn = Turn(ScriptedModel(calls(SHELL), calls(SHELL), "done"))
        await run_conversation(turn.ctx())
        ids = [request.request_id for request in turn.gate.asked]
        assert len(set(ids)) == 2
        assert all(len(call_id) == len("call_") + 32 and call_id.startswith("call_") for call_id in ids)

    async def test_text_cut_by_the_length_limit_says_so(self) -> None:
        end = Done(AssistantMessage("half a"), StopReason.LENGTH)
        answer = await run_conversation(Turn(ScriptedModel([TextDelta("half a"), end])).ctx())
        assert answer.text.startswith("half a\n\n(")
        assert "go on" in answer.text

    async def test_a_declined_answer_is_told_and_its_calls_are_not_run(self) -> None:
        turn = Turn(ScriptedModel([Done(calls(SHELL), StopReason.REFUSAL)]))
        answer = await run_conversation(turn.ctx())
        assert answer == Answer("The model declined to answer this.", failed=True)
        assert turn.gate.asked == []


class TestEmptyAnswer:
    async def test_one_retry(self) -> None:
        assert await run_conversation(Turn(ScriptedModel("", "now")).ctx()) == Answer("now")

    async def test_then_a_plain_sentence(self) -> None:
        model = ScriptedModel([Working(), Done(AssistantMessage("  \n"), StopReason.END)])
        answer = await run_conversation(Turn(model).ctx())
        assert answer.failed
        assert "empty answer twice" in answer.text
        assert len(model.requests) == 2

    async def test_text_that_came_with_the_calls_is_the_answer_when_nothing_follows(self) -> None:
        model = ScriptedModel(calls(SHELL, text="Looking at the disk."), "")
        assert await run_conversation(Turn(model).ctx()) == Answer("Looking at the disk.")
        assert len(model.requests) == 2

    async def test_text_of_an_older_turn_is_not(self) -> None:
        journal = journal_of(UserMessage("a"), AssistantMessage("old text"), UserMessage("b"))
        answer = await run_conversation(Turn(ScriptedModel(""), journal=journal).ctx())
        assert answer.failed
        assert "old text" not in answer.text


class TestTools:
    async def test_an_unknown_tool_is_an_error_for_the_model(self) -> None:
        turn = Turn(ScriptedModel(calls(("rm_tool", "{}")), "done"))
        assert await run_conversation(turn.ctx()) == Answer("done")
        (result,) = results(turn.journal)
        assert not result.ok
        assert result.text.startswith("There is no tool 'rm_tool'. The tools are: terminal, read_file")
        assert turn.sink.tools == []

    @pytest.mark.parametrize("raw", ["", "null", "[1]", '"x"', "{", '{"script": "rm', '{"script": 1}', '{"sc": "a"}'])
    async def test_nothing_runs_with_invented_arguments(self, raw: str) -> None:
        turn = Turn(ScriptedModel(calls(("terminal", raw)), "done"))
        await run_conversation(turn.ctx())
        (result,) = results(turn.journal)
        assert turn.gate.asked == []
        assert not result.ok
        assert "Parameters of terminal: script (string, required)" in result.text

    async def test_the_model_never_sees_broken_arguments_again(self) -> None:
        model = ScriptedModel(calls(("terminal", '{"script": "rm'), ("bad name!", "{}")), "done")
        await run_conversation(Turn(model).ctx())
        assert validate(model.requests[1].messages) == []

    async def test_an_exception_is_a_result_without_its_message_or_traceback(self) -> None:
        turn = Turn(
            ScriptedModel(calls(("boom", "{}"), SHELL), "done"),
            more_tools=[simple_tool("boom", KeyError("sekrit"))],
        )
        assert await run_conversation(turn.ctx()) == Answer("done")
        first, second = results(turn.journal)
        assert (first.ok, second.ok) == (False, True)
        assert "KeyError" in first.text
        assert "sekrit" not in first.text
        assert turn.sink.tools[1] == ("boom", ToolState.END)

    async def test_a_message_with_too_many_calls_runs_none(self) -> None:
        turn = Turn(ScriptedModel(calls(*[SHELL] * 1_000), "done"))
        assert await run_conversation(turn.ctx()) == Answer("done")
        assert turn.gate.asked == []
        answers = results(turn.journal)
        assert len(answers) == 4 * MAX_CALLS
        assert {answer.text for answer in answers} == {
            "None of these calls was run: at most 32 may come in one message. Send fewer at a time."
        }

    async def test_an_oversized_result_is_cut_in_the_middle(self) -> None:
        turn = Turn(ScriptedModel(calls(("big", "{}")), "done"), more_tools=[simple_tool("big", "a" * 500_000 + "z")])
        await run_conversation(turn.ctx())
        (result,) = results(turn.journal)
        assert len(result.text) < 263_000
        assert "characters left out" in result.text
        assert result.text.endswith("z")

    async def test_what_cannot_be_encoded_is_replaced_before_it_is_kept(self) -> None:
        turn = Turn(
            ScriptedModel(calls(("odd", '{"a": "x"}'), text="t\ud800"), "done\ud800"),
            more_tools=[simple_tool("odd", "r\ud800")],
        )
        assert await run_conversation(turn.ctx()) == Answer("done\ufffd")
        assert [message.text for message in turn.journal.messages] == ["do it", "t\ufffd", "r\ufffd"]

    async def test_arguments_that_cannot_be_encoded_are_not_run_changed(self) -> None:
        turn = Turn(ScriptedModel(calls(("terminal", '{"script": "rm \ud800"}')), "done"))
        await run_conversation(turn.ctx())
        assert turn.gate.asked == []
        (result,) = results(turn.journal)
        assert "not one whole JSON object" in result.text
        result.text.encode()


class TestJournalBeforeStep:
    async def test_each_write_comes_before_what_it_stands_for(self) -> None:
        steps: list[str] = []

        def wrote(message: Message) -> None:
            steps.append("assistant" if isinstance(message, AssistantMessage) else f"result {message.text}")

        def ask(request: ModelRequest) -> AssistantMessage | str:
            steps.append("model")
            return calls(SHELL, SHELL) if len(request.messages) == 1 else "done"

        number = iter("123")
        gate = FakeGate(lambda _: ran(next(number)), on_step=lambda name, _: steps.append(name))
        turn = Turn(ScriptedModel(ask), MemoryJournal([UserMessage("go")], on_write=wrote), gate)
        await run_conversation(turn.ctx())
        assert steps == [
            "model",
            "assistant",
            *["started", "ended", "result 1"],
            *["started", "ended", "result 2"],
            "model",
        ]

    async def test_a_failing_journal_ends_the_turn_with_its_own_error(self) -> None:
        def full(message: Message) -> None:
            if isinstance(message, ToolMessage):
                raise OSError("disk full")

        turn = Turn(ScriptedModel(calls(SHELL, SHELL)), MemoryJournal([UserMessage("go")], on_write=full))
        with pytest.raises(OSError, match="disk full"):
            await run_conversation(turn.ctx())
        assert len(turn.gate.starts) == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}


class TestBudget:
    async def test_at_the_limit_one_last_request_without_tools(self) -> None:
        varied = [calls(("terminal", f'{{"script": "echo {n}"}}')) for n in range(3)]
        model = ScriptedModel(*varied, "what I found")
        turn = Turn(model, budget=IterationBudget(3))
        answer = await run_conversation(turn.ctx())
        assert answer.text.startswith("what I found\n\n(I stopped after 3 steps")
        assert "go on" in answer.text
        assert [len(request.tools) for request in model.requests] == [4, 4, 4, 0]
        assert "# Last step" in model.requests[3].system

    async def test_calls_of_the_last_request_are_not_run(self) -> None:
        turn = Turn(ScriptedModel(calls(SHELL)), budget=IterationBudget(1))
        answer = await run_conversation(turn.ctx())
        assert answer.failed
        assert "I stopped after 1 steps" in answer.text
        assert len(turn.gate.asked) == 1

    async def test_an_error_of_the_last_request_still_tells_of_the_limit(self) -> None:
        model = ScriptedModel(calls(SHELL), [ModelError("x", person="No luck.")])
        answer = await run_conversation(Turn(model, budget=IterationBudget(1)).ctx())
        assert answer.failed
        assert answer.text.startswith("No luck.\n\n(I stopped after 1 steps")

    async def test_a_shared_budget_that_is_spent_already(self) -> None:
        budget = IterationBudget(1)
        budget.spend()
        model = ScriptedModel("short")
        answer = await run_conversation(Turn(model, budget=budget).ctx())
        assert answer.text.startswith("short\n\n(")
        assert model.requests[0].tools == ()


class TestCircle:
    async def test_the_third_time_tells_the_model_and_the_fifth_ends_the_turn(self) -> None:
        model = ScriptedModel(calls(("read_file", '{"path": "x"}')))
        turn = Turn(model, gate=FakeGate(lambda _: ran("same")))
        answer = await run_conversation(turn.ctx())
        assert answer.failed
        assert f"`read_file`) gave the same result {END_AT} times in a row" in answer.text
        assert [NOTE in result.text for result in results(turn.journal)] == [False, False, True, True, True]
        assert len(model.requests) == END_AT

    async def test_another_result_breaks_the_row(self) -> None:
        number = iter(range(100))
        model = ScriptedModel(*[calls(SHELL)] * 8, "done")
        turn = Turn(model, gate=FakeGate(lambda _: ran(str(next(number)))))
        assert await run_conversation(turn.ctx()) == Answer("done")

    async def test_equal_calls_of_one_message_count_once(self) -> None:
        turn = Turn(ScriptedModel(calls(*[SHELL] * 7), "done"), gate=FakeGate(lambda _: ran("hi")))
        assert await run_conversation(turn.ctx()) == Answer("done")
        assert not any(NOTE in result.text for result in results(turn.journal))

    async def test_a_restart_does_not_reset_the_count(self) -> None:
        messages: list[Message] = [UserMessage("go")]
        for number in range(TELL_AT - 1):
            messages.append(AssistantMessage("", (ToolCall(f"old{number}", *SHELL),)))
            messages.append(ToolMessage(f"old{number}", "terminal", "hi"))
        messages.append(AssistantMessage("", (ToolCall("open", *SHELL),)))
        turn = Turn(ScriptedModel("done"), MemoryJournal(messages), FakeGate(lambda _: ran("hi")))
        await run_conversation(turn.ctx())
        assert results(turn.journal)[-1].text == f"hi{NOTE}"


class TestModelFails:
    async def test_silence(self) -> None:
        model = ScriptedModel([TextDelta("I"), HANG])
        turn = Turn(model)
        task = asyncio.create_task(run_conversation(turn.ctx()))
        await turn.clock.advance(44.9)
        assert not task.done()
        assert turn.activity.held == ["model"]
        await turn.clock.advance(0.2)
        answer = await task
        assert answer.failed
        assert "nothing for 45 s" in answer.text
        assert "again" in answer.text
        assert turn.activity.held == []
        assert model.open_streams == 0

    async def test_every_event_ends_the_silence_but_the_whole_has_a_limit_too(self) -> None:
        clock = ManualClock()
        model = ScriptedModel([event for _ in range(100) for event in (Pause(30), Working())], clock=clock)
        turn = Turn(model, clock=clock)
        task = asyncio.create_task(run_conversation(turn.ctx()))
        await clock.advance(599)
        assert not task.done()
        await clock.advance(2)
        answer = await task
        assert answer.failed
        assert "not done after 600 s" in answer.text
        assert turn.activity.touches == ["model"] * 19
        assert turn.activity.leases == [("model", 600.0)]

    async def test_a_stream_without_its_end_was_cut_and_nothing_of_it_runs(self) -> None:
        turn = Turn(ScriptedModel([TextDelta("three little words")]))
        answer = await run_conversation(turn.ctx())
        assert answer.failed
        assert "broke off" in answer.text
        assert turn.journal.messages == [UserMessage("do it")]

    async def test_an_error_of_the_model_is_told_in_its_own_words(self) -> None:
        model = ScriptedModel([ModelError("429 after 5 tries: <html>", person="The model is overloaded. Try later.")])
        assert await run_conversation(Turn(model).ctx()) == Answer("The model is overloaded. Try later.", failed=True)

    async def test_an_unexpected_error_shows_nothing_of_itself(self) -> None:
        answer = await run_conversation(Turn(ScriptedModel([ValueError("sk-secret")])).ctx())
        assert answer.failed
        assert "sk-secret" not in answer.text

    async def test_after_tools_have_run_their_results_are_kept(self) -> None:
        turn = Turn(ScriptedModel(calls(SHELL), [TextDelta("x")]))
        assert (await run_conversation(turn.ctx())).failed
        assert [result.text for result in results(turn.journal)] == ["did terminal"]


class TestInterrupted:
    def journal(self, *answered: str) -> MemoryJournal:
        open_calls = tuple(ToolCall(call_id, *SHELL) for call_id in ("c1", "c2", "c3"))
        return journal_of(
            UserMessage("go"),
            AssistantMessage("", open_calls),
            *(ToolMessage(call_id, "terminal", f"was {call_id}") for call_id in answered),
        )

    async def test_exactly_the_open_calls_are_taken_up(self) -> None:
        turn = Turn(ScriptedModel("done"), self.journal("c1"))
        assert await run_conversation(turn.ctx()) == Answer("done")
        assert [request.request_id for request in turn.gate.asked] == ["c2", "c3"]
        assert turn.sink.lines == ["Going on where this was interrupted."]
        assert validate(turn.journal.messages) == []

    async def test_what_had_started_is_not_started_again(self) -> None:
        turn = Turn(ScriptedModel("done"), self.journal("c1"))
        turn.gate.starts.append("c2")
        await run_conversation(turn.ctx())
        assert turn.gate.starts == ["c2", "c3"]
        assert [(result.call_id, result.ok) for result in results(turn.journal)] == [
            ("c1", True),
            ("c2", False),
            ("c3", True),
        ]

    async def test_a_tool_without_a_record_of_its_own_is_in_doubt_only_where_it_may_have_run(self) -> None:
        open_calls = tuple(ToolCall(call_id, "poke", "{}") for call_id in ("c1", "c2"))
        journal = journal_of(UserMessage("go"), AssistantMessage("", open_calls))
        turn = Turn(ScriptedModel("done"), journal, more_tools=[simple_tool("poke")])
        await run_conversation(turn.ctx())
        assert [result.text for result in results(journal)] == [INTERRUPTED, "fine"]

    async def test_a_repeatable_tool_is_called_again(self) -> None:
        journal = journal_of(UserMessage("go"), AssistantMessage("", (ToolCall("c1", "look", "{}"),)))
        turn = Turn(ScriptedModel("done"), journal, more_tools=[simple_tool("look", repeatable=True)])
        await run_conversation(turn.ctx())
        assert [result.text for result in results(journal)] == ["fine"]

    async def test_calls_of_an_old_turn_stay_as_they_are(self) -> None:
        model = ScriptedModel("done")
        journal = self.journal("c1")
        journal.messages.append(UserMessage("something else"))
        turn = Turn(model, journal)
        await run_conversation(turn.ctx())
        assert turn.gate.asked == []
        assert [m.text for m in model.requests[0].messages if isinstance(m, ToolMessage)] == [
            "was c1",
            INTERRUPTED,
            INTERRUPTED,
        ]

    async def test_a_message_with_too_many_calls_stays_refused(self) -> None:
        too_many = tuple(ToolCall(f"c{number}", *SHELL) for number in range(MAX_CALLS + 1))
        answered = [ToolMessage(call.id, "terminal", "no", ok=False) for call in too_many[:5]]
        turn = Turn(ScriptedModel("done"), journal_of(UserMessage("go"), AssistantMessage("", too_many), *answered))
        await run_conversation(turn.ctx())
        assert turn.gate.asked == []
        assert len(results(turn.journal)) == MAX_CALLS + 1


async def test_a_denial_reaches_the_model_as_a_failed_result() -> None:
    def judge(_: CommandRequest) -> CommandStatus:
        return CommandStatus.DENIED

    turn = Turn(ScriptedModel(calls(SHELL), "told"), gate=FakeGate(judge=judge))
    await run_conversation(turn.ctx())
    (result,) = results(turn.journal)
    assert (result.ok, result.text) == (False, "Not run: denied.")
    assert turn.sink.tools == []
