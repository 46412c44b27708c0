from __future__ import annotations

from agent.models.base import AssistantMessage, ToolCall, ToolMessage
from agent.repeats import END_AT, NOTE, TELL_AT, Repeats

LOOK = ToolCall("x", "look", '{"a": 1, "b": 2}')
OTHER = ToolCall("y", "other", "{}")


def step(repeats: Repeats, *results: tuple[ToolCall, str]) -> list[bool]:
    repeats.next_step()
    return [repeats.noted(call, text).endswith(NOTE) for call, text in results]


def test_the_third_step_in_a_row_is_told_and_the_fifth_is_the_end() -> None:
    repeats = Repeats()
    told = []
    for _ in range(END_AT):
        assert not repeats.stuck
        told += step(repeats, (LOOK, "same"))
    assert told == [False] * (TELL_AT - 1) + [True] * (END_AT - TELL_AT + 1)
    assert repeats.stuck
    assert repeats.count == END_AT


def test_equal_json_is_the_same_call() -> None:
    repeats = Repeats()
    step(repeats, (LOOK, "same"))
    step(repeats, (ToolCall("z", "look", '{ "b":2,"a":1 }'), "same"))
    assert repeats.count == 2


def test_broken_json_can_repeat_too() -> None:
    repeats = Repeats()
    for _ in range(END_AT):
        step(repeats, (ToolCall("z", "look", '{"a'), "does not fit"))
    assert repeats.stuck


def test_a_step_without_the_call_breaks_the_row() -> None:
    repeats = Repeats()
    for _ in range(END_AT - 1):
        step(repeats, (LOOK, "same"))
    step(repeats, (OTHER, "x"))
    assert step(repeats, (LOOK, "same")) == [False]


def test_a_call_that_repeats_beside_changing_ones_is_told_but_does_not_end_the_turn() -> None:
    repeats = Repeats()
    for number in range(END_AT + 2):
        told = step(repeats, (LOOK, "same"), (OTHER, str(number)))
    assert told == [True, False]
    assert not repeats.stuck


def test_nothing_is_stuck_before_the_first_call() -> None:
    assert not Repeats().stuck


def test_what_a_turn_has_done_is_taken_up() -> None:
    turn: list[AssistantMessage | ToolMessage] = []
    for number in range(END_AT):
        text = "same" + (NOTE if number + 1 >= TELL_AT else "")
        turn += [AssistantMessage("", (LOOK,)), ToolMessage("x", "look", text)]
    repeats = Repeats()
    repeats.replay(turn)
    assert repeats.stuck
