"""The event stream: what it begins with, how it goes on after a break, and that it always ends."""

from __future__ import annotations

import asyncio
import socket

import pytest

from adapters.base import CardEnd, Event
from adapters.http.wire import frame
from adapters.testing import MemoryTurn
from tests.adapters.http.conftest import Api, ApiMaker
from tests.adapters.http.events import EventReader

EVENTS = "/v1/sessions/main/events"


async def begin(api: Api, text: str = "hi") -> MemoryTurn:
    await api.say(text)
    return api.desk.turn("alice", "main")


class TestOrder:
    async def test_a_whole_turn(self, api: Api) -> None:
        turn = await begin(api)
        stream = await api.listen()
        turn.progress("looking")
        turn.delta("hel")
        turn.tool("terminal", "start")
        ask = turn.ask("rm -rf build")
        await api.json("POST", f"/v1/asks/{ask.card.id}", json={"choice": "once"})
        turn.tool("terminal", "end")
        turn.finish(text="hello")
        events = await stream.until("turn.finished")
        assert [(one.type, one.data.get("state")) for one in events] == [
            ("turn.started", None),
            ("progress", None),
            ("delta", None),
            ("tool", "start"),
            ("ask", None),
            ("ask.settled", None),
            ("tool", "end"),
            ("message", None),
            ("turn.finished", None),
        ]
        assert events[0].data == {"turn": turn.id, "message_id": turn.message_id}
        assert events[2].data == {"turn": turn.id, "text": "hel"}
        assert events[4].data["id"] == ask.card.id
        assert events[5].data == {"id": ask.card.id, "outcome": "approved", "choice": "once", "by": "http:alice"}
        assert events[7].data == {"turn": turn.id, "role": "assistant", "text": "hello", "final": True}
        assert events[8].data == {"turn": turn.id, "status": "done"}
        kept = [one.id for one in events if one.type != "delta"]
        assert kept == sorted(set(kept))
        assert [one.id for one in events if one.type == "delta"] == [0]

    async def test_it_begins_with_open_asks_and_the_running_turn(self, api: Api) -> None:
        turn = await begin(api)
        ask = turn.ask("rm -rf build")
        turn.delta("so ")
        turn.delta("far")
        stream = await api.listen()
        first, second, third = [await stream.next() for _ in range(3)]
        assert (first.type, first.data["id"]) == ("ask", ask.card.id)
        assert second.type == "turn.started"
        assert (third.type, third.data) == ("delta", {"turn": turn.id, "text": "so far", "replace": True})

    async def test_text_with_line_breaks_is_one_line(self, api: Api) -> None:
        turn = await begin(api)
        stream = await api.listen()
        text = "a\nb\r\nc\u2028d\n\nid: 7\ndata: x"
        turn.say(text, final=True)
        assert (await stream.until("message"))[-1].data["text"] == text


class TestReconnect:
    @pytest.mark.parametrize("how", ["header", "address"])
    async def test_from_the_last_event_on(self, api: Api, how: str) -> None:
        turn = await begin(api)
        turn.notice("seen")
        seen = api.desk.session("alice", "main").events[-1].id
        turn.notice("missed")
        if how == "header":
            stream = await api.listen(last=str(seen))
        else:
            response = await api.request("GET", f"{EVENTS}?last_event_id={seen}")
            stream = EventReader(response)
            api.readers.append(stream)
        got = await stream.next()
        assert (got.type, got.data) == ("notice", {"text": "missed"})

    async def test_the_header_wins_over_the_address(self, api: Api) -> None:
        """A browser repeats the address it began with, and adds the header."""
        turn = await begin(api)
        turn.notice("one")
        first = api.desk.session("alice", "main").events[-1].id
        turn.notice("two")
        response = await api.request("GET", f"{EVENTS}?last_event_id=0", headers={"Last-Event-ID": str(first)})
        assert b'"two"' in await response.content.readuntil(b'two"}')
        response.close()

    async def test_a_drop_does_not_settle_an_ask(self, api: Api) -> None:
        """The client goes while an ask is open; the ask lives on and is shown again."""
        turn = await begin(api)
        ask = turn.ask("rm -rf build")
        stream = await api.listen()
        await stream.next()
        stream.close()
        while api.adapter.open_streams:
            await asyncio.sleep(0.001)
        assert ask.end is None
        again = await api.listen()
        assert (await again.next()).data["id"] == ask.card.id
        assert (await api.json("POST", f"/v1/asks/{ask.card.id}", json={"choice": "once"}))["outcome"] == "approved"

    async def test_the_end_is_told_to_who_was_away(self, api: Api) -> None:
        turn = await begin(api)
        ask = turn.ask("rm -rf build")
        last = api.desk.session("alice", "main").events[-1].id
        api.desk.settle(ask, CardEnd("timed_out"))
        stream = await api.listen(last=str(last))
        assert (await stream.next()).data == {"id": ask.card.id, "outcome": "timed_out", "choice": None, "by": None}

    async def test_what_is_no_longer_kept_begins_with_reset(self, make_api: ApiMaker) -> None:
        api = await make_api(keep_events=3)
        turn = await begin(api)
        for number in range(6):
            turn.notice(str(number))
        stream = await api.listen(last="1")
        first, second = await stream.next(), await stream.next()
        assert first.type == "reset"
        assert first.data == {"oldest": second.id}
        assert second.data == {"text": "3"}

    @pytest.mark.parametrize("last", ["x", "-1", "1.5", "1 2", "9" * 30])
    async def test_a_wrong_id_is_refused(self, api: Api, last: str) -> None:
        await begin(api)
        error = (await api.json("GET", EVENTS, status=400, headers={"Last-Event-ID": last}))["error"]
        assert "Last-Event-ID" in error["message"]


