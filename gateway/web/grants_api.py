"""What ``ostiary grants revoke`` asks for over ``control.sock``."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from adapters.http.exceptions import NotFound
from adapters.http.ports import CALLER
from adapters.http.wire import refusal, reply
from gateway.grants import Grants


def grant_routes(grants: Grants) -> Sequence[web.RouteDef]:
    """``DELETE /v1/grants/{id}``; for the owner's socket only."""

    async def revoke(request: web.Request) -> web.Response:
        grant_id = request.match_info["id"]
        if await grants.revoke(grant_id, f"http:{request[CALLER].user}"):
            return reply({"id": grant_id, "revoked": True})
        return refusal(NotFound(f"there is no grant {grant_id[:64]}"))

    return [web.delete("/v1/grants/{id}", revoke)]
