"""Who comes in: Host, origin and token, in this order, over a real socket."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapters.http.ports import CALLER
from tests.gateway.web.conftest import ALICE_TOKEN, OWNER_TOKEN, House, HouseMaker

SESSIONS = "/v1/sessions"
POST = "/v1/sessions/main/messages"


class TestToken:
    @pytest.mark.parametrize("token", [OWNER_TOKEN, ALICE_TOKEN])
    async def test_a_right_one(self, house: House, token: str) -> None:
        assert await house.status("GET", SESSIONS, token=token) == 200

    @pytest.mark.parametrize(
        "header",
        ["Bearer ", "Bearer", "Bearer owner-token-012345678X", f"Basic {OWNER_TOKEN}", f"Bearer {OWNER_TOKEN}x"],
    )
    async def test_a_wrong_one(self, house: House, header: str) -> None:
        response = await house.request("GET", SESSIONS, headers={"Authorization": header})
        assert response.status == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert (await response.json())["error"]["code"] == "unauthorized"

    @pytest.mark.parametrize("path", [SESSIONS, "/v1/asks", "/metrics", "/ops", "/nowhere", "/static", "/healthz/x"])
    async def test_none(self, house: House, path: str) -> None:
        """Without a token nothing tells which paths exist."""
        assert await house.status("GET", path) == 401

    async def test_what_is_public(self, house: House) -> None:
        assert await house.status("GET", "/healthz") == 200
        assert await house.status("GET", "/readyz") == 200
        assert await house.status("GET", "/static/style.css") == 200

    async def test_the_token_decides_whose_sessions(self, house: House) -> None:
        await house.request("POST", POST, token=ALICE_TOKEN, json={"text": "hi"})
        assert (await (await house.request("GET", SESSIONS, token=OWNER_TOKEN)).json()) == {"sessions": []}

    async def test_a_header_names_no_user(self, house: House) -> None:
        assert await house.status("GET", SESSIONS, headers={"X-User": "owner", "X-Session": "main"}) == 401


class TestCookie:
    async def test_from_link_to_api(self, house: House) -> None:
        cookie = await house.log_in()
        headers = {"Cookie": f"ostiary_session={cookie}"}
        assert await house.status("GET", SESSIONS, headers=headers) == 200
        assert await house.status("GET", "/", headers=headers) == 200
        assert await house.status("POST", POST, headers=headers, json={"text": "hi"}) == 202

    async def test_its_attributes(self, house: House) -> None:
        code = house.server.login_url().partition("code=")[2]
        response = await house.request("GET", f"/login?code={code}")
        attributes = set(response.headers["Set-Cookie"].partition(";")[2].replace(" ", "").split(";"))
        assert attributes == {"HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=Strict"}
        assert OWNER_TOKEN not in response.headers["Set-Cookie"]

    async def test_secure_behind_tls(self, house: House) -> None:
        code = house.server.login_url().partition("code=")[2]
        response = await house.request("GET", f"/login?code={code}", headers={"X-Forwarded-Proto": "https"})
        assert "; Secure" in response.headers["Set-Cookie"]

    async def test_tampered_and_expired(self, house: House) -> None:
        cookie = await house.log_in()
        forged = cookie[:-1] + ("A" if cookie[-1] != "A" else "B")
        assert await house.status("GET", SESSIONS, headers={"Cookie": f"ostiary_session={forged}"}) == 401
        house.clock.step_wall(timedelta(days=31))
        assert await house.status("GET", SESSIONS, headers={"Cookie": f"ostiary_session={cookie}"}) == 401

    async def test_log_out(self, house: House) -> None:
        cookie = await house.log_in()
        response = await house.request("POST", "/logout", headers={"Cookie": f"ostiary_session={cookie}"})
        assert response.status == 200
        assert "Max-Age=0" in response.headers["Set-Cookie"]


class TestLogin:
    async def test_a_code_works_once(self, house: House) -> None:
        code = house.server.login_url().partition("code=")[2]
        assert await house.status("GET", f"/login?code={code}") == 200
        second = await house.request("GET", f"/login?code={code}")
        assert second.status == 401
        assert "Set-Cookie" not in second.headers

    @pytest.mark.parametrize("query", ["", "?code=", "?code=x", "?code=%ED%A0%80", "?code[]=x"])
    async def test_without_a_right_code(self, house: House, query: str) -> None:
        response = await house.request("GET", f"/login{query}")
        assert response.status == 401
        assert "ostiary link" in await response.text()

    async def test_previews_do_not_use_it_up(self, house: House) -> None:
        code = house.server.login_url().partition("code=")[2]
        assert await house.status("HEAD", f"/login?code={code}") == 200
        assert await house.status("GET", f"/login?code={code}", headers={"Sec-Purpose": "prefetch;prerender"}) == 503
        assert await house.status("GET", f"/login?code={code}") == 200

    async def test_after_many_failures_everybody_waits(self, house: House) -> None:
        code = house.server.login_url().partition("code=")[2]
        for _ in range(20):
            assert await house.status("GET", "/login?code=guess") == 401
        response = await house.request("GET", f"/login?code={code}")
        assert response.status == 429
        await house.clock.advance(float(response.headers["Retry-After"]))
        assert await house.status("GET", f"/login?code={code}") == 200

    async def test_the_page_for_a_stranger_says_what_to_do(self, house: House) -> None:
        response = await house.request("GET", "/")
        assert response.status == 401
        assert "ostiary link" in await response.text()
        assert response.content_type == "text/html"


class TestHost:
    @pytest.mark.parametrize(
        "host", ["127.0.0.1", "127.0.0.1:9", "localhost", "LOCALHOST:8642", "localhost.", "[::1]", "[::1]:8642"]
    )
    async def test_ours(self, house: House, host: str) -> None:
        assert await house.status("GET", SESSIONS, token=OWNER_TOKEN, headers={"Host": host}) == 200

    @pytest.mark.parametrize(
        "host",
        ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "localhost@evil.example", "", "127.0.0.1:x"],
    )
    async def test_a_rebound_name_is_421(self, house: House, host: str) -> None:
        """A name of a stranger's that now points here: even with a right cookie, and for what is public."""
        cookie = await house.log_in()
        for path in (SESSIONS, "/", "/healthz", "/login?code=x"):
            response = await house.request("GET", path, headers={"Host": host, "Cookie": f"ostiary_session={cookie}"})
            assert response.status == 421
            assert (await response.json())["error"]["code"] == "wrong_host"

    async def test_configured_names_replace_the_default(self, make_house: HouseMaker) -> None:
        house = await make_house(allowed_hosts=("Ostiary.example", "10.0.0.5:8642"))
        for host, status in {
            "ostiary.example": 200,
            "ostiary.example:443": 200,
            "10.0.0.5:8642": 200,
            "10.0.0.5": 421,
            "10.0.0.5:80": 421,
            "localhost": 421,
        }.items():
            assert await house.status("GET", "/healthz", headers={"Host": host}) == status, host
        assert house.server.login_url().startswith(f"http://ostiary.example:{house.server.port}/login?code=")

    async def test_on_every_address_the_one_of_the_connection_is_ours(self, make_house: HouseMaker) -> None:
        house = await make_house(host="0.0.0.0")
        assert await house.status("GET", "/healthz", headers={"Host": "127.0.0.1"}) == 200
        assert await house.status("GET", "/healthz", headers={"Host": "192.0.2.1"}) == 421
        assert house.server.login_url().startswith(f"http://127.0.0.1:{house.server.port}/")