class TestEnds:
    async def test_comments_keep_a_silent_stream_open(self, make_api: ApiMaker) -> None:
        api = await make_api(keepalive_s=0.01)
        await begin(api)
        stream = await api.listen()
        await stream.next()
        for _ in range(3):
            await stream.comment()

    async def test_fifty_streams_end_when_the_adapter_stops(self, make_api: ApiMaker) -> None:
        api = await make_api(max_streams=50)
        await begin(api)
        streams = [await api.listen() for _ in range(50)]
        assert api.adapter.open_streams == 50
        await api.adapter.stop()
        assert api.adapter.open_streams == 0
        for stream in streams:
            assert [one.type for one in await stream.ended()] == ["turn.started"]
        assert (await api.request("GET", EVENTS)).status == 503

    async def test_a_caller_holds_only_so_many(self, make_api: ApiMaker) -> None:
        api = await make_api(max_streams=2)
        await begin(api)
        streams = [await api.listen() for _ in range(2)]
        response = await api.request("GET", EVENTS)
        assert response.status == 429
        assert "Retry-After" in response.headers
        await api.say("hi", user="bob")
        await api.listen(user="bob")
        streams[0].close()
        while api.adapter.open_streams > 2:
            await asyncio.sleep(0.001)
        await api.listen()

    async def test_it_ends_with_its_session(self, api: Api) -> None:
        await begin(api)
        stream = await api.listen()
        await api.request("DELETE", "/v1/sessions/main")
        assert (await stream.ended())[-1].type == "turn.finished"

    async def test_a_client_that_does_not_read_is_cut(self, make_api: ApiMaker) -> None:
        """Its stream does not hold the desk's events for ever; others are not slowed down."""
        api = await make_api(write_s=0.05)
        turn = await begin(api)
        host, port = api.server.host, api.server.port
        assert port is not None
        with socket.socket() as stuck:
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.setblocking(False)
            await asyncio.get_running_loop().sock_connect(stuck, (host, port))
            request = f"GET {EVENTS} HTTP/1.1\r\nHost: x\r\nX-User: alice\r\n\r\n"
            await asyncio.get_running_loop().sock_sendall(stuck, request.encode())
            while not api.adapter.open_streams:
                await asyncio.sleep(0.001)
            for _ in range(200):
                turn.notice("x" * 100_000)
                await asyncio.sleep(0)
            while api.adapter.open_streams:
                await asyncio.sleep(0.001)

    async def test_stopping_does_not_wait_for_a_client_that_does_not_read(self, api: Api) -> None:
        turn = await begin(api)
        host, port = api.server.host, api.server.port
        assert port is not None
        with socket.socket() as stuck:
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.setblocking(False)
            await asyncio.get_running_loop().sock_connect(stuck, (host, port))
            request = f"GET {EVENTS} HTTP/1.1\r\nHost: x\r\nX-User: alice\r\n\r\n"
            await asyncio.get_running_loop().sock_sendall(stuck, request.encode())
            while not api.adapter.open_streams:
                await asyncio.sleep(0.001)
            for _ in range(200):
                turn.notice("x" * 100_000)
                await asyncio.sleep(0)
            await api.adapter.stop()
            assert api.adapter.open_streams == 0

    async def test_head_opens_no_stream(self, api: Api) -> None:
        await begin(api)
        assert (await api.request("HEAD", EVENTS)).status == 405
        assert api.adapter.open_streams == 0

    async def test_headers(self, api: Api) -> None:
        await begin(api)
        stream = await api.listen()
        assert stream.response.headers["Content-Type"] == "text/event-stream"
        assert stream.response.headers["Cache-Control"] == "no-store"


def test_a_lone_surrogate_does_not_break_a_stream() -> None:
    assert frame(Event(3, "notice", {"text": "\ud800"})) == b'id: 3\nevent: notice\ndata: {"text":"\\ud800"}\n\n'
