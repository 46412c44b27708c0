"""Messages, history and sessions over the API, with every pinned status."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest

from adapters.base import Receipt, Verdict
from adapters.http.ports import Caller, Posted
from adapters.http.wire import MAX_BODY
from adapters.testing import MemoryDesk
from tests.adapters.http.conftest import Api, ApiMaker

MESSAGES = "/v1/sessions/main/messages"


class TestPost:
    async def test_accepts_and_says_how_many_wait(self, api: Api) -> None:
        first = await api.json("POST", MESSAGES, status=202, json={"text": "hi", "message_id": "a"})
        second = await api.json("POST", MESSAGES, status=202, json={"text": "more"})
        assert first == {"session": "main", "message_id": "a", "queued": 0}
        assert second["session"] == "main"
        assert second["message_id"]
        assert second["queued"] == 1

    async def test_same_message_id_again_is_a_duplicate(self, api: Api) -> None:
        await api.say("hi", message_id="a")
        again = await api.json("POST", MESSAGES, json={"text": "hi", "message_id": "a"})
        assert again["duplicate"] is True
        assert again["message_id"] == "a"
        elsewhere = await api.json(
            "POST", "/v1/sessions/other/messages", status=202, json={"text": "hi", "message_id": "a"}
        )
        assert "duplicate" not in elsewhere

    async def test_a_full_queue_is_told_with_retry_after(self, make_api: ApiMaker) -> None:
        api = await make_api(queue_max=1)
        await api.say("runs")
        await api.say("waits")
        response = await api.request("POST", MESSAGES, json={"text": "too many"})
        assert response.status == 429
        assert response.headers["Retry-After"] == "7"
        assert (await response.json())["error"]["code"] == "queue_full"

    @pytest.mark.parametrize(
        ("verdict", "status", "code"),
        [(Verdict.UNAVAILABLE, 503, "unavailable"), (Verdict.STRANGER, 403, "forbidden")],
    )
    async def test_refused_messages(self, api: Api, verdict: Verdict, status: int, code: str) -> None:
        api.desk.refuse = Receipt(verdict)
        response = await api.request("POST", MESSAGES, json={"text": "hi"})
        assert response.status == status
        assert (await response.json())["error"]["code"] == code
        assert ("Retry-After" in response.headers) == (status == 503)

    @pytest.mark.parametrize(
        ("body", "named"),
        [
            ({}, "text"),
            ({"text": ""}, "text"),
            ({"text": " \n"}, "text"),
            ({"text": 1}, "text"),
            ({"text": None}, "text"),
            ({"text": ["a"]}, "text"),
            ({"text": "a\0b"}, "text"),
            ({"text": "a", "colour": "red"}, "colour"),
            ({"text": "a", "message_id": ""}, "message_id"),
            ({"text": "a", "message_id": 7}, "message_id"),
            ({"text": "a", "message_id": "x" * 129}, "message_id"),
            ({"text": "a", "message_id": "line\nbreak"}, "message_id"),
            ({"text": "a", "message_id": "\u202e"}, "message_id"),
            ([], "object"),
            ("text", "object"),
        ],
    )
    async def test_a_wrong_body_is_refused_naming_the_field(self, api: Api, body: Any, named: str) -> None:
        error = (await api.json("POST", MESSAGES, status=400, json=body))["error"]
        assert error["code"] == "bad_request"
        assert named in error["message"]

    @pytest.mark.parametrize(
        "raw", [b"", b"{", b"\xff\xfe", b'{"text": "\\ud800"}', b'{"text": "\xed\xa0\x80"}', b'{"text": "a"} x', b"NaN"]
    )
    async def test_what_is_not_json_is_refused(self, api: Api, raw: bytes) -> None:
        error = (await api.json("POST", MESSAGES, status=400, data=raw))["error"]
        assert error["code"] == "bad_request"
        assert await api.desk.sessions_of("alice") == ()

    async def test_longest_message_id(self, api: Api) -> None:
        assert (await api.say("hi", message_id="x" * 128))["message_id"] == "x" * 128

    @pytest.mark.parametrize("declared", [True, False])
    async def test_a_body_over_the_limit_is_413(self, api: Api, declared: bool) -> None:
        raw = json.dumps({"text": "x" * MAX_BODY}).encode()

        async def chunks() -> Any:
            for start in range(0, len(raw), 65_536):
                yield raw[start : start + 65_536]

        error = (await api.json("POST", MESSAGES, status=413, data=io.BytesIO(raw) if declared else chunks()))["error"]
        assert error["code"] == "too_large"

    async def test_a_body_at_the_limit_is_taken(self, api: Api) -> None:
        empty = len(json.dumps({"text": ""}))
        raw = json.dumps({"text": "x" * (MAX_BODY - empty)}).encode()
        assert len(raw) == MAX_BODY
        await api.json("POST", MESSAGES, status=202, data=raw)

    async def test_a_body_that_never_arrives_is_given_up(self, make_api: ApiMaker) -> None:
        api = await make_api(body_s=0.05)
        reader, writer = await asyncio.open_connection(api.server.host, api.server.port)
        writer.write(
            b"POST /v1/sessions/main/messages HTTP/1.1\r\nHost: x\r\nX-User: alice\r\nContent-Length: 50\r\n\r\n{"
        )
        assert b" 408 " in await reader.readline()
        writer.close()
        await writer.wait_closed()

    @pytest.mark.parametrize("name", ["telegram:1", "slack:T1:C1", "job:x", "hook:y"])
    async def test_reserved_names_cannot_be_made(self, api: Api, name: str) -> None:
        error = (await api.json("POST", f"/v1/sessions/{name}/messages", status=400, json={"text": "a"}))["error"]
        assert error["code"] == "bad_request"

    @pytest.mark.parametrize("name", ["a b", "ü", "x" * 129, "a%2Fb", "a%0A", "a%00"])
    async def test_wrong_names(self, api: Api, name: str) -> None:
        error = (await api.json("POST", f"/v1/sessions/{name}/messages", status=400, json={"text": "a"}))["error"]
        assert error["code"] == "bad_request"

    @pytest.mark.parametrize("name", ["x" * 128, "A.b_c:d-9", "telegram"])
    async def test_right_names(self, api: Api, name: str) -> None:
        assert (await api.say("hi", name))["session"] == name

    async def test_nobody_is_unauthorized(self, api: Api) -> None:
        for method, path in (("POST", MESSAGES), ("GET", "/v1/sessions"), ("GET", "/v1/asks")):
            response = await api.request(method, path, user=None)
            assert response.status == 401
            assert response.headers["WWW-Authenticate"] == "Bearer"
            assert (await response.json())["error"]["code"] == "unauthorized"

    async def test_a_stopped_adapter_is_unavailable(self, api: Api) -> None:
        await api.adapter.stop()
        assert not api.adapter.health().ready
        error = (await api.json("POST", MESSAGES, status=503, json={"text": "a"}))["error"]
        assert error["code"] == "unavailable"

    async def test_a_client_that_leaves_does_not_undo_what_it_sent(self, make_api: ApiMaker) -> None:
        """The message is being stored when the connection breaks: it is stored, and answered."""
        desk = SlowDesk()
        api = await make_api(desk=desk)
        _, writer = await asyncio.open_connection(api.server.host, api.server.port)
        writer.write(
            b"POST /v1/sessions/main/messages HTTP/1.1\r\nHost: x\r\nX-User: alice\r\nContent-Length: 14\r\n\r\n"
            b'{"text": "hi"}'
        )
        await desk.entered.wait()
        writer.transport.abort()
        assert api.server.runner is not None
        assert api.server.runner.server is not None
        while api.server.runner.server.connections:
            await asyncio.sleep(0.001)
        desk.go.set()
        await api.adapter.stop()
        assert [row.text for row in desk.session("alice", "main").rows] == ["hi"]


class SlowDesk(MemoryDesk):
    """A desk that is storing a message until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = asyncio.Event()
        self.go = asyncio.Event()

    async def post(self, caller: Caller, session: str, text: str, message_id: str | None) -> Posted:
        self.entered.set()
        await self.go.wait()
        return await super().post(caller, session, text, message_id)


