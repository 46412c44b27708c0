"""Reads a stream of server-sent events as a client does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientResponse


@dataclass(frozen=True)
class Got:
    """One event, or a comment (type ``:``)."""

    type: str
    data: Any = None
    id: int = 0


class EventReader:
    """The events of one response, in order."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response
        self._frames = self._read()

    def close(self) -> None:
        self.response.close()

    async def next(self) -> Got:
        """The next event; comments are skipped."""
        while True:
            got = await anext(self._frames)
            if got.type != ":":
                return got

    async def until(self, kind: str) -> list[Got]:
        """All events up to and with the next one of that type."""
        events = [await self.next()]
        while events[-1].type != kind:
            events.append(await self.next())
        return events

    async def comment(self) -> None:
        """Wait for the next comment; events before it are an error."""
        got = await anext(self._frames)
        assert got.type == ":", got

    async def ended(self) -> list[Got]:
        """What is left, once the stream has ended in order."""
        return [got async for got in self._frames if got.type != ":"]

    async def _read(self) -> AsyncIterator[Got]:
        fields: dict[str, str] = {}
        async for raw in self.response.content:
            line = raw.decode().rstrip("\n")
            if not line:
                if fields:
                    yield Got(fields["event"], json.loads(fields["data"]), int(fields.get("id", "0")))
                fields = {}
            elif line.startswith(":"):
                yield Got(":")
            else:
                name, _, value = line.partition(": ")
                assert name in {"id", "event", "data"}, line
                assert name not in fields, f"{name} twice in one event: data must be one line"
                fields[name] = value
