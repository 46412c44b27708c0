"""The polling loop against what goes wrong on the wire: nothing is lost, it never ends, and it tells the truth."""

from __future__ import annotations

import asyncio
import json

import pytest

from adapters.base import Amendment, Receipt, Verdict
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.status import Status
from adapters.testing.telegram import TOKEN, FakeTelegram, Person
from agent.control.clock import ManualClock, SystemClock
from tests.adapters.telegram.notebook import Notebook, connected, until_health
from tests.adapters.telegram.whole import telegram_settings
from tests.gateway.running import PATIENCE_S


@pytest.fixture
def ann(telegram: FakeTelegram) -> Person:
    return telegram.person("Ann")


async def test_what_waits_from_before_the_start_comes_first_and_in_order(telegram: FakeTelegram, ann: Person) -> None:
    for number in range(5):
        ann.writes(f"early {number}")
    notebook = Notebook()
    async with connected(telegram, notebook):
        await notebook.until(lambda book: len(book.messages) == 5)
        ann.writes("late")
        await notebook.until(lambda book: len(book.messages) == 6)
    assert notebook.texts == [*(f"early {number}" for number in range(5)), "late"]


async def test_the_offset_stays_before_what_was_not_taken(telegram: FakeTelegram, ann: Person) -> None:
    bob = telegram.person("Bob")
    notebook = Notebook()
    notebook.receipts.extend([Receipt(Verdict.ACCEPTED), Receipt(Verdict.UNAVAILABLE, retry_after_s=1)])
    ann.writes("one")
    ann.writes("two")
    ann.writes("three")
    clock = ManualClock()
    async with connected(telegram, notebook, clock=clock) as adapter:
        await until_health(adapter, ready=False, says="takes no messages")
        assert [update["message"]["text"] for update in telegram.state.updates] == ["one", "two", "three"]
        bob.writes("four")
        assert notebook.texts == ["one"]
        await clock.advance(1)
        await notebook.until(lambda book: len(book.messages) == 4)
        await until_health(adapter, ready=True)
        await telegram.until(lambda fake: not fake.state.updates)
    assert notebook.texts[:3] == ["one", "two", "three"]
    assert notebook.texts[3] == "four"


async def test_one_malformed_update_is_kept_raw_and_the_rest_go_on(telegram: FakeTelegram, ann: Person) -> None:
    ann.writes("before")
    bad = telegram.push_raw({"message": {"message_id": "x", "chat": 5}})
    worse = telegram.push_raw({"message": {"message_id": 7, "date": "never", "chat": {"id": ann.id}}})
    ann.writes("after")
    notebook = Notebook()
    async with connected(telegram, notebook) as adapter:
        await notebook.until(lambda book: len(book.messages) == 2)
        await telegram.until(lambda fake: not fake.state.updates)
        await until_health(adapter, ready=True)
    assert notebook.texts == ["before", "after"]
    assert sorted((json.loads(raw) for _, raw, _ in notebook.letters), key=lambda raw: raw["update_id"]) == [bad, worse]
    assert len({key for key, _, _ in notebook.letters}) == 2


async def test_a_fault_of_the_gateway_is_kept_and_does_not_stop_the_stream(telegram: FakeTelegram, ann: Person) -> None:
    notebook = Notebook()
    notebook.broken["poison"] = RuntimeError("a fault of ours")
    ann.writes("poison")
    ann.writes("fine")
    async with connected(telegram, notebook):
        await notebook.until(lambda book: book.texts == ["fine"])
    ((_, raw, reason),) = notebook.letters
    assert json.loads(raw)["message"]["text"] == "poison"
    assert "RuntimeError" in reason


async def test_unknown_kinds_of_updates_move_on(telegram: FakeTelegram, ann: Person) -> None:
    telegram.push_raw({"message": None})
    telegram.push_raw({"edited_message": {}, "something_new": {"a": 1}})
    ann.writes("hi")
    notebook = Notebook()
    async with connected(telegram, notebook):
        await notebook.until(lambda book: book.texts == ["hi"])


async def test_a_full_queue_is_told_and_the_rest_go_on(telegram: FakeTelegram, ann: Person) -> None:
    notebook = Notebook()
    notebook.receipts.append(Receipt(Verdict.QUEUE_FULL, queued=100))
    ann.writes("too much")
    ann.writes("next")
    async with connected(telegram, notebook):
        await notebook.until(lambda book: book.texts == ["next"])
        await ann.direct.until(lambda chat: bool(chat.texts))
    (told,) = ann.direct.texts
    assert "100 messages" in told
    assert "not taken" in told


