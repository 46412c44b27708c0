"""The adapter as the configuration builds it: roles, health, metrics, and the webhook on the listener."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from adapters.testing.telegram import FakeTelegram
from gateway import checkup, platforms
from gateway.checkup import State
from gateway.config import Config
from tests.adapters.telegram.whole import answered, card_in, configured
from tests.gateway.running import PATIENCE_S, Running, running


async def until_ready(daemon: Running, wanted: int, says: str = "") -> dict[str, Any]:
    """The answer of ``/readyz``, once it has that status and holds those words."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, body = await daemon.owner.call("GET", "/readyz")
            if status == wanted and says in json.dumps(body):
                return body
            await asyncio.sleep(0.02)


async def test_who_is_listed_is_an_admin_and_everybody_else_a_stranger(telegram: FakeTelegram, home_path: Path) -> None:
    ann, eve = telegram.person("Ann"), telegram.person("Eve")
    async with running(home_path, configured(telegram, str(ann.id))):
        eve.writes("$ echo no")
        ann.writes("$ rm -rf build")
        assert "Always approve" in (await card_in(ann.direct)).buttons
        assert eve.direct.texts == []


async def test_a_star_lets_everybody_in_as_user(telegram: FakeTelegram, home_path: Path) -> None:
    ann, eve = telegram.person("Ann"), telegram.person("Eve")
    config = configured(telegram, str(ann.id), "*")
    async with running(home_path, config):
        eve.writes("/status")
        assert f"You are telegram:{eve.id} (user)." in (await answered(eve.direct))[0]
        ann.writes("/status")
        assert f"You are telegram:{ann.id} (admin)." in (await answered(ann.direct))[0]