class TestOrigin:
    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:1"},
            {"Origin": "file://"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
        ],
    )
    @pytest.mark.parametrize("method", ["POST", "DELETE"])
    async def test_a_foreign_page_changes_nothing(self, house: House, method: str, headers: dict[str, str]) -> None:
        cookie = await house.log_in()
        await house.request("POST", POST, token=OWNER_TOKEN, json={"text": "hi"})
        path = POST if method == "POST" else "/v1/sessions/main"
        headers = headers | {"Cookie": f"ostiary_session={cookie}"}
        response = await house.request(method, path, headers=headers, json={"text": "evil"})
        assert response.status == 403
        assert (await response.json())["error"]["code"] == "forbidden"
        assert [row.text for row in house.desk.session("owner", "main").rows] == ["hi"]

    async def test_our_own_page_may(self, house: House) -> None:
        cookie = await house.log_in()
        headers = {"Origin": house.url, "Sec-Fetch-Site": "same-origin", "Cookie": f"ostiary_session={cookie}"}
        assert await house.status("POST", POST, headers=headers, json={"text": "hi"}) == 202

    async def test_a_program_without_origin_may(self, house: House) -> None:
        assert await house.status("POST", POST, token=OWNER_TOKEN, json={"text": "hi"}) == 202

    async def test_reading_is_held_by_the_cookie_alone(self, house: House) -> None:
        assert await house.status("GET", "/healthz", headers={"Origin": "http://evil.example"}) == 200


