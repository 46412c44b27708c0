from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.history import INTERRUPTED, clean_text, repair, running_turn, unanswered, validate
from agent.models.base import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

IDS = st.sampled_from(["a", "b", "c", "d", ""])
ARGUMENTS = st.sampled_from(["{}", '{"x": 1}', "null", "[1]", '"x"', '{"path": "a', "", '{"x": NaN}'])
NAMES = st.sampled_from(["terminal", "read_file", "bad name!", "", "x" * 100])
TEXTS = st.sampled_from(["", "  ", "hello", "half a pair \ud800", "文"])
CALLS = st.builds(ToolCall, IDS, NAMES, ARGUMENTS)
MESSAGES = st.lists(
    st.one_of(
        st.builds(UserMessage, TEXTS),
        st.builds(AssistantMessage, TEXTS, st.lists(CALLS, max_size=3).map(tuple)),
        st.builds(ToolMessage, IDS, NAMES, TEXTS, st.booleans()),
    ),
    max_size=12,
)


def call(call_id: str, name: str = "terminal", arguments: str = "{}") -> ToolCall:
    return ToolCall(call_id, name, arguments)


class TestRepair:
    @given(MESSAGES)
    @settings(deadline=None)
    def test_whatever_the_history_the_result_is_valid(self, messages: list[Message]) -> None:
        assert validate(repair(messages)) == []

    @given(MESSAGES)
    @settings(deadline=None)
    def test_it_changes_nothing_the_second_time(self, messages: list[Message]) -> None:
        once = repair(messages)
        assert repair(once) == once

    @given(MESSAGES)
    @settings(deadline=None)
    def test_it_leaves_its_input_alone(self, messages: list[Message]) -> None:
        before = list(messages)
        repair(messages)
        assert messages == before

    @given(MESSAGES)
    @settings(deadline=None)
    def test_every_word_of_a_person_is_kept_in_order(self, messages: list[Message]) -> None:
        said = [clean_text(m.text) for m in messages if isinstance(m, UserMessage) and m.text.strip()]
        assert [m.text for m in repair(messages) if isinstance(m, UserMessage)] == said

    @given(MESSAGES)
    @settings(deadline=None)
    def test_no_call_is_lost_and_no_answer_invented(self, messages: list[Message]) -> None:
        repaired = repair(messages)
        calls = [c for m in messages if isinstance(m, AssistantMessage) for c in m.calls]
        assert len([c for m in repaired if isinstance(m, AssistantMessage) for c in m.calls]) == len(calls)
        real = {clean_text(m.text) for m in messages if isinstance(m, ToolMessage)}
        assert {m.text for m in repaired if isinstance(m, ToolMessage)} <= real | {INTERRUPTED}

    def test_a_valid_history_is_returned_as_it_is(self) -> None:
        history: list[Message] = [
            UserMessage("one"),
            UserMessage("two"),
            AssistantMessage("on it", (call("a"), call("b"))),
            ToolMessage("a", "terminal", "1"),
            ToolMessage("b", "terminal", "2", ok=False),
            AssistantMessage("done"),
        ]
        assert validate(history) == []
        assert repair(history) == history

    def test_an_orphan_is_dropped(self) -> None:
        assert repair([ToolMessage("x", "terminal", "?"), UserMessage("hi")]) == [UserMessage("hi")]

    def test_an_answer_before_its_call_is_an_orphan(self) -> None:
        repaired = repair([ToolMessage("a", "terminal", "early"), AssistantMessage("", (call("a"),))])
        assert repaired[1:] == [ToolMessage("a", "terminal", INTERRUPTED, ok=False)]

    def test_a_call_of_an_old_turn_is_answered_as_interrupted(self) -> None:
        repaired = repair([AssistantMessage("", (call("a"),)), UserMessage("next")])
        assert repaired == [
            AssistantMessage("", (call("a"),)),
            ToolMessage("a", "terminal", INTERRUPTED, ok=False),
            UserMessage("next"),
        ]

    def test_answers_move_behind_their_calls_in_order(self) -> None:
        repaired = repair(
            [
                AssistantMessage("", (call("a"), call("b"))),
                ToolMessage("b", "terminal", "2"),
                UserMessage("and?"),
                ToolMessage("a", "terminal", "1"),
            ]
        )
        assert [m.text for m in repaired] == ["", "1", "2", "and?"]

    def test_a_second_answer_is_dropped(self) -> None:
        repaired = repair(
            [
                AssistantMessage("", (call("a"),)),
                ToolMessage("a", "terminal", "first"),
                ToolMessage("a", "terminal", "second"),
            ]
        )
        assert [m.text for m in repaired] == ["", "first"]

    def test_the_name_of_an_answer_is_that_of_its_call(self) -> None:
        repaired = repair([AssistantMessage("", (call("a", "bad name!"),)), ToolMessage("a", "other", "x")])
        assert repaired == [
            AssistantMessage("", (call("a", "bad_name_"),)),
            ToolMessage("a", "bad_name_", "x"),
        ]

    def test_broken_arguments_do_not_reach_the_model(self) -> None:
        repaired = repair([AssistantMessage("", (call("a", arguments='{"path": "a'),))])
        assert repaired[0] == AssistantMessage("", (call("a"),))


class TestUnanswered:
    def test_calls_of_the_last_message_without_their_answers(self) -> None:
        history: list[Message] = [
            UserMessage("go"),
            AssistantMessage("", (call("a"), call("b"), call("c"))),
            ToolMessage("a", "terminal", "1"),
        ]
        assert unanswered(history) == (call("b"), call("c"))

    def test_a_turn_that_a_person_has_followed_is_over(self) -> None:
        assert unanswered([AssistantMessage("", (call("a"),)), UserMessage("next")]) == ()

    def test_nothing_is_open_after_plain_text_or_at_the_start(self) -> None:
        assert unanswered([UserMessage("go"), AssistantMessage("done")]) == ()
        assert unanswered([]) == ()


def test_the_running_turn_begins_after_the_last_words_of_a_person() -> None:
    answer = AssistantMessage("", (call("b"),))
    assert running_turn([AssistantMessage("old"), UserMessage("go"), answer]) == [answer]
    assert running_turn([UserMessage("go")]) == []


def test_clean_text_joins_pairs_and_replaces_halves() -> None:
    assert clean_text("a\ud83d\ude00b") == "a\U0001f600b"
    assert clean_text("a\ud800b") == "a\ufffdb"
    assert clean_text("plain 文") == "plain 文"


class TestValidate:
    def test_it_names_each_fault(self) -> None:
        problems = validate(
            [
                ToolMessage("x", "terminal", "?"),
                AssistantMessage("", (call("a"), call("a"))),
                UserMessage("next"),
                AssistantMessage("", (call("b", arguments="null"),)),
            ]
        )
        assert problems == [
            "message 0 answers 'x', which is not due",
            "call id 'a' of message 1 is not unique",
            "call 'a' is not answered before message 2",
            "call 'a' is not answered before message 2",
            "message 3 is malformed",
            "call 'b' is never answered",
        ]