async def test_health_and_metrics_follow_the_connection(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    telegram.faults.refuse(409, "Conflict: terminated by other getUpdates request", times=50, method="getUpdates")
    async with running(home_path, configured(telegram, str(ann.id))) as daemon:
        body = await until_ready(daemon, 503, "Another program polls")
        assert [reason["part"] for reason in body["reasons"]] == ["telegram"]
        telegram.faults.clear()
        ann.writes("hello")  # ends the long poll that shows that nobody else polls any more
        await until_ready(daemon, 200)
        async with daemon.web.get(
            f"{daemon.base}/metrics", headers={"Authorization": f"Bearer {daemon.owner.token}"}
        ) as response:
            assert 'ostiary_adapter_ready{adapter="telegram"} 1.0' in await response.text()


async def test_the_menu_holds_the_words_of_control(telegram: FakeTelegram, home_path: Path) -> None:
    async with running(home_path, configured(telegram, "1")):
        await telegram.until(lambda fake: bool(fake.state.commands))
    names = [command["command"] for command in telegram.state.commands]
    assert {"help", "new", "stop", "status", "approve", "deny", "grants"} <= set(names)


async def test_a_changed_message_that_waits_is_read_as_changed(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with running(home_path, configured(telegram, str(ann.id))):
        ann.writes("$ rm -rf build")
        await card_in(ann.direct)
        waiting = ann.writes("$ echo helo")
        ann.edits(waiting, "$ echo hello")
        ann.writes("/deny")
        await ann.direct.until(lambda chat: any("hello" in text for text in chat.texts))
        ann.edits(waiting, "$ echo too late")
        ann.writes("$ echo end")
        await ann.direct.until(lambda chat: any(text.startswith("end") for text in chat.texts))
    assert not any("too late" in text or text.startswith("helo") for text in ann.direct.texts)


async def test_a_long_answer_comes_whole_and_in_order(telegram: FakeTelegram, home_path: Path) -> None:
    ann = telegram.person("Ann")
    async with running(home_path, configured(telegram, str(ann.id))):
        telegram.faults.flood(0, times=1)
        ann.writes("$ seq 1 1500")
        await ann.direct.until(lambda chat: len(chat.texts) > 1 and "1500" in chat.texts[-1])
    found = [int(word) for text in ann.direct.texts for word in text.split() if word.isdigit()]
    assert found == [*range(1, 1501)]


async def test_a_storm_of_failing_sends_loses_nothing_and_marks_what_may_be_double(
    telegram: FakeTelegram, home_path: Path
) -> None:
    ann, bob = telegram.person("Ann"), telegram.person("Bob")
    async with running(home_path, configured(telegram, str(ann.id), str(bob.id))):
        faults = telegram.faults
        faults.flood(0, times=2)
        faults.cut_after()
        faults.flood(0, times=2)
        for number in range(4):
            ann.writes(f"$ echo a{number}")
            bob.writes(f"$ echo b{number}")
        for person in (ann, bob):
            await person.direct.until(lambda chat: len({text.split()[-1] for text in chat.texts}) == 4)
            await person.direct.until(lambda chat: chat.texts[-1].split()[-1].endswith("3"))
    everything = [*ann.direct.texts, *bob.direct.texts]
    marked = [text for text in everything if "sent again" in text]
    assert len(everything) == 9
    assert len(marked) == 1
    for person, letter in ((ann, "a"), (bob, "b")):
        words = [text.split()[-1] for text in person.direct.texts]
        assert list(dict.fromkeys(words)) == [f"{letter}{number}" for number in range(4)]


class TestWebhook:
    SECRET = "a-long-random-secret-of-the-test"

    def config(self, telegram: FakeTelegram, *allowed: str) -> Config:
        """Updates by webhook, under the public name of a proxy."""
        data = msgspec.to_builtins(configured(telegram, *allowed))
        hook = {"enabled": True, "url": "https://bot.example.org/telegram", "secret": self.SECRET}
        data["adapters"]["telegram"]["webhook"] = hook
        data["adapters"]["http"]["allowed_hosts"] = ["bot.example.org", "127.0.0.1"]
        return msgspec.convert(data, Config)

    async def deliver(self, daemon: Running, update: object, secret: str = "") -> int:
        """Call the webhook as the proxy would pass it on; the status."""
        headers = {"Host": "bot.example.org", "X-Telegram-Bot-Api-Secret-Token": secret or self.SECRET}
        async with daemon.web.post(f"{daemon.base}/telegram", json=update, headers=headers) as response:
            return response.status

    async def test_updates_come_in_by_secret_alone(self, telegram: FakeTelegram, home_path: Path) -> None:
        ann = telegram.person("Ann")
        async with running(home_path, self.config(telegram, str(ann.id))) as daemon:
            await until_ready(daemon, 200)
            assert telegram.state.webhook == {"url": "https://bot.example.org/telegram", "secret_token": self.SECRET}
            ann.writes("$ echo hi")
            (update,) = telegram.state.updates
            assert await self.deliver(daemon, update, "a wrong secret") == 401
            assert ann.direct.texts == []
            assert await self.deliver(daemon, update) == 200
            assert "hi" in (await answered(ann.direct))[0]
            assert await self.deliver(daemon, update) == 200
            assert await self.deliver(daemon, {"update_id": 1, "message": 5}) == 200
            assert await self.deliver(daemon, ["no update"]) == 200
            ann.writes("$ rm -rf build")
            assert await self.deliver(daemon, telegram.state.updates[-1]) == 200
            card = await card_in(ann.direct)
            text = ""
            while "Approved" not in text:
                tap = ann.taps(card, "Approve once")
                assert await self.deliver(daemon, telegram.state.updates[-1]) == 200
                text = await tap.answered()
            await ann.direct.until(lambda _: card.text.startswith("✅"))
        assert len([text for text in ann.direct.texts if text.startswith("hi")]) == 1
        assert not telegram.called("getUpdates")

    async def test_without_the_header_nobody_gets_in(self, telegram: FakeTelegram, home_path: Path) -> None:
        async with running(home_path, self.config(telegram, "1")) as daemon:
            await until_ready(daemon, 200)
            async with daemon.web.post(f"{daemon.base}/telegram", json={}) as response:
                assert response.status == 401


class TestCheckup:
    def found(self, unready: dict[str, str] | None, *allowed: str) -> list[State]:
        telegram = {"enabled": True, "token": "1:abc", "allowed_users": list(allowed)}
        settings = msgspec.convert({"adapters": {"telegram": telegram}}, Config)
        return [finding.state for finding in checkup.platforms(settings, unready)]

    def test_tells_what_the_daemon_says(self) -> None:
        assert self.found({}, "42") == [State.GOOD]
        assert self.found({"telegram": "Another program polls."}, "42") == [State.BAD]
        assert self.found(None, "42") == [State.NOTE]
        assert self.found({}, "*") == [State.NOTE, State.GOOD]
        assert self.found({}) == [State.NOTE, State.GOOD]
        assert list(checkup.platforms(Config(), {})) == []


def test_nothing_of_it_is_imported_unless_enabled() -> None:
    code = "import sys; from gateway import platforms; from gateway.config import Config; "
    code += "platforms.build(Config(), None); print([name for name in sys.modules if 'telegram' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_library_is_loaded_at_start_and_not_before() -> None:
    code = "import sys, adapters.telegram.adapter; print('telegram' in sys.modules, 'markdown_it' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"


def test_nobody_is_known_while_it_is_off() -> None:
    settings = msgspec.convert({"adapters": {"telegram": {"allowed_users": ["1", "*"]}}}, Config)
    assert platforms.people(settings) == {}
    assert platforms.everyone(settings) == {}
