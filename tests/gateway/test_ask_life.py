"""How long a request to a person lives over HTTP, and what an answer is good for."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.config import Config
from gateway.store import asks
from tests.gateway.running import Client, Json, running, settings
from tests.gateway.test_end_to_end import exists, make_build


@pytest.mark.parametrize("mode", ["manual", "smart", "off"])
async def test_the_gate_is_armed_however_the_daemon_is_started(home_path: Path, mode: str) -> None:
    """No marker in the environment, no flag, and no mode of a later version lets a dangerous command run unasked."""
    config = settings(approvals={"mode": mode, "i_understand": True})
    async with running(home_path, config) as daemon:
        await make_build(daemon.owner)
        (ask,) = await daemon.owner.begin("$ rm -rf build")
        await daemon.owner.answer(ask, "deny")
        await daemon.owner.ended()
        assert await exists(daemon.owner, "build")


async def test_a_caller_without_a_dialog_approves_nothing(home_path: Path) -> None:
    """Waiting for the reply shows the request; the end of the wait decides nothing, and a later answer counts."""
    async with running(home_path) as daemon:
        await make_build(daemon.owner)
        answer = await daemon.owner.say("$ rm -rf build", wait=0.1, message_id="m1")
        while answer["status"] != "waiting":
            answer = await daemon.owner.say("$ rm -rf build", wait=0.1, message_id="m1")
        (ask,) = answer["asks"]
        for _ in range(3):
            again = await daemon.owner.say("$ rm -rf build", wait=0.01, message_id="m1")
            assert (again["status"], [one["id"] for one in again["asks"]]) == ("waiting", [ask["id"]])
        status, body = await daemon.owner.answer(ask, "once")
        assert (status, body["outcome"]) == (200, "approved")
        await daemon.owner.ended()
        assert not await exists(daemon.owner, "build")


async def test_a_lost_stream_decides_nothing_and_the_next_one_shows_the_card_again(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await make_build(daemon.owner)
        async with daemon.owner.events() as stream:
            await daemon.owner.say("$ rm -rf build", wait=None)
            ask = await stream.until_type("ask")
        assert [one["id"] for one in await daemon.owner.asks(1)] == [ask["id"]]
        async with daemon.owner.events() as stream:
            assert await stream.until_type("ask") == ask
            await daemon.owner.answer(ask, "once")
            assert (await stream.until_type("ask.settled"))["outcome"] == "approved"
            await stream.until_type("turn.finished")
        assert not await exists(daemon.owner, "build")


async def test_a_caller_that_leaves_while_it_waits_decides_nothing(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await make_build(daemon.owner)
        waiting = asyncio.create_task(daemon.owner.say("$ rm -rf build", wait=60))
        (ask,) = await daemon.owner.asks(1)
        waiting.cancel()
        await asyncio.wait([waiting])
        await daemon.owner.say("/status")
        assert [one["id"] for one in await daemon.owner.asks(1)] == [ask["id"]]
        assert (await daemon.owner.answer(ask, "once"))[0] == 200
        await daemon.owner.ended()
        assert not await exists(daemon.owner, "build")


async def test_a_message_to_a_deleted_session_begins_a_new_one(home_path: Path) -> None:
    async with running(home_path) as daemon:
        (ask,) = await daemon.owner.begin("$ rm -rf build")
        assert (await daemon.owner.call("DELETE", "/v1/sessions/main"))[0] == 204
        assert (await daemon.owner.call("GET", "/v1/sessions/main/messages"))[0] == 404
        assert (await daemon.owner.answer(ask, "once"))[0] in {404, 409}
        assert await daemon.owner.asks(0) == []
        assert (await daemon.owner.say("$ echo again"))["status"] == "done"
        _, history = await daemon.owner.call("GET", "/v1/sessions/main/messages")
        assert [row["text"] for row in history["messages"] if row["role"] == "user"] == ["$ echo again"]


async def test_a_request_whose_time_passed_while_the_daemon_was_away_is_told_to_the_model(home_path: Path) -> None:
    """The history that the model sees holds how it ended, and nothing is asked again."""
    config = settings(approvals={"timeout_s": 1.0})
    async with running(home_path, config) as daemon:
        posted = await daemon.owner.say("$ rm -rf build", wait=None)
        (ask,) = await daemon.owner.asks(1)
        await daemon.stop()
    await asyncio.sleep(1.0)
    async with running(home_path, config) as daemon:
        answer = await daemon.owner.say("again", message_id=posted["message_id"])
        assert answer["status"] == "done"
        assert "Nobody answered in time" in answer["reply"]
        assert await daemon.owner.asks(0) == []
        status, body = await daemon.owner.answer(ask, "once")
        assert (status, body["error"]["outcome"]) == (410, "timed_out")


async def test_an_answer_that_was_stored_but_not_acted_on_runs_once_after_the_restart(home_path: Path) -> None:
    """The daemon dies between the commit of the answer and the wake of the turn that waits for it."""
    async with running(home_path) as daemon:
        posted = await daemon.owner.say("$ echo ran >> log; rm -rf build", wait=None)
        (ask,) = await daemon.owner.asks(1)
        await daemon.stop()
    conn = sqlite3.connect(home_path / "state.db", isolation_level=None)
    now = datetime.now(UTC)
    assert asks.settle(conn, ask["id"], state="approved", choice="once", by="http:owner", reason="", now=now)
    conn.close()
    async with running(home_path) as daemon:
        assert (await daemon.owner.say("again", message_id=posted["message_id"]))["status"] == "done"
        assert (await daemon.owner.say("$ wc -l < log"))["reply"].split("```")[1].strip() == "1"
        status, body = await daemon.owner.answer(ask, "once")
        assert (status, body["error"]["outcome"]) == (409, "approved")


async def test_the_end_of_a_denied_turn_is_the_models_own_answer(home_path: Path) -> None:
    """What is told to the model as the result of the call is not put into the chat as a message of its own."""
    async with (
        running(home_path, settings(approvals={"timeout_s": 0.3})) as daemon,
        daemon.owner.events_after_first() as s,
    ):
        await daemon.owner.say("$ rm -rf build", wait=None)
        await s.until_type("turn.finished")
    texts = [data["text"] for kind, data in s.seen if kind == "message" and data["final"]]
    assert len(texts) == 1
    assert [kind for kind, _ in s.seen if kind == "notice"] == []


async def decided(client: Client, command: str, choice: str) -> Json:
    (ask,) = await client.begin(command)
    status, body = await client.answer(ask, choice)
    assert status == 200
    await client.ended()
    return body


async def test_always_covers_the_reviewed_command_and_no_other(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await decided(daemon.owner, "$ rm -rf ./dist", "always")
        assert (await daemon.owner.say("$ rm -rf dist"))["status"] == "done", "the same place, spelled otherwise"
        for other in ("rm -rf docs", "rm -rf dist docs", "rm -rf .", "rm -rf dist; rm -rf docs", "sudo rm -rf dist"):
            (ask,) = await daemon.owner.begin(f"$ {other}")
            assert ask["command"] == other
            await daemon.owner.answer(ask, "deny")
            await daemon.owner.ended()


async def test_what_was_answered_stands_though_always_cannot_be_kept(home_path: Path) -> None:
    """A broken allowlist.json is told, not replaced, and the approved run is not lost."""
    async with running(home_path) as daemon:
        await make_build(daemon.owner)
        (home_path / "allowlist.json").write_text("{ broken by hand")
        body = await decided(daemon.owner, "$ rm -rf build", "always")
        assert body["outcome"] == "approved"
        assert not await exists(daemon.owner, "build")
        await decided(daemon.owner, "$ rm -rf build", "deny")
    assert (home_path / "allowlist.json").read_text() == "{ broken by hand"


def short(seconds: float) -> Config:
    return settings(limits={"terminal_s": seconds, "terminal_max_s": seconds})


async def test_a_command_without_a_limit_of_its_own_has_one(home_path: Path) -> None:
    async with running(home_path, short(1)) as daemon:
        answer = await daemon.owner.say("$ echo before; tail -f /dev/null")
        assert answer["status"] == "done"
        assert "before" in answer["reply"]
        assert "Stopped after 1 s, its time limit" in answer["reply"]
        assert (await daemon.owner.say("$ echo next"))["status"] == "done"


async def test_the_next_message_is_taken_after_a_normal_end_and_after_a_stop(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await daemon.owner.say("$ echo hi", wait=None)
        await daemon.owner.say("$ sleep 300", wait=None, message_id="long")
        await daemon.owner.say("$ echo after-stop", wait=None, message_id="last")
        while (await daemon.owner.say("again", wait=0.02, message_id="long"))["status"] != "running":
            await asyncio.sleep(0.01)
        assert "Stopping. 1 queued" in (await daemon.owner.say("/stop"))["reply"]
        assert (await daemon.owner.say("again", message_id="long"))["status"] == "cancelled"
        assert "after-stop" in (await daemon.owner.say("again", message_id="last"))["reply"]


async def test_an_idle_session_is_gone_from_memory_and_comes_back_with_its_next_message(home_path: Path) -> None:
    async with running(home_path) as daemon:
        for number in range(3):
            answer = await daemon.owner.say(f"$ echo {number} >> kept; cat kept")
            assert answer["reply"].split("```")[1].split() == [str(n) for n in range(number + 1)]
            await daemon.owner.ended()
            headers = {"Authorization": f"Bearer {daemon.owner.token}"}
            async with daemon.web.get(f"{daemon.base}/metrics", headers=headers) as response:
                assert "ostiary_sessions_live 0.0" in await response.text()
