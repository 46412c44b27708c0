"""The chat page, its files, and the way in: login links and the cookie.

The files lie beside this module and are read once: a request never touches the disk, and no path reaches it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from adapters.http.wire import reply
from gateway.web.auth import COOKIE, Auth

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page, ready to be sent."""

    body: bytes
    content_type: str
    etag: str


def load_assets(folder: Path = STATIC) -> dict[str, Asset]:
    """The page's files by name. Reads the disk: call it in a thread.

    Raises:
        OSError: a file cannot be read; the installation is broken.
    """
    assets = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in _TYPES:
            body = path.read_bytes()
            etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            assets[path.name] = Asset(body, _TYPES[path.suffix], etag)
    return assets


class Pages:
    """``/``, ``/static/``, ``/login`` and ``/logout``."""

    def __init__(self, assets: Mapping[str, Asset], auth: Auth) -> None:
        self._assets = assets
        self._auth = auth

    def routes(self) -> tuple[web.RouteDef, ...]:
        """Everything that a browser asks for before it speaks to the API."""
        return (
            web.get("/", self._index),
            web.get("/static/{name}", self._static),
            # A HEAD request, as a link preview makes, must not use the code up.
            web.get("/login", self._login, allow_head=False),
            web.head("/login", self._login_head),
            web.post("/logout", self._logout),
        )

    async def locked(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """The page for a stranger: how to get in."""
        return self._page("locked.html", 401)

    async def _index(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return self._page("index.html")

    async def _static(self, request: web.Request) -> web.Response:
        asset = self._assets.get(request.match_info["name"])
        if asset is None:
            raise web.HTTPNotFound
        # A browser may keep it but asks each time, so that an upgrade shows at once.
        headers = {"Content-Type": asset.content_type, "ETag": asset.etag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == asset.etag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=asset.body, headers=headers)

    async def _login(self, request: web.Request) -> web.Response:
        if "prefetch" in request.headers.get("Sec-Purpose", ""):
            return self._page("expired.html", 503)
        wait_s = self._auth.patience.wait_s()
        if wait_s:
            response = self._page("expired.html", 429)
            response.headers["Retry-After"] = str(wait_s)
            return response
        user = self._auth.codes.take(request.query.get("code", ""))
        if user is None:
            self._auth.patience.failed()
            return self._page("expired.html", 401)
        # 200 and not a redirect: a strict cookie is not sent along when another site's link led here, but it is with
        # the navigation that the page itself begins.
        response = self._page("login.html")
        response.set_cookie(
            COOKIE,
            self._auth.cookies.issue(user),
            max_age=self._auth.cookies.max_age_s,
            path="/",
            httponly=True,
            samesite="Strict",
            secure=_is_https(request),
        )
        return response

    async def _login_head(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.Response(content_type="text/html", charset="utf-8")

    async def _logout(self, request: web.Request) -> web.Response:
        response = reply({"logged_out": True})
        response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict", secure=_is_https(request))
        return response

    def _page(self, name: str, status: int = 200) -> web.Response:
        asset = self._assets[name]
        return web.Response(body=asset.body, status=status, headers={"Content-Type": asset.content_type})


def _is_https(request: web.Request) -> bool:
    """Whether the browser came by TLS, here or at a proxy before us.

    The header can be forged only by who makes the request, and to their own cookie's harm.
    """
    return request.secure or request.headers.get("X-Forwarded-Proto", "").strip().lower() == "https"