@pytest.mark.parametrize("fault", ["conflict", "unauthorized", "flood", "gateway", "cut", "garbage"])
async def test_failing_polls_are_told_and_tried_until_they_work(
    telegram: FakeTelegram, ann: Person, fault: str
) -> None:
    faults = telegram.faults
    poll = "getUpdates"
    times = 30
    says = {
        "conflict": "Another program polls",
        "unauthorized": "does not accept the token",
        "flood": "rate limit",
        "gateway": "status 502",
        "cut": "was cut",
        "garbage": "Not Found",
    }[fault]
    match fault:
        case "conflict":
            faults.refuse(409, "Conflict: terminated by other getUpdates request", times=times, method=poll)
        case "unauthorized":
            faults.refuse(401, "Unauthorized", times=times, method=poll)
        case "flood":
            faults.flood(0, times=times, method=poll)
        case "gateway":
            faults.server_error(502, times=times, method=poll)
        case "cut":
            faults.cut_before(times=times, method=poll)
        case "garbage":
            faults.refuse(418, "a teapot: Not Found", times=times, method=poll)
            says = "status 418"
    notebook = Notebook()
    async with connected(telegram, notebook, longest_pause_s=0.02) as adapter:
        await until_health(adapter, ready=False, says=says)
        faults.clear()
        ann.writes("hi")
        await notebook.until(lambda book: book.texts == ["hi"])
        await until_health(adapter, ready=True)


async def test_it_is_ready_at_once_although_nobody_writes(telegram: FakeTelegram) -> None:
    clock = ManualClock()
    async with connected(telegram, Notebook(), clock=clock, poll_s=50) as adapter:
        await until_health(adapter, ready=True)
        await telegram.refuse_connections()
        await until_health(adapter, ready=False)
        await telegram.listen()
        await clock.advance(1)
        await until_health(adapter, ready=True)
    assert clock.monotonic() < 1_010


async def test_a_poll_without_an_answer_is_given_up_and_the_connection_made_anew(
    telegram: FakeTelegram, ann: Person
) -> None:
    clock = ManualClock()
    telegram.faults.hang(method="getUpdates")
    notebook = Notebook()
    async with connected(telegram, notebook, clock=clock) as adapter:
        await telegram.until(lambda fake: not fake.faults.waiting["getupdates"])
        ann.writes("hi")
        await clock.advance(11)
        await until_health(adapter, ready=False, says="no answer to a poll")
        await clock.advance(1)
        await notebook.until(lambda book: book.texts == ["hi"])
        await until_health(adapter, ready=True)


async def test_silence_between_polls_counts_as_a_dead_connection() -> None:
    clock = ManualClock()
    status = Status(clock, stale_s=15)
    assert not status.health().ready
    status.progress()
    await clock.advance(15)
    assert status.health().ready
    await clock.advance(1)
    assert status.health().reason == "Telegram has not answered a poll for 16 s."
    status.progress(watched=False)
    await clock.advance(100)
    assert status.health().ready


async def test_a_closed_port_is_told_and_tried_until_it_opens(telegram: FakeTelegram, ann: Person) -> None:
    notebook = Notebook()
    async with connected(telegram, notebook) as adapter:
        await until_health(adapter, ready=True)
        await telegram.refuse_connections()
        await until_health(adapter, ready=False, says="cannot be reached")
        await telegram.listen()
        ann.writes("hi")
        await notebook.until(lambda book: book.texts == ["hi"])
        await until_health(adapter, ready=True)


async def test_it_starts_before_the_platform_can_be_reached(telegram: FakeTelegram, ann: Person) -> None:
    await telegram.refuse_connections()
    notebook = Notebook()
    async with connected(telegram, notebook) as adapter:
        await until_health(adapter, ready=False, says="no connection")
        await telegram.listen()
        ann.writes("hi")
        await notebook.until(lambda book: book.texts == ["hi"])


async def test_a_second_poller_is_told_and_the_first_goes_on(telegram: FakeTelegram, ann: Person) -> None:
    one, two = Notebook(), Notebook()
    async with connected(telegram, one) as first:
        await until_health(first, ready=True)
        async with connected(telegram, two):
            await until_health(first, ready=False, says="Another program polls")
        await until_health(first, ready=True)
        ann.writes("hi")
        await one.until(lambda book: "hi" in book.texts)


async def test_a_webhook_that_is_set_is_taken_away(telegram: FakeTelegram, ann: Person) -> None:
    telegram.state.webhook = {"url": "https://old.example/hook"}
    notebook = Notebook()
    async with connected(telegram, notebook) as adapter:
        ann.writes("hi")
        await notebook.until(lambda book: book.texts == ["hi"])
        telegram.state.webhook = {"url": "https://again.example/hook"}
        telegram.state.tell()
        ann.writes("ho")
        await notebook.until(lambda book: book.texts == ["hi", "ho"])
        await until_health(adapter, ready=True)


