from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.store import codec, times

moments = st.datetimes(
    min_value=datetime(1000, 1, 2),  # noqa: DTZ001 - the zone is drawn beside it
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.timezones(),
)


@settings(max_examples=50, deadline=None)
@given(moments)
def test_times_come_back(moment: datetime) -> None:
    text = times.to_text(moment)
    assert times.from_text(text) == moment.astimezone(UTC)
    assert len(text) == 27
    assert text.endswith("Z")


@settings(max_examples=50, deadline=None)
@given(moments, moments)
def test_times_sort_as_text(one: datetime, other: datetime) -> None:
    assert (one < other) == (times.to_text(one) < times.to_text(other))


def test_times_without_a_zone_are_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        times.to_text(datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="no time zone"):
        times.from_text("2026-01-01T00:00:00")


def test_the_form_of_a_time() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))
    assert times.to_text(moment) == "2026-01-02T01:04:05.000000Z"
    assert times.maybe_text(None) is None
    assert times.maybe_from(None) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(), json_values, max_size=3))
def test_json_objects_come_back(value: dict[str, object]) -> None:
    assert codec.load_object(codec.dump(value)) == value
    assert codec.load_object(codec.dump_sorted(value)) == value


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters()))
def test_any_text_can_be_stored(text: str) -> None:
    stored = codec.storable(text)
    stored.encode()
    assert len(stored) == len(text)
    assert all(one == other or other == "\ufffd" for one, other in zip(text, stored, strict=True))


def test_lone_surrogates_in_json_do_no_harm() -> None:
    assert codec.load_object(codec.dump({"a": "x\ud800y"})) == {"a": "x\ufffdy"}


def test_other_json_is_refused() -> None:
    with pytest.raises(ValueError, match="object"):
        codec.load_object("[]")
    with pytest.raises(ValueError, match="array"):
        codec.load_array("{}")
    with pytest.raises(ValueError, match="JSON"):
        codec.dump(float("nan"))