class TestWait:
    async def test_the_reply_of_the_turn(self, api: Api) -> None:
        request = asyncio.create_task(api.json("POST", f"{MESSAGES}?wait=30", json={"text": "hi", "message_id": "a"}))
        turn = await _turn(api)
        turn.say("one")
        turn.say("two", final=True)
        turn.finish()
        assert await request == {
            "session": "main",
            "message_id": "a",
            "turn": turn.id,
            "reply": "one\n\ntwo",
            "status": "done",
        }

    @pytest.mark.parametrize("status", ["failed", "cancelled"])
    async def test_other_ends(self, api: Api, status: Any) -> None:
        request = asyncio.create_task(api.json("POST", f"{MESSAGES}?wait=30", json={"text": "hi"}))
        (await _turn(api)).finish(status, "it went wrong")
        body = await request
        assert body["status"] == status
        assert body["reply"] == "it went wrong"

    async def test_time_up_while_running_waiting_and_queued(self, api: Api) -> None:
        running = await api.json("POST", f"{MESSAGES}?wait=0.01", status=202, json={"text": "hi", "message_id": "a"})
        assert running == {"session": "main", "message_id": "a", "status": "running", "asks": []}
        queued = await api.json("POST", f"{MESSAGES}?wait=0", status=202, json={"text": "more"})
        assert queued["status"] == "queued"
        ask = (await _turn(api)).ask("rm -rf build")
        again = await api.json("POST", f"{MESSAGES}?wait=0", status=202, json={"text": "hi", "message_id": "a"})
        assert again["duplicate"] is True
        assert again["status"] == "waiting"
        assert [one["id"] for one in again["asks"]] == [ask.card.id]

    async def test_a_duplicate_may_wait_for_a_turn_that_has_ended(self, api: Api) -> None:
        await api.say("hi", message_id="a")
        (await _turn(api)).finish(text="hello")
        body = await api.json("POST", f"{MESSAGES}?wait=30", json={"text": "hi", "message_id": "a"})
        assert body["reply"] == "hello"

    @pytest.mark.parametrize("wait", ["", "-1", "601", "nan", "inf", "1e3", "soon", "600.0001", "9" * 400])
    async def test_wrong_waits(self, api: Api, wait: str) -> None:
        error = (await api.json("POST", f"{MESSAGES}?wait={wait}", status=400, json={"text": "a"}))["error"]
        assert "wait" in error["message"]
        assert await api.desk.sessions_of("alice") == ()

    async def test_stopping_answers_those_who_wait(self, api: Api) -> None:
        request = asyncio.create_task(api.json("POST", f"{MESSAGES}?wait=600", status=202, json={"text": "hi"}))
        await _turn(api)
        await api.adapter.stop()
        assert (await request)["status"] == "running"

    async def test_no_more_than_so_many_wait(self, make_api: ApiMaker) -> None:
        api = await make_api(max_waits=1)
        first = asyncio.create_task(api.json("POST", f"{MESSAGES}?wait=600", json={"text": "hi", "message_id": "a"}))
        turn = await _turn(api)
        second = await api.json("POST", f"{MESSAGES}?wait=600", status=202, json={"text": "hi", "message_id": "a"})
        assert second["status"] == "running"
        turn.finish()
        assert (await first)["status"] == "done"