async def test_a_stop_does_not_wait_for_the_poll(telegram: FakeTelegram) -> None:
    adapter = TelegramAdapter(telegram_settings(telegram, poll_s=50), SystemClock())
    await adapter.start(Notebook())
    await until_health(adapter, ready=False)
    await telegram.until(lambda fake: bool(fake.called("deleteWebhook")))
    async with asyncio.timeout(PATIENCE_S / 2):
        await adapter.stop()
    assert not adapter.health().ready


async def test_a_stop_at_any_moment_is_clean(telegram: FakeTelegram) -> None:
    for pause in (0, 0, 0.001, 0.05, 0.1):
        adapter = TelegramAdapter(telegram_settings(telegram), SystemClock())
        await adapter.start(Notebook())
        await asyncio.sleep(pause)
        await adapter.stop()
        assert adapter.health().reason == "stopped"


async def test_the_token_stands_in_no_reason(telegram: FakeTelegram) -> None:
    wrong = "1:wrong-token-of-the-test"
    notebook = Notebook()
    async with connected(telegram, notebook, token=wrong) as adapter:
        await until_health(adapter, ready=False, says="token")
        assert wrong not in adapter.health().reason
    async with connected(telegram, notebook, base_url="http://127.0.0.1:1/bot") as adapter:
        await until_health(adapter, ready=False, says="no connection")
        assert TOKEN not in adapter.health().reason


class TestEdits:
    async def test_go_through_under_the_key_of_the_message(self, telegram: FakeTelegram, ann: Person) -> None:
        notebook = Notebook()
        message = ann.writes("helo")
        ann.edits(message, "hello")
        async with connected(telegram, notebook):
            await notebook.until(lambda book: bool(book.changes))
        assert notebook.texts == ["helo"]
        assert [change.text for change in notebook.changes] == ["hello"]
        assert notebook.changes[0].event_key == notebook.messages[0].event_key

    async def test_come_again_when_they_could_not_be_stored(self, telegram: FakeTelegram, ann: Person) -> None:
        notebook = Notebook()
        notebook.amendments.append(Amendment.UNAVAILABLE)
        ann.edits(ann.writes("helo"), "hello")
        clock = ManualClock()
        async with connected(telegram, notebook, clock=clock) as adapter:
            await until_health(adapter, ready=False, says="takes no messages")
            await clock.advance(2)
            await notebook.until(lambda book: bool(book.changes))


class TestTaps:
    async def test_are_answered_once_although_their_batch_came_again(self, telegram: FakeTelegram, ann: Person) -> None:
        keyboard = {"inline_keyboard": [[{"text": "Yes", "callback_data": "a:someid:once"}]]}
        where = telegram.state.put_message(ann.direct.state, telegram.state.me, {"text": "?", "reply_markup": keyboard})
        notebook = Notebook()
        notebook.receipts.append(Receipt(Verdict.UNAVAILABLE, retry_after_s=1))
        ann.writes("not taken at first")
        tap = ann.taps(ann.direct.cards[0], "Yes")
        clock = ManualClock()
        async with connected(telegram, notebook, clock=clock):
            assert await tap.answered() == "Approved once."
            await notebook.until(lambda book: not book.receipts)
            await clock.advance(2)
            await notebook.until(lambda book: bool(book.texts))
            await telegram.until(lambda fake: not fake.state.updates)
        (seen,) = notebook.taps
        assert (seen.ask_id, seen.choice) == ("someid", "once")
        assert seen.shown_at is not None
        assert (seen.shown_at.chat, seen.shown_at.message) == (str(ann.id), str(where["message_id"]))
        assert len(telegram.called("answerCallbackQuery")) == 1

    async def test_on_buttons_that_are_not_ours_ask_nobody(self, telegram: FakeTelegram, ann: Person) -> None:
        message = ann.writes("hi")
        notebook = Notebook()
        async with connected(telegram, notebook):
            for data in ("x", "a:id", "a::once", "a:id:once:more", "a:" + "x" * 60 + ":once"):
                assert "not known" in await ann.sends_tap(message, data).answered()
        assert notebook.taps == []
        assert len(telegram.called("answerCallbackQuery")) == 5

    async def test_that_are_too_old_to_be_answered_are_no_error(self, telegram: FakeTelegram, ann: Person) -> None:
        message = ann.writes("hi")
        ann.sends_tap(message, "a:someid:once")
        telegram.expire_taps()
        notebook = Notebook()
        async with connected(telegram, notebook) as adapter:
            await telegram.until(lambda fake: bool(fake.called("answerCallbackQuery")))
            assert len(notebook.taps) == 1
            await until_health(adapter, ready=True)
