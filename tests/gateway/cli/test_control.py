from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from gateway.cli import control
from gateway.exceptions import DaemonRefused, DaemonUnreachable
from tests.gateway.cli.conftest import Ostiary


class _Server(socketserver.UnixStreamServer):
    """Answers every request with what was put into ``answer``."""

    answer: tuple[int, bytes] = (200, b"{}")

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), _Handler)
        self.seen: list[tuple[str, str, bytes]] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, body))
        status, answer = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - names of the standard library

    def address_string(self) -> str:
        return "control.sock"

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(home: Path) -> Iterator[_Server]:
    home.mkdir()
    with _Server(home / "control.sock") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class TestRequest:
    def test_answer(self, server: _Server, home: Path) -> None:
        server.answer = (200, b'{"a": 1}')
        assert control.request(home / "control.sock", "POST", "/v1/x", {"b": "\u00e9"}) == {"a": 1}
        ((method, path, body),) = server.seen
        assert (method, path, json.loads(body)) == ("POST", "/v1/x", {"b": "\u00e9"})

    def test_no_content(self, server: _Server, home: Path) -> None:
        server.answer = (204, b"")
        assert control.request(home / "control.sock", "DELETE", "/v1/x") is None

    def test_refusal(self, server: _Server, home: Path) -> None:
        server.answer = (404, b'{"error": {"code": "not_found", "message": "there is no grant x"}}')
        with pytest.raises(DaemonRefused, match="there is no grant x") as caught:
            control.request(home / "control.sock", "DELETE", "/v1/x")
        assert (caught.value.status, caught.value.code) == (404, "not_found")

    @pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"error": "x"}', b""])
    def test_refusal_in_another_form(self, server: _Server, home: Path, answer: bytes) -> None:
        server.answer = (502, answer)
        with pytest.raises(DaemonRefused, match="502"):
            control.request(home / "control.sock", "GET", "/")

    def test_nobody_there(self, home: Path) -> None:
        with pytest.raises(DaemonUnreachable, match="ostiary run"):
            control.request(home / "control.sock", "GET", "/")

    def test_socket_of_a_daemon_that_was_killed(self, home: Path) -> None:
        home.mkdir()
        _Server(home / "control.sock").server_close()
        with pytest.raises(DaemonUnreachable, match="ostiary run"):
            control.request(home / "control.sock", "GET", "/")

    def test_no_answer_in_time(self, home: Path) -> None:
        home.mkdir()
        with _Server(home / "control.sock"), pytest.raises(DaemonUnreachable, match="did not answer"):
            control.request(home / "control.sock", "GET", "/", timeout_s=0.05)

    def test_path_too_long_for_a_socket(self, home: Path) -> None:
        with pytest.raises(DaemonUnreachable, match="cannot be reached"):
            control.request(home / ("x" * 200), "GET", "/")


class TestCommands:
    def test_link(self, server: _Server, ostiary: Ostiary) -> None:
        server.answer = (200, b'{"url": "http://127.0.0.1:8642/login?code=abc"}')
        assert ostiary("link").out == "open http://127.0.0.1:8642/login?code=abc\n"
        assert ostiary("link", "--json").json() == {"url": "http://127.0.0.1:8642/login?code=abc"}
        assert server.seen[0][:2] == ("POST", "/v1/link")

    def test_revoke(self, server: _Server, ostiary: Ostiary) -> None:
        server.answer = (200, b'{"id": "p1", "revoked": true}')
        assert "revoked" in ostiary("grants", "revoke", "p1").out
        assert ostiary("grants", "revoke", "a/../b?c", "--json").json()["revoked"] is True
        assert [path for _, path, _ in server.seen] == ["/v1/grants/p1", "/v1/grants/a%2F..%2Fb%3Fc"]

    @pytest.mark.parametrize("arguments", [("link",), ("grants", "revoke", "x")])
    def test_without_a_daemon(self, ostiary: Ostiary, arguments: tuple[str, ...]) -> None:
        ran = ostiary(*arguments)
        assert ran.status == 1
        assert ran.out == ""
        assert "ostiary run" in ran.err
