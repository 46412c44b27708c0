"""One message, one turn, one card, through the real daemon: HTTP, store, loop, guard, sandbox."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.config import Config
from tests.gateway.running import Client, Running, running, settings

OTHERS = [
    {"token": "token-of-olga", "user": "olga", "roles": ["operator"]},
    {"token": "token-of-ugo", "user": "ugo", "roles": ["user"]},
    {"token": "token-of-vera", "user": "vera", "roles": ["viewer"]},
]


def with_others() -> Config:
    return settings(adapters={"http": {"tokens": OTHERS}})


async def make_build(client: Client, session: str = "main") -> None:
    answer = await client.say("$ mkdir -p build && touch build/x", session=session)
    assert answer["status"] == "done"


async def exists(client: Client, name: str, session: str = "main") -> bool:
    answer = await client.say(f"$ test -e {name} && echo there || echo gone", session=session)
    return "there" in str(answer["reply"])


async def test_a_harmless_command_runs_and_its_output_is_the_answer(home_path: Path) -> None:
    async with running(home_path) as daemon:
        answer = await daemon.owner.say("$ echo hi")
        assert answer["status"] == "done"
        assert "hi" in answer["reply"]


async def test_deny_means_not_run(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await make_build(daemon.owner)
        (ask,) = await daemon.owner.begin("$ rm -rf build")
        assert ask["command"] == "rm -rf build"
        assert [choice["value"] for choice in ask["choices"]] == ["once", "session", "always", "deny"]
        status, body = await daemon.owner.answer(ask, "deny", reason="not today")
        assert (status, body["outcome"], body["choice"]) == (200, "denied", "deny")
        last = await daemon.owner.ended()
        assert "not today" in last["text"]
        assert await exists(daemon.owner, "build")


async def test_once_runs_it_and_the_same_again_asks_again(home_path: Path) -> None:
    async with running(home_path) as daemon:
        for _ in range(2):
            await make_build(daemon.owner)
            (ask,) = await daemon.owner.begin("$ rm -rf build")
            status, body = await daemon.owner.answer(ask, "once")
            assert (status, body["outcome"]) == (200, "approved")
            await daemon.owner.ended()
            assert not await exists(daemon.owner, "build")


async def test_session_is_not_asked_again_here_but_in_another_session_and_for_another_path(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await make_build(daemon.owner)
        (ask,) = await daemon.owner.begin("$ rm -rf build")
        await daemon.owner.answer(ask, "session")
        await daemon.owner.ended()
        await make_build(daemon.owner)
        assert (await daemon.owner.say("$ rm -rf build"))["status"] == "done"
        assert not await exists(daemon.owner, "build")
        (other_path,) = await daemon.owner.begin("$ rm -rf dist")
        await daemon.owner.answer(other_path, "deny")
        await daemon.owner.ended()
        (elsewhere,) = await daemon.owner.begin("$ rm -rf build", session="second")
        await daemon.owner.answer(elsewhere, "deny")
        await daemon.owner.ended("second")


async def test_session_grants_end_with_new_and_with_a_restart(home_path: Path) -> None:
    async with running(home_path) as daemon:
        (ask,) = await daemon.owner.begin("$ rm -rf build")
        await daemon.owner.answer(ask, "session")
        await daemon.owner.ended()
        assert (await daemon.owner.say("$ rm -rf build"))["status"] == "done"
        await daemon.owner.say("/new")
        (again,) = await daemon.owner.begin("$ rm -rf build")
        await daemon.owner.answer(again, "session")
        await daemon.owner.ended()
    async with running(home_path) as daemon:
        (again,) = await daemon.owner.begin("$ rm -rf build")
        await daemon.owner.answer(again, "deny")
        await daemon.owner.ended()


async def test_always_survives_a_restart_and_is_listed_and_revocable(home_path: Path) -> None:
    async with running(home_path) as daemon:
        (ask,) = await daemon.owner.begin("$ rm -rf build")
        await daemon.owner.answer(ask, "always")
        await daemon.owner.ended()
    async with running(home_path) as daemon:
        assert (await daemon.owner.say("$ rm -rf build"))["status"] == "done"
        listed = (await daemon.owner.say("/grants"))["reply"]
        assert "/workspace/build" in listed
        grant = listed.splitlines()[1].split(":")[0]
        assert "has ended" in (await daemon.owner.say(f"/grants revoke {grant}"))["reply"]
        (again,) = await daemon.owner.begin("$ rm -rf build")
        await daemon.owner.answer(again, "deny")
        await daemon.owner.ended()
    assert (home_path / "allowlist.json").stat().st_mode & 0o777 == 0o600


async def test_silence_denies_at_the_deadline(home_path: Path) -> None:
    async with running(home_path, settings(approvals={"timeout_s": 0.4})) as daemon:
        await make_build(daemon.owner)
        async with daemon.owner.events() as stream:
            (ask,) = await daemon.owner.begin("$ rm -rf build")
            settled = await stream.until_type("ask.settled")
        assert (settled["id"], settled["outcome"], settled["by"]) == (ask["id"], "timed_out", None)
        last = await daemon.owner.ended()
        assert "Nobody answered in time" in last["text"]
        status, body = await daemon.owner.answer(ask, "once")
        assert (status, body["error"]["code"], body["error"]["outcome"]) == (410, "expired", "timed_out")
        assert await exists(daemon.owner, "build")


async def test_a_hardline_command_is_refused_without_a_card(home_path: Path) -> None:
    async with running(home_path) as daemon:
        answer = await daemon.owner.say("$ rm -rf /")
        assert answer["status"] == "done"
        assert "efused" in answer["reply"]
        assert await daemon.owner.asks(0) == []


async def test_three_calls_of_one_message_are_three_cards_each_with_its_own_answer(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await daemon.owner.say("$ mkdir -p a b c")
        asks = await daemon.owner.begin("$ rm -rf a\n$ rm -rf b\n$ rm -rf c")
        by_command = {ask["command"]: ask for ask in asks}
        assert len({ask["id"] for ask in asks}) == 3
        await daemon.owner.answer(by_command["rm -rf c"], "once")
        await daemon.owner.answer(by_command["rm -rf a"], "once")
        await daemon.owner.answer(by_command["rm -rf b"], "deny")
        await daemon.owner.ended()
        assert not await exists(daemon.owner, "a")
        assert await exists(daemon.owner, "b")
        assert not await exists(daemon.owner, "c")


async def test_wrong_answers_run_nothing_and_get_their_status(home_path: Path) -> None:
    async with running(home_path, with_others()) as daemon:
        await make_build(daemon.owner)
        (ask,) = await daemon.owner.begin("$ rm -rf build")
        for token in ("token-of-olga", "token-of-ugo", "token-of-vera"):
            status, _ = await daemon.client(token).answer(ask, "once")
            assert status == 403, "only the requester may answer while they are an operator"
        assert (await daemon.owner.answer("no-such-ask", "once"))[0] == 404
        assert (await daemon.owner.answer(ask, ""))[0] == 400
        assert (await daemon.owner.answer(ask, "yes"))[0] == 400
        status, _ = await daemon.owner.call("POST", f"/v1/asks/{ask['id']}", json={})
        assert status == 400
        assert (await daemon.client("wrong-token").answer(ask, "once"))[0] == 401
        assert len(await daemon.owner.asks(1)) == 1, "it stayed open"
        assert (await daemon.owner.answer(ask, "deny"))[0] == 200
        status, body = await daemon.owner.answer(ask, "once")
        assert (status, body["error"]["code"], body["error"]["outcome"]) == (409, "settled", "denied")
        await daemon.owner.ended()
        assert await exists(daemon.owner, "build")


async def test_a_users_request_is_answered_by_an_operator_and_never_for_good(home_path: Path) -> None:
    async with running(home_path, with_others()) as daemon:
        ugo, olga = daemon.client("token-of-ugo"), daemon.client("token-of-olga")
        await ugo.say("$ rm -rf build", wait=None)
        (ask,) = await olga.asks(1)
        assert "always" not in [choice["value"] for choice in ask["choices"]]
        assert (await ugo.answer(ask, "once"))[0] == 403
        status, body = await olga.answer(ask, "once")
        assert (status, body["outcome"]) == (200, "approved")
        await ugo.ended()


async def test_a_viewer_may_not_run_commands(home_path: Path) -> None:
    async with running(home_path, with_others()) as daemon:
        answer = await daemon.client("token-of-vera").say("$ echo hi")
        assert "needs the role user" in answer["reply"]


async def test_two_taps_at_once_settle_once(home_path: Path) -> None:
    async with running(home_path) as daemon:
        (ask,) = await daemon.owner.begin("$ rm -rf build")
        results = await asyncio.gather(*(daemon.owner.answer(ask, choice) for choice in ("once", "deny") * 4))
        statuses = sorted(status for status, _ in results)
        assert statuses == [200, *[409] * 7]
        await daemon.owner.ended()


async def test_people_have_their_own_sessions_and_workspaces(home_path: Path) -> None:
    async with running(home_path, with_others()) as daemon:
        await daemon.owner.say("$ echo secret > mine.txt")
        ugo = daemon.client("token-of-ugo")
        status, _ = await ugo.call("GET", "/v1/sessions/main/messages")
        assert status == 404
        answer = await ugo.say("$ ls -A; echo end")
        assert "mine.txt" not in answer["reply"]
        _, history = await ugo.call("GET", "/v1/sessions/main/messages")
        assert all("secret" not in message["text"] for message in history["messages"])


async def test_typed_answers_name_the_request_and_never_wait_behind_the_turn(home_path: Path) -> None:
    async with running(home_path) as daemon:
        asks = await daemon.owner.begin("$ rm -rf a\n$ rm -rf b")
        assert "say which" in (await daemon.owner.say("/approve"))["reply"]
        first = next(ask for ask in asks if ask["command"] == "rm -rf a")
        assert "Approved once" in (await daemon.owner.say(f"/approve {first['code'].lower()}"))["reply"]
        assert "Denied" in (await daemon.owner.say("/deny keep it"))["reply"]
        last = await daemon.owner.ended()
        assert "keep it" in last["text"]
        assert "Nothing waits" in (await daemon.owner.say("/approve"))["reply"]


@pytest.mark.parametrize("how", ["word", "api"])
async def test_stop_ends_the_turn_its_processes_and_its_requests(home_path: Path, how: str) -> None:
    async with running(home_path) as daemon, daemon.owner.events_after_first() as stream:
        await daemon.owner.say("$ sleep 300\n$ rm -rf build", wait=None)
        await stream.until_type("ask")
        if how == "word":
            assert "Stopping" in (await daemon.owner.say("/stop"))["reply"]
        else:
            assert (await daemon.owner.call("POST", "/v1/sessions/main/stop"))[1] == {"stopped": True}
        finished = await stream.until_type("turn.finished")
        assert finished["status"] == "cancelled"
        settled = [data for kind, data in stream.seen if kind == "ask.settled"]
        assert [data["outcome"] for data in settled] == ["cancelled"]
        assert (await daemon.owner.say("$ echo next"))["status"] == "done"
        assert (await daemon.owner.call("POST", "/v1/sessions/main/stop"))[1] == {"stopped": False}


async def test_queued_messages_keep_their_order_and_none_is_lost(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await daemon.owner.say("$ sleep 0.3", wait=None)
        for number in range(5):
            await daemon.owner.say(f"$ echo {number} >> order.txt", wait=None)
        answer = await daemon.owner.say("$ cat order.txt")
        assert answer["reply"].split("```")[1].split() == ["0", "1", "2", "3", "4"]


async def test_a_full_queue_refuses_and_says_so(home_path: Path) -> None:
    async with running(home_path, settings(gateway={"queue_max": 2})) as daemon:
        (_ask,) = await daemon.owner.begin("$ rm -rf build")
        for _ in range(2):
            await daemon.owner.say("$ echo queued", wait=None)
        status, body = await daemon.owner.call(
            "POST", "/v1/sessions/main/messages", json={"text": "one too many", "message_id": "x1"}
        )
        assert (status, body["error"]["code"]) == (429, "queue_full")
        assert "queued" in (await daemon.owner.say("/status"))["reply"].lower(), "control is never refused for it"
        await daemon.owner.say("/deny")
        await daemon.owner.ended()
        answer = await daemon.owner.say("one too many", message_id="x1")
        assert answer["status"] == "done", "nothing had been accepted under that id"


async def test_the_same_message_id_is_answered_once(home_path: Path) -> None:
    async with running(home_path) as daemon:
        first = await daemon.owner.say("$ echo once >> count.txt", message_id="m-1")
        second = await daemon.owner.say("$ echo once >> count.txt", message_id="m-1")
        assert second["duplicate"] is True
        assert second["turn"] == first["turn"]
        assert (await daemon.owner.say("$ wc -l < count.txt"))["reply"].split("```")[1].strip() == "1"


async def test_an_open_card_survives_a_restart(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await make_build(daemon.owner)
        (before,) = await daemon.owner.begin("$ rm -rf build")
        await daemon.stop()
    async with running(home_path) as daemon:
        (after,) = await daemon.owner.asks(1)
        assert (after["id"], after["expires_at"]) == (before["id"], before["expires_at"])
        assert (await daemon.owner.answer(after, "once"))[0] == 200
        await daemon.owner.ended()
        assert not await exists(daemon.owner, "build")


async def test_without_an_engine_commands_are_refused_with_the_way_to_fix_it_and_chat_works(home_path: Path) -> None:
    async with running(home_path, settings(sandbox={"engine": "ssh", "required": True})) as daemon:
        answer = await daemon.owner.say("$ rm -rf build")
        assert "sandbox.engine" in answer["reply"]
        assert await daemon.owner.asks(0) == [], "nobody is asked about what cannot run"
        assert (await daemon.owner.say("hello"))["status"] == "done"
        assert (await ready(daemon))[0] == 503


async def ready(daemon: Running) -> tuple[int, object]:
    async with asyncio.timeout(20):
        while True:
            async with daemon.web.get(f"{daemon.base}/readyz") as response:
                body = await response.json()
                if "tried yet" not in str(body):
                    return response.status, body
            await asyncio.sleep(0.02)


async def test_a_silent_turn_is_warned_about_and_then_ended(home_path: Path) -> None:
    """A command that prints nothing lives on its lease; once that is over, silence counts."""
    config = settings(gateway={"inactivity_warn_s": 0.2, "inactivity_cancel_s": 0.6})
    async with running(home_path, config) as daemon:
        answer = await daemon.owner.say("$ sleep 1.5; echo lived")
        assert "lived" in answer["reply"], "a tool inside its own limit is no silence"


async def test_files_are_written_read_and_listed_through_the_sandbox(home_path: Path) -> None:
    async with running(home_path) as daemon:
        assert "Wrote" in (await daemon.owner.say("write notes/todo.txt buy milk"))["reply"]
        assert "buy milk" in (await daemon.owner.say("read notes/todo.txt"))["reply"]
        assert "todo.txt" in (await daemon.owner.say("list notes"))["reply"]
        assert "outside the workspace" in (await daemon.owner.say("read ../../etc/passwd"))["reply"]


async def test_unknown_words_are_hinted_at_and_paths_go_to_the_model(home_path: Path) -> None:
    async with running(home_path) as daemon:
        assert "/help" in (await daemon.owner.say("/frobnicate"))["reply"]
        assert "/approve" in (await daemon.owner.say("/help"))["reply"]
        assert (await daemon.owner.say("/etc/hosts please"))["turn"] is not None


async def test_a_message_as_long_as_a_request_may_be_is_kept_whole(home_path: Path) -> None:
    text = "long " * 200_000 + "end"
    async with running(home_path) as daemon:
        assert (await daemon.owner.say(text))["status"] == "done"
        _, history = await daemon.owner.call("GET", "/v1/sessions/main/messages")
        assert history["messages"][0]["text"] == text


async def test_a_session_is_called_after_its_first_message(home_path: Path) -> None:
    async with running(home_path) as daemon:
        await daemon.owner.say("$ echo first\n$ echo second")
        await daemon.owner.say("hello")
        await daemon.owner.say("word " * 40, session="long")
        _, listed = await daemon.owner.call("GET", "/v1/sessions")
        titles = {row["session"]: row["title"] for row in listed["sessions"]}
        assert titles["main"] == "$ echo first"
        assert titles["long"].startswith("word word")
        assert len(titles["long"]) <= 60