class TestErrors:
    async def test_unknown_paths_and_methods_are_json(self, house: House) -> None:
        unknown = await house.request("GET", "/v1/nowhere", token=OWNER_TOKEN)
        assert (unknown.status, (await unknown.json())["error"]["code"]) == (404, "not_found")
        method = await house.request("PUT", SESSIONS, token=OWNER_TOKEN)
        assert (method.status, (await method.json())["error"]["code"]) == (405, "method_not_allowed")
        assert method.headers["Allow"] == "GET, HEAD"
        static = await house.request("GET", "/static/..%2fauth.py", token=OWNER_TOKEN)
        assert static.status == 404

    async def test_a_fault_is_logged_once_and_tells_nothing(self, make_house: HouseMaker) -> None:
        async def broken(request: web.Request) -> web.Response:
            raise RuntimeError("the password is hunter2")

        house = await make_house(routes=(web.get("/v1/broken/{name}", broken),))
        with capture_logs() as logs:
            response = await house.request("GET", "/v1/broken/x?code=abc", token=OWNER_TOKEN)
        assert response.status == 500
        error = (await response.json())["error"]
        assert error["code"] == "internal"
        assert "hunter2" not in error["message"]
        (line,) = [one for one in logs if one["log_level"] == "error"]
        assert line["fault_id"] in error["message"]
        assert line["route"] == "/v1/broken/{name}"
        assert "abc" not in str({name: value for name, value in line.items() if name != "exc_info"})

    async def test_a_fault_after_the_first_byte_breaks_the_connection(self, make_house: HouseMaker) -> None:
        async def broken(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"half")
            raise RuntimeError

        house = await make_house(routes=(web.get("/v1/broken", broken),))
        with capture_logs() as logs, pytest.raises(Exception, match=r"(?i)payload|disconnected|closed|reset"):
            await house.request("GET", "/v1/broken", token=OWNER_TOKEN)
        assert [one["event"] for one in logs if one["log_level"] == "error"] == ["request_failed"]

    async def test_too_large_for_any_handler(self, make_house: HouseMaker) -> None:
        async def reads(request: web.Request) -> web.Response:
            return web.Response(body=await request.read())

        house = await make_house(routes=(web.post("/v1/reads", reads),))

        async def chunks() -> Any:
            for _ in range(17):
                yield b"x" * 65_536

        response = await house.request("POST", "/v1/reads", token=OWNER_TOKEN, data=chunks())
        assert (response.status, (await response.json())["error"]["code"]) == (413, "too_large")


async def test_what_is_not_http_is_logged_without_its_content(house: House, caplog: pytest.LogCaptureFixture) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.server.port)
    writer.write(b"GET /login?code=S3CRET HTTP/1.1\r\nHost: localhost\r\nbroken header S3CRET\r\n\r\n")
    assert b" 400 " in await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert "Error handling request" in caplog.text
    assert "S3CRET" not in caplog.text


async def test_signed_paths_need_no_token_and_are_seen_through(make_house: HouseMaker) -> None:
    callers: list[object] = []

    async def webhook(request: web.Request) -> web.Response:
        callers.append(request.get(CALLER))
        return web.Response(text="ok")

    house = await make_house(routes=(web.post("/slack/events", webhook),), signed=("/slack/events",))
    assert await house.status("POST", "/slack/events", data=b"x") == 200
    assert await house.status("POST", "/slack/other", data=b"x") == 401
    assert await house.status("POST", "/slack/events", data=b"x", headers={"Host": "evil.example"}) == 421
    assert callers == [None]


async def test_headers_of_every_response(house: House) -> None:
    for path, token in (("/", None), ("/healthz", None), (SESSIONS, OWNER_TOKEN), ("/v1/nowhere", OWNER_TOKEN)):
        headers = (await house.request("GET", path, token=token)).headers
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "aiohttp" not in headers["Server"]
