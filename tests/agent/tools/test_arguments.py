from __future__ import annotations

from typing import Annotated

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.exceptions import ToolArgumentsInvalid
from agent.models.base import ToolSpec
from agent.tools.arguments import (
    MAX_ARGUMENTS_CHARS,
    Arguments,
    describe_parameters,
    parameters_of,
    parse_arguments,
    tool_of,
)
from agent.tools.registry import Invocation, Tool, ToolResult


class Place(msgspec.Struct, frozen=True):
    """Something nested."""

    title: str


class Sample(Arguments, frozen=True):
    """Not for the model."""

    name: Annotated[str, msgspec.Meta(min_length=1, description="Who.")]
    title: str | None = None
    age: Annotated[int, msgspec.Meta(ge=0)] | None = None
    kind: int | str | None = None
    places: tuple[Place, ...] = ()


class Chain(Arguments, frozen=True):
    """Refers to itself."""

    rest: Chain | None = None


async def handle(invocation: Invocation) -> ToolResult:
    return ToolResult(str(invocation.arguments))


SAMPLE = tool_of("sample", "a sample", Sample, handle)
FREE = Tool(ToolSpec("free", "", {"type": "object"}), handle)


class TestSchema:
    def test_it_is_one_plain_object(self) -> None:
        assert parameters_of(Sample) == {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "Who."},
                "title": {"type": "string"},
                "age": {"type": "integer", "minimum": 0},
                "kind": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "places": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "description": "Something nested.",
                        "properties": {"title": {"type": "string"}},
                        "required": ["title"],
                    },
                    "default": [],
                },
            },
            "required": ["name"],
            "additionalProperties": False,
        }

    def test_a_type_that_refers_to_itself_cannot_be_written_out(self) -> None:
        with pytest.raises(ValueError, match="Chain refers to itself"):
            parameters_of(Chain)

    def test_described_in_a_line(self) -> None:
        assert describe_parameters(parameters_of(Sample)) == (
            "name (string, required), title (string), age (integer), kind (integer or string), places (array)"
        )
        assert describe_parameters({"type": "object"}) == "none"
        assert describe_parameters({"properties": {"x": {"type": ["string", "null"]}}}) == "x (string or null)"


class TestParse:
    def test_what_is_given_is_there_and_nothing_else(self) -> None:
        assert parse_arguments(SAMPLE, '{"name": "a", "age": null, "title": "t"}') == {"name": "a", "title": "t"}

    @pytest.mark.parametrize(
        ("raw", "why"),
        [
            ("", "not one whole JSON object"),
            ("null", "Expected `object`, got `null`"),
            ("[1]", "Expected `object`, got `array`"),
            ('"x"', "Expected `object`, got `str`"),
            ('{"name": "a', "not one whole JSON object"),
            ('{"name": "a"} {"name": "b"}', "not one whole JSON object"),
            ('{"name": "\\ud800"}', "not one whole JSON object"),
            ('{"name": "\ud800"}', "not one whole JSON object"),
            ("{}", "missing required field `name`"),
            ('{"name": 1}', "Expected `str`, got `int` - at `$.name`"),
            ('{"name": ""}', "length >= 1"),
            ('{"name": "a", "age": "5"}', "at `$.age`"),
            ('{"name": "a", "nmae": "b"}', "unknown field `nmae`"),
            ('{"name": "a", "places": ' + "[" * 100_000, "Expected `object`, got `array`"),
        ],
    )
    def test_anything_else_is_refused_with_the_reason_and_the_parameters(self, raw: str, why: str) -> None:
        with pytest.raises(ToolArgumentsInvalid) as caught:
            parse_arguments(SAMPLE, raw)
        assert why in str(caught.value)
        assert "Parameters of sample: name (string, required)" in str(caught.value)

    @pytest.mark.parametrize("raw", ["", "null", "[1]", '"x"', "{", "[" * 100_000])
    def test_a_tool_without_a_type_still_takes_only_objects(self, raw: str) -> None:
        with pytest.raises(ToolArgumentsInvalid):
            parse_arguments(FREE, raw)
        assert parse_arguments(FREE, '{"any": [1]}') == {"any": [1]}

    def test_what_is_echoed_is_bounded(self) -> None:
        for raw in ('{"name": "' + "x" * 100_000, '{"' + "y" * 100_000 + '": 1}', "z" * (MAX_ARGUMENTS_CHARS + 1)):
            with pytest.raises(ToolArgumentsInvalid) as caught:
                parse_arguments(SAMPLE, raw)
            assert len(str(caught.value)) < 1_500

    def test_more_than_can_come_in_one_message_is_not_read_at_all(self) -> None:
        with pytest.raises(ToolArgumentsInvalid, match="longer than 1048576 characters"):
            parse_arguments(SAMPLE, '{"name": "a"}' + " " * MAX_ARGUMENTS_CHARS)

    @given(st.text(max_size=40) | st.text(alphabet='{}[]":,nametrulsf0123 ', max_size=40))
    @settings(deadline=None)
    def test_any_text_either_fits_or_is_refused(self, raw: str) -> None:
        try:
            arguments = parse_arguments(SAMPLE, raw)
        except ToolArgumentsInvalid:
            return
        assert isinstance(arguments["name"], str)
