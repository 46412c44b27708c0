"""The listener's life: what it refuses, the control socket, health, and an end that waits for nobody."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest
from aiohttp import ClientSession, UnixConnector, web

from adapters.base import Health
from gateway.web.exceptions import CannotListen, PortInUse, WebRefused
from gateway.web.hosts import is_loopback
from tests.gateway.web.conftest import OWNER_TOKEN, House, HouseMaker


class TestRefusals:
    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "ostiary.example"])
    async def test_open_to_others_without_tokens(self, make_house: HouseMaker, host: str) -> None:
        house = await make_house.build(host=host, tokens=())
        with pytest.raises(WebRefused, match=r"adapters\.http\.tokens"):
            await house.server.start()

    @pytest.mark.parametrize(
        ("host", "expected"),
        [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("", False)],
    )
    def test_loopback(self, host: str, expected: bool) -> None:
        assert is_loopback(host) is expected

    async def test_a_port_in_use_is_named(self, make_house: HouseMaker) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            house = await make_house.build(port=port)
            with pytest.raises(PortInUse, match=str(port)) as caught:
                await house.server.start()
        assert caught.value.port == port
        assert not house.socket_path.exists()

    async def test_an_address_of_another_machine(self, make_house: HouseMaker) -> None:
        house = await make_house.build(host="192.0.2.1")
        with pytest.raises(CannotListen, match=r"192\.0\.2\.1"):
            await house.server.start()


class TestControlSocket:
    async def test_only_its_owner_can_open_it(self, house: House) -> None:
        info = house.socket_path.lstat()
        assert stat.S_ISSOCK(info.st_mode)
        assert stat.S_IMODE(info.st_mode) == 0o600
        assert info.st_uid == os.geteuid()

    async def test_everybody_there_is_the_owner(self, house: House, owner: ClientSession) -> None:
        async with owner.post("/v1/sessions/main/messages", json={"text": "hi"}) as response:
            assert response.status == 202
        assert house.desk.session("owner", "main").turn is not None

    async def test_neither_host_nor_origin_matter_there(self, owner: ClientSession) -> None:
        headers = {"Host": "anything", "Origin": "http://evil.example"}
        async with owner.post("/v1/sessions/main/messages", json={"text": "hi"}, headers=headers) as response:
            assert response.status == 202

    async def test_it_makes_login_links(self, house: House, owner: ClientSession) -> None:
        async with owner.post("/v1/link") as response:
            url = (await response.json())["url"]
        assert url.startswith(f"{house.url}/login?code=")
        assert await house.status("GET", url.removeprefix(house.url)) == 200
        assert await house.status("POST", "/v1/link", token=OWNER_TOKEN) == 404

    async def test_it_has_no_pages(self, owner: ClientSession) -> None:
        async with owner.get("/") as response:
            assert response.status == 404

    async def test_a_stale_file_is_replaced(self, make_house: HouseMaker, short_folder: Path) -> None:
        path = short_folder / "stale.sock"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        house = await make_house(control_path=path)
        async with (
            ClientSession(connector=UnixConnector(str(path))) as client,
            client.get("http://ostiary/healthz") as response,
        ):
            assert response.status == 200
        await house.server.stop()
        assert not path.exists()

    async def test_a_file_that_is_no_socket_stays(self, make_house: HouseMaker, short_folder: Path) -> None:
        path = short_folder / "notes.txt"
        path.write_text("mine")
        house = await make_house.build(control_path=path)
        with pytest.raises(CannotListen, match=r"notes\.txt"):
            await house.server.start()
        assert path.read_text() == "mine"
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", house.server.port)

    async def test_a_path_that_is_too_long_says_so(self, make_house: HouseMaker, tmp_path: Path) -> None:
        house = await make_house.build(control_path=tmp_path / ("x" * 110) / "control.sock")
        with pytest.raises(CannotListen, match="--home"):
            await house.server.start()

    async def test_the_file_of_a_successor_is_left_alone(self, house: House) -> None:
        house.socket_path.unlink()
        with socket.socket(socket.AF_UNIX) as successor:
            successor.bind(str(house.socket_path))
            await house.server.stop()
            assert house.socket_path.exists()


class TestHealth:
    async def test_alive_whatever_happens(self, house: House) -> None:
        house.health["store"] = Health(ready=False, reason="disk full")
        assert await house.status("GET", "/healthz") == 200

    async def test_ready_only_when_every_part_is(self, house: House) -> None:
        assert await (await house.request("GET", "/readyz")).json() == {"ready": True, "reasons": []}
        house.health["store"] = Health(ready=False, reason="a commit has waited for 5 s")
        response = await house.request("GET", "/readyz")
        assert response.status == 503
        assert await response.json() == {
            "ready": False,
            "reasons": [{"part": "store", "reason": "a commit has waited for 5 s"}],
        }

    async def test_metrics_need_a_token(self, house: House) -> None:
        assert await house.status("GET", "/metrics") == 401
        response = await house.request("GET", "/metrics", token=OWNER_TOKEN)
        assert await response.text() == "ostiary_messages_total 3\n"
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")


class TestStatic:
    async def test_files_are_asked_for_again_but_not_sent_again(self, house: House) -> None:
        first = await house.request("GET", "/static/app.js")
        assert first.content_type == "text/javascript"
        again = await house.request("GET", "/static/app.js", headers={"If-None-Match": first.headers["ETag"]})
        assert again.status == 304

    async def test_nothing_else_is_reached(self, house: House) -> None:
        for name in ("..", "../auth.py", "..%2Fauth.py", "%2e%2e%2fauth.py", "nothing.js", ""):
            assert await house.status("GET", f"/static/{name}") in {401, 404}, name


class TestStop:
    async def test_fifty_open_streams_do_not_hold_it(self, make_house: HouseMaker) -> None:
        """The server would wait for them for its whole time-out, were they not closed first."""
        house = await make_house(shutdown_s=600)
        await house.request("POST", "/v1/sessions/main/messages", token=OWNER_TOKEN, json={"text": "hi"})
        headers = {"Authorization": f"Bearer {OWNER_TOKEN}"}
        streams = []
        for number in range(50):
            if number == 32:
                headers = {"Authorization": "Bearer alice-token-0123456789"}
                await house.client.post(f"{house.url}/v1/sessions/main/messages", headers=headers, json={"text": "hi"})
            streams.append(await house.client.get(f"{house.url}/v1/sessions/main/events", headers=headers))
        assert [stream.status for stream in streams] == [200] * 50
        await house.server.stop()
        for stream in streams:
            assert b"turn.started" in await stream.read()
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", house.server.port)

    async def test_again_and_before_the_start(self, make_house: HouseMaker) -> None:
        house = await make_house.build()
        await house.server.stop()
        await house.server.stop()

    async def test_a_request_under_way_is_answered(self, make_house: HouseMaker) -> None:
        entered, go = asyncio.Event(), asyncio.Event()

        async def slow(request: web.Request) -> web.Response:
            entered.set()
            await go.wait()
            return web.Response(text="done")

        house = await make_house(routes=(web.get("/v1/slow", slow),))
        request = asyncio.create_task(house.request("GET", "/v1/slow", token=OWNER_TOKEN))
        await entered.wait()
        stop = asyncio.create_task(house.server.stop())
        await asyncio.sleep(0)
        go.set()
        assert await (await request).text() == "done"
        await stop
