"""Answering asks: only a right answer, in time, by the right person settles one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters.base import CardKind, Choice, TapResult, TapVerdict
from adapters.testing import MemoryAsk
from tests.adapters.http.conftest import Api


async def ask_in(api: Api, **fields: Any) -> MemoryAsk:
    await api.say("do it")
    return api.desk.turn("alice", "main").ask("rm -rf build", **fields)


class TestShape:
    async def test_an_ask_as_pinned(self, api: Api) -> None:
        ask = await ask_in(api, impact="37 files", origin="child 1")
        (shown,) = (await api.json("GET", "/v1/asks"))["asks"]
        assert shown == {
            "id": ask.card.id,
            "code": ask.card.code,
            "request_id": ask.card.request_id,
            "kind": "approval",
            "title": "Delete files",
            "command": "rm -rf build",
            "reason": "it deletes files and folders",
            "rules": ["fs.rm-recursive"],
            "impact": "37 files",
            "token": None,
            "choices": [
                {"value": "once", "label": "Once"},
                {"value": "session", "label": "This session"},
                {"value": "always", "label": "Always"},
                {"value": "deny", "label": "Deny"},
            ],
            "requested_by": "http:alice",
            "origin": "child 1",
            "session": "main",
            "expires_at": "2026-05-01T12:05:00.000Z",
        }

    async def test_absent_values_are_null(self, api: Api) -> None:
        await ask_in(api, kind=CardKind.QUESTION, reason="", rules=())
        (shown,) = (await api.json("GET", "/v1/asks"))["asks"]
        assert [shown[name] for name in ("reason", "impact", "token", "origin")] == [None] * 4
        assert shown["kind"] == "question"

    async def test_only_those_one_may_answer(self, api: Api) -> None:
        await ask_in(api)
        assert (await api.json("GET", "/v1/asks", user="bob")) == {"asks": []}
        api.desk.operators.add("bob")
        assert len((await api.json("GET", "/v1/asks", user="bob"))["asks"]) == 1


class TestAnswers:
    @pytest.mark.parametrize(
        ("choice", "outcome"),
        [("once", "approved"), ("session", "approved"), ("always", "approved"), ("deny", "denied")],
    )
    async def test_each_choice(self, api: Api, choice: str, outcome: str) -> None:
        ask = await ask_in(api)
        body = await api.json("POST", f"/v1/asks/{ask.card.id}", json={"choice": choice})
        assert body == {"id": ask.card.id, "outcome": outcome, "choice": choice, "have": 1, "need": 1}
        assert ask.end is not None
        assert (ask.end.outcome, ask.end.by) == (outcome, "http:alice")

    async def test_a_reason_goes_along(self, api: Api) -> None:
        ask = await ask_in(api)
        await api.json("POST", f"/v1/asks/{ask.card.id}", json={"choice": "deny", "reason": "use git clean"})
        assert ask.reason == "use git clean"

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"choice": ""},
            {"choice": "  "},
            {"choice": "maybe"},
            {"choice": "ONCE"},
            {"choice": None},
            {"choice": True},
            {"choice": 1},
            {"text": ""},
            {"text": "once"},
            {"choice": "once", "text": "once"},
            {"choice": "once", "approve": True},
            {"reason": "please"},
            {"choice": "x" * 20_000},
            {"choice": "once", "reason": "x" * 20_000},
            ["once"],
            "once",
        ],
    )
    async def test_what_is_not_a_choice_settles_nothing(self, api: Api, body: Any) -> None:
        ask = await ask_in(api)
        error = (await api.json("POST", f"/v1/asks/{ask.card.id}", status=400, json=body))["error"]
        assert error["code"] == "bad_request"
        assert ask.end is None

    @pytest.mark.parametrize("raw", [b"", b"once", b"null"])
    async def test_no_json_settles_nothing(self, api: Api, raw: bytes) -> None:
        ask = await ask_in(api)
        await api.json("POST", f"/v1/asks/{ask.card.id}", status=400, data=raw)
        assert ask.end is None

    async def test_foreign_and_unknown(self, api: Api) -> None:
        ask = await ask_in(api)
        foreign = await api.json("POST", f"/v1/asks/{ask.card.id}", user="bob", status=403, json={"choice": "once"})
        assert foreign["error"]["code"] == "forbidden"
        unknown = await api.json("POST", "/v1/asks/nope", status=404, json={"choice": "once"})
        assert unknown["error"]["code"] == "not_found"
        assert ask.end is None

    async def test_late_is_gone_and_nothing_runs(self, api: Api) -> None:
        ask = await ask_in(api)
        api.clock.advance(300)
        error = (await api.json("POST", f"/v1/asks/{ask.card.id}", status=410, json={"choice": "once"}))["error"]
        assert (error["code"], error["outcome"]) == ("expired", "timed_out")
        assert ask.end is not None
        assert ask.end.outcome == "timed_out"

    async def test_the_second_tap_is_told_how_it_ended(self, api: Api) -> None:
        ask = await ask_in(api)
        await api.json("POST", f"/v1/asks/{ask.card.id}", json={"choice": "deny"})
        error = (await api.json("POST", f"/v1/asks/{ask.card.id}", status=409, json={"choice": "once"}))["error"]
        assert (error["code"], error["outcome"]) == ("settled", "denied")

    async def test_two_taps_at_once_settle_it_once(self, api: Api) -> None:
        ask = await ask_in(api)
        one, two = await asyncio.gather(
            *(api.request("POST", f"/v1/asks/{ask.card.id}", json={"choice": choice}) for choice in ("once", "deny"))
        )
        assert sorted((one.status, two.status)) == [200, 409]

    async def test_a_cancelled_ask(self, api: Api) -> None:
        ask = await ask_in(api)
        await api.json("POST", "/v1/sessions/main/stop")
        error = (await api.json("POST", f"/v1/asks/{ask.card.id}", status=409, json={"choice": "once"}))["error"]
        assert error["outcome"] == "cancelled"

    async def test_a_quorum_waits_for_the_second_person(self, api: Api) -> None:
        ask = await ask_in(api, may_answer={"alice", "bob"}, need=2)
        for _ in range(2):
            first = await api.json("POST", f"/v1/asks/{ask.card.id}", json={"choice": "once"})
            assert first == {"id": ask.card.id, "outcome": "pending", "choice": "once", "have": 1, "need": 2}
        second = await api.json("POST", f"/v1/asks/{ask.card.id}", user="bob", json={"choice": "once"})
        assert (second["outcome"], second["have"]) == ("approved", 2)

    async def test_token_right_wrong_and_third_time(self, api: Api) -> None:
        ask = await ask_in(api, kind=CardKind.TOKEN, token="K7Q2MX", choices=())
        path = f"/v1/asks/{ask.card.id}"
        for _ in range(2):
            assert (await api.json("POST", path, json={"text": "XXXXXX"}))["outcome"] == "pending"
        assert (await api.json("POST", path, json={"text": "XXXXXX"}))["outcome"] == "denied"
        other = api.desk.turn("alice", "main").ask("x", kind=CardKind.TOKEN, token="K7Q2MX", choices=())
        assert (await api.json("POST", f"/v1/asks/{other.card.id}", json={"text": "k7q2mx"}))["outcome"] == "approved"

    async def test_a_question_takes_a_choice_or_words(self, api: Api) -> None:
        choices = (Choice("a", "A"), Choice("b", "B"))
        for body, choice in (({"choice": "b"}, "b"), ({"text": "neither"}, None)):
            ask = await ask_in(api, kind=CardKind.QUESTION, choices=choices)
            answer = await api.json("POST", f"/v1/asks/{ask.card.id}", json=body)
            assert (answer["outcome"], answer["choice"]) == ("answered", choice)

    async def test_an_answer_that_could_not_be_stored(self, api: Api) -> None:
        ask = await ask_in(api)
        api.desk.tap_refuse = TapResult(TapVerdict.UNAVAILABLE)
        response = await api.request("POST", f"/v1/asks/{ask.card.id}", json={"choice": "once"})
        assert response.status == 503
        assert "Retry-After" in response.headers