class TestReading:
    async def test_history_oldest_first_in_pages(self, api: Api) -> None:
        for number in range(3):
            await api.say(f"q{number}")
            api.desk.turn("alice", "main").finish(text=f"a{number}")
        whole = await api.json("GET", MESSAGES)
        assert [row["text"] for row in whole["messages"]] == ["q0", "a0", "q1", "a1", "q2", "a2"]
        assert [row["role"] for row in whole["messages"][:2]] == ["user", "assistant"]
        assert whole["messages"][0]["at"] == "2026-05-01T12:00:00.000Z"
        ids = [row["id"] for row in whole["messages"]]
        assert ids == sorted(ids)
        last = await api.json("GET", f"{MESSAGES}?limit=2")
        assert [row["text"] for row in last["messages"]] == ["q2", "a2"]
        before = await api.json("GET", f"{MESSAGES}?limit=2&before={last['messages'][0]['id']}")
        assert [row["text"] for row in before["messages"]] == ["q1", "a1"]
        assert whole["last_event_id"] == api.desk.session("alice", "main").events[-1].id

    async def test_history_holds_the_open_asks(self, api: Api) -> None:
        await api.say("hi")
        ask = api.desk.turn("alice", "main").ask("rm -rf build")
        assert [one["id"] for one in (await api.json("GET", MESSAGES))["asks"]] == [ask.card.id]

    @pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=x", "limit=-1", "before=x", "before=1.5"])
    async def test_wrong_pages(self, api: Api, query: str) -> None:
        await api.say("hi")
        error = (await api.json("GET", f"{MESSAGES}?{query}", status=400))["error"]
        assert query.partition("=")[0] in error["message"]

    async def test_sessions_are_per_person(self, api: Api) -> None:
        await api.say("mine", "main")
        await api.say("hers", "main", user="bob")
        await api.say("secret", "bob-only", user="bob")
        mine = await api.json("GET", "/v1/sessions")
        assert mine == {
            "sessions": [
                {"session": "main", "title": "mine", "state": "running", "last_at": "2026-05-01T12:00:00.000Z"}
            ]
        }
        rows = (await api.json("GET", MESSAGES))["messages"]
        assert [row["text"] for row in rows] == ["mine"]

    @pytest.mark.parametrize(
        ("method", "rest"), [("GET", "/messages"), ("GET", "/events"), ("POST", "/stop"), ("DELETE", "")]
    )
    async def test_a_name_that_is_not_yours_is_404(self, api: Api, method: str, rest: str) -> None:
        await api.say("secret", "bob-only", user="bob")
        error = (await api.json(method, f"/v1/sessions/bob-only{rest}", status=404))["error"]
        assert error["code"] == "not_found"
        assert api.desk.session("bob", "bob-only").turn is not None

    async def test_chat_sessions_are_read_by_operators(self, api: Api) -> None:
        api.desk.add_session("bob", "telegram:42")
        await api.json("GET", "/v1/sessions/telegram:42/messages", status=404)
        api.desk.operators.add("alice")
        assert (await api.json("GET", "/v1/sessions/telegram:42/messages"))["messages"] == []

    async def test_stop(self, api: Api) -> None:
        await api.say("hi")
        turn = await _turn(api)
        assert await api.json("POST", "/v1/sessions/main/stop") == {"stopped": True}
        assert turn.status == "cancelled"
        assert await api.json("POST", "/v1/sessions/main/stop") == {"stopped": False}

    async def test_delete_stops_first(self, api: Api) -> None:
        await api.say("hi")
        turn = await _turn(api)
        response = await api.request("DELETE", "/v1/sessions/main")
        assert response.status == 204
        assert turn.status == "cancelled"
        assert (await api.request("GET", MESSAGES)).status == 404


async def _turn(api: Api, session: str = "main") -> Any:
    """The running turn, once it runs."""
    while True:
        try:
            return api.desk.turn("alice", session)
        except LookupError:
            await asyncio.sleep(0)
