"""The library's transport on aiohttp: it says what is certain about a failed call, and carries more than the default.

The library's own retries do not exist at this level; whoever calls decides.
"""

from __future__ import annotations

import json
from typing import Any

import aiohttp
from telegram.error import BadRequest
from telegram.request import BaseRequest, RequestData

from adapters.telegram.exceptions import Cut, Flood, NotConnected, ServerFault

#: Limits of one call, in seconds: until a connection stands, and until the whole answer is there.
CONNECT_S = 10.0
READ_S = 30.0

#: Statuses whose meaning the library knows.
_KNOWN = frozenset({400, 401, 403, 404, 409})

#: What to wait after a 429 that does not say.
_FLOOD_S = 5.0


class AiohttpRequest(BaseRequest):
    """One pool of connections to the Bot API.

    Args:
        connections: how many at once.
        read_s: limit of a call that names none.
    """

    def __init__(self, *, connections: int, read_s: float = READ_S) -> None:
        self._connections = connections
        self._read_s = read_s
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float | None:
        """The limit of a call that names none, in seconds."""
        return self._read_s

    async def initialize(self) -> None:
        """Open the pool, if it is not open."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                headers={"User-Agent": self.USER_AGENT},
                trust_env=True,
            )

    async def shutdown(self) -> None:
        """Close every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def renew(self) -> None:
        """Begin with new connections."""
        await self.shutdown()
        await self.initialize()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = BaseRequest.DEFAULT_NONE,
        write_timeout: Any = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        connect_timeout: Any = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
        pool_timeout: Any = BaseRequest.DEFAULT_NONE,  # noqa: ARG002
    ) -> tuple[int, bytes]:
        """Make one call.

        Raises:
            NotConnected: certainly without effect.
            Cut: nobody knows whether it had an effect.
            ServerFault: likewise.
            Flood: certainly without effect.
            telegram.error.BadRequest: a status below 500 that the library has no name for.
        """
        session = self._session
        if session is None:
            raise NotConnected("the connection is closed")
        read_s = self._read_s if read_timeout is BaseRequest.DEFAULT_NONE else read_timeout
        limit = aiohttp.ClientTimeout(total=None if read_s is None else CONNECT_S + read_s, sock_connect=CONNECT_S)
        try:
            async with session.request(
                method, url, data=_body(request_data), timeout=limit, allow_redirects=False
            ) as response:
                payload = await response.read()
                status = response.status
        # the texts of these errors may hold the address, and with it the token
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise NotConnected(f"no connection ({type(error).__name__})") from None
        except TimeoutError:
            raise Cut(f"no answer within {read_s:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Cut(f"the connection was cut ({type(error).__name__})") from None
        _judge(status, payload)
        return status, payload


def _body(data: RequestData | None) -> aiohttp.FormData | dict[str, str] | None:
    if data is None:
        return None
    if not data.contains_files:
        return data.json_parameters
    form = aiohttp.FormData()
    for name, value in data.json_parameters.items():
        form.add_field(name, value)
    for name, (filename, content, mime) in (data.multipart_data or {}).items():
        form.add_field(name, content, filename=filename, content_type=mime)
    return form


def _judge(status: int, payload: bytes) -> None:
    """Raise for a status that the library would not tell apart well enough."""
    if status == 429:
        raise Flood(_retry_after(payload))
    if status >= 500 or 300 <= status < 400:
        raise ServerFault(f"status {status}")
    if status >= 400 and status not in _KNOWN:
        raise BadRequest(f"status {status}")


def _retry_after(payload: bytes) -> float:
    try:
        return float(json.loads(payload)["parameters"]["retry_after"])
    except (ValueError, TypeError, KeyError):
        return _FLOOD_S
