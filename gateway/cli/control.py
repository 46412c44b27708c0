"""Requests to the running daemon over its control socket: the HTTP API as its owner.

The standard library's client starts in a tenth of the time of an asynchronous one, and a command asks one question.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Collection
from pathlib import Path
from typing import Any

from gateway.exceptions import DaemonRefused, DaemonUnreachable

#: Seconds to wait for an answer.
TIMEOUT_S = 15.0

#: Longest answer.
MAX_BYTES = 16 * 1024 * 1024


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path
        self._limit_s = timeout_s

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self._limit_s)
        self.sock.connect(str(self._path))


def request(
    control_sock: Path,
    method: str,
    path: str,
    body: object | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
    accept: Collection[int] = (),
) -> Any:
    """Ask the daemon; the JSON value of its answer, None where it has no body.

    Args:
        control_sock: the socket's file.
        method: of HTTP.
        path: of the API.
        body: sent as JSON.
        timeout_s: longest wait for the answer.
        accept: statuses of 400 and above that are an answer and no error.

    Raises:
        DaemonUnreachable: nobody listens there, it may not be entered, or no answer came in time.
        DaemonRefused: the answer is an error.
    """
    connection = _UnixConnection(control_sock, timeout_s)
    headers = {"Accept": "application/json"}
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        raw = response.read(MAX_BYTES)
    except TimeoutError:
        raise DaemonUnreachable(f"the daemon on {control_sock} did not answer within {timeout_s:g} s") from None
    except PermissionError:
        raise DaemonUnreachable(
            f"{control_sock} may not be opened; run this as the user that the daemon runs as"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise DaemonUnreachable(_nobody(control_sock, error)) from None
    finally:
        connection.close()
    value = _decoded(raw)
    if response.status >= http.HTTPStatus.BAD_REQUEST and response.status not in accept:
        raise _refusal(response.status, value)
    return value


def _nobody(control_sock: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return f"no daemon runs with the home {control_sock.parent}; start it with `ostiary run`, or name its --home"
    return f"the daemon on {control_sock} cannot be reached ({type(error).__name__}: {error})"


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return None


def _refusal(status: int, value: Any) -> DaemonRefused:
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        error = {}
    message = str(error.get("message") or f"the daemon answered with status {status}")
    return DaemonRefused(message, status=status, code=str(error.get("code") or ""))
