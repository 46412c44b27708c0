"""The fake is as strict as the Bot API's documentation, seen from the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from adapters.testing.telegram import FakeTelegram, Person


@dataclass
class Wire:
    """Calls the API as any client would."""

    fake: FakeTelegram
    web: aiohttp.ClientSession

    async def call(self, method: str, *, token: str = "", **params: Any) -> dict[str, Any]:
        data = {name: value if isinstance(value, str) else json.dumps(value) for name, value in params.items()}
        url = f"{self.fake.base_url}{token or self.fake.token}/{method}"
        async with self.web.post(url, data=data) as response:
            body: dict[str, Any] = await response.json()
            assert body["ok"] is (response.status == 200)
            return body

    async def updates(self, **params: Any) -> list[dict[str, Any]]:
        return list((await self.call("getUpdates", **params))["result"])


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with FakeTelegram.running() as fake, aiohttp.ClientSession() as web:
        yield Wire(fake, web)


@pytest.fixture
def ann(wire: Wire) -> Person:
    return wire.fake.person("Ann")


def description(body: dict[str, Any]) -> str:
    """Why a call was refused."""
    return str(body.get("description", ""))


class TestUpdates:
    async def test_stay_until_a_poll_with_a_later_offset_confirms_them(self, wire: Wire, ann: Person) -> None:
        for text in ("one", "two"):
            ann.writes(text)
        first = await wire.updates()
        assert [update["message"]["text"] for update in first] == ["one", "two"]
        assert await wire.updates() == first
        assert [one["message"]["text"] for one in await wire.updates(offset=first[1]["update_id"])] == ["two"]
        assert await wire.updates(offset=first[1]["update_id"] + 1) == []

    async def test_a_long_poll_ends_with_the_next_update(self, wire: Wire, ann: Person) -> None:
        poll = asyncio.create_task(wire.updates(timeout=20))
        await asyncio.sleep(0.02)
        ann.writes("late")
        assert [update["message"]["text"] for update in await poll] == ["late"]

    async def test_a_second_poller_ends_the_first_with_409(self, wire: Wire, ann: Person) -> None:
        first = asyncio.create_task(wire.call("getUpdates", timeout=20))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(wire.call("getUpdates", timeout=20))
        assert (await first)["error_code"] == 409
        ann.writes("hi")
        assert len((await second)["result"]) == 1

    async def test_cannot_be_polled_beside_a_webhook(self, wire: Wire) -> None:
        assert "HTTPS" in description(await wire.call("setWebhook", url="http://x.test/hook"))
        assert (await wire.call("setWebhook", url="https://x.test/hook"))["ok"]
        assert "webhook is active" in description(await wire.call("getUpdates"))
        await wire.call("deleteWebhook")
        assert await wire.updates() == []

    async def test_only_the_wanted_kinds_come(self, wire: Wire, ann: Person) -> None:
        ann.edits(ann.writes("one"), "two")
        (update,) = await wire.updates(allowed_updates=["edited_message"])
        assert update["edited_message"]["text"] == "two"


class TestMessages:
    @pytest.mark.parametrize(
        ("params", "why"),
        [
            ({"text": " \n"}, "message text is empty"),
            ({"text": "x" * 4097}, "message is too long"),
            ({"text": "\U0001f680" * 2049}, "message is too long"),
            ({"text": "x", "chat_id": "77"}, "chat not found"),
            ({"text": "x", "message_thread_id": "9"}, "message thread not found"),
            ({"text": "<b>x", "parse_mode": "HTML"}, "can't parse entities: Can't find end tag"),
            ({"text": "<b>x</i>", "parse_mode": "HTML"}, "can't parse entities: Unmatched end tag"),
            ({"text": "a < b", "parse_mode": "HTML"}, "can't parse entities: Unclosed start tag"),
            ({"text": "<h1>x</h1>", "parse_mode": "HTML"}, 'Unsupported start tag "h1"'),
            ({"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "é" * 33}]]}},
             "BUTTON_DATA_INVALID"),
        ],
    )  # fmt: skip
    async def test_are_refused_over_their_limits(self, wire: Wire, ann: Person, params: Any, why: str) -> None:
        body = await wire.call("sendMessage", **{"chat_id": ann.id, **params})
        assert body["error_code"] == 400
        assert why in description(body)
        assert ann.direct.texts == []

    async def test_are_measured_after_their_tags_are_taken_out(self, wire: Wire, ann: Person) -> None:
        text = "<b>" + "&lt;" * 4096 + "</b>"
        assert (await wire.call("sendMessage", chat_id=ann.id, text=text, parse_mode="HTML"))["ok"]
        (message,) = ann.direct.from_bot
        assert message.text == "<" * 4096
        assert message.entities == [("bold", "<" * 4096)]

    async def test_code_blocks_carry_their_language(self, wire: Wire, ann: Person) -> None:
        text = '<pre><code class="language-python">x = 1\n</code></pre> \U0001f680 <i>i</i>'
        await wire.call("sendMessage", chat_id=ann.id, text=text, parse_mode="HTML")
        (message,) = ann.direct.from_bot
        assert message.data["entities"][0]["language"] == "python"
        assert message.entities == [("pre", "x = 1\n"), ("italic", "i")]

    async def test_an_edit_that_changes_nothing_is_refused(self, wire: Wire, ann: Person) -> None:
        sent = (await wire.call("sendMessage", chat_id=ann.id, text="one"))["result"]
        where = {"chat_id": ann.id, "message_id": sent["message_id"]}
        assert "message is not modified" in description(await wire.call("editMessageText", text="one", **where))
        assert (await wire.call("editMessageText", text="two", **where))["result"]["text"] == "two"
        where["message_id"] += 50
        assert "message to edit not found" in description(await wire.call("editMessageText", text="x", **where))

    async def test_where_the_bot_is_blocked_nothing_goes_out(self, wire: Wire, ann: Person) -> None:
        ann.direct.block()
        body = await wire.call("sendMessage", chat_id=ann.id, text="x")
        assert (body["error_code"], description(body)) == (403, "Forbidden: bot was blocked by the user")

    async def test_a_group_that_moved_names_its_new_id(self, wire: Wire) -> None:
        old = wire.fake.group("Ops")
        new = wire.fake.move(old)
        body = await wire.call("sendMessage", chat_id=old.id, text="x")
        assert body["parameters"] == {"migrate_to_chat_id": new.id}


class TestTaps:
    async def test_are_answered_once_and_in_time(self, wire: Wire, ann: Person) -> None:
        keyboard = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}
        await wire.call("sendMessage", chat_id=ann.id, text="?", reply_markup=keyboard)
        tap = ann.taps(ann.direct.cards[0], "Yes")
        query = (await wire.updates())[0]["callback_query"]["id"]
        assert "MESSAGE_TOO_LONG" in description(
            await wire.call("answerCallbackQuery", callback_query_id=query, text="x" * 201)
        )
        assert (await wire.call("answerCallbackQuery", callback_query_id=query, text="ok"))["ok"]
        assert tap.text == "ok"
        again = await wire.call("answerCallbackQuery", callback_query_id=query, text="no")
        assert "query is too old" in description(again)
        ann.taps(ann.direct.cards[0], "Yes")
        wire.fake.expire_taps()
        late = (await wire.updates())[-1]["callback_query"]["id"]
        assert "query is too old" in description(await wire.call("answerCallbackQuery", callback_query_id=late))


class TestEntities:
    async def test_are_made_by_the_server(self, wire: Wire, ann: Person) -> None:
        ann.writes("/stop@porter_bot mail a@porter_bot.test or @porter_bot2, \U0001f680 @porter_bot")
        message = (await wire.updates())[0]["message"]
        raw = message["text"].encode("utf-16-le")
        assert [
            (one["type"], raw[2 * one["offset"] : 2 * (one["offset"] + one["length"])].decode("utf-16-le"))
            for one in message["entities"]
        ] == [
            ("bot_command", "/stop@porter_bot"),
            ("email", "a@porter_bot.test"),
            ("mention", "@porter_bot2"),
            ("mention", "@porter_bot"),
        ]


class TestFaults:
    async def test_come_one_a_call_and_then_no_more(self, wire: Wire, ann: Person) -> None:
        wire.fake.faults.flood(7)
        body = await wire.call("sendMessage", chat_id=ann.id, text="x")
        assert (body["error_code"], body["parameters"]) == (429, {"retry_after": 7})
        wire.fake.faults.server_error(502)
        url = f"{wire.fake.base_url}{wire.fake.token}/sendMessage"
        async with wire.web.post(url, data={"chat_id": str(ann.id), "text": "x"}) as response:
            assert (response.status, response.content_type) == (502, "text/html")
        assert (await wire.call("sendMessage", chat_id=ann.id, text="x"))["ok"]
        assert ann.direct.texts == ["x"]

    async def test_a_cut_may_come_before_or_after_the_effect(self, wire: Wire, ann: Person) -> None:
        wire.fake.faults.cut_before()
        with pytest.raises(aiohttp.ClientError):
            await wire.call("sendMessage", chat_id=ann.id, text="before")
        wire.fake.faults.cut_after()
        with pytest.raises(aiohttp.ClientError):
            await wire.call("sendMessage", chat_id=ann.id, text="after")
        assert ann.direct.texts == ["after"]

    async def test_a_closed_port_refuses_and_opens_again(self, wire: Wire) -> None:
        await wire.fake.refuse_connections()
        with pytest.raises(aiohttp.ClientConnectorError):
            await wire.call("getMe")
        await wire.fake.listen()
        assert (await wire.call("getMe"))["result"]["username"] == "porter_bot"

    async def test_a_wrong_token_opens_nothing(self, wire: Wire) -> None:
        body = await wire.call("getMe", token="1:wrong")
        assert (body["error_code"], description(body)) == (401, "Unauthorized")


async def test_files_come_from_their_own_address(wire: Wire, ann: Person) -> None:
    form = aiohttp.FormData({"chat_id": str(ann.id), "document": "attach://a", "caption": "see"})
    form.add_field("a", b"content", filename="a.txt")
    async with wire.web.post(f"{wire.fake.base_url}{wire.fake.token}/sendDocument", data=form) as response:
        assert response.status == 200
    (message,) = ann.direct.from_bot
    assert (message.text, wire.fake.file_of(message)) == ("see", b"content")
    file = (await wire.call("getFile", file_id=message.data["document"]["file_id"]))["result"]
    url = f"{wire.fake.base_url.replace('/bot', '/file/bot')}{wire.fake.token}/{file['file_path']}"
    async with wire.web.get(url) as response:
        assert await response.read() == b"content"
