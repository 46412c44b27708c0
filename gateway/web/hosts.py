"""Which ``Host`` headers are ours, and which origins may change something.

A page of a stranger can make a browser send requests to a loopback port, and by rebinding its own name to 127.0.0.1 it
can even read the answers. Its ``Host`` or ``Origin`` header then names the stranger, which is how it is told apart.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from aiohttp import web

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_OWN_SITE = frozenset({"same-origin", "none"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on ``host``; names other than ``localhost`` count as open."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Whether ``host`` means every address of the machine."""
    try:
        return not host or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def bracketed(host: str) -> str:
    """``host`` as it stands in an address: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


class Hosts:
    """The ``Host`` headers that are ours.

    Args:
        allowed: names or addresses, each with or without a port; without one any port will do. Empty means the
            loopback names and ``bound``; if ``bound`` is every address of the machine, the one that the connection
            came in on.
        bound: the address that the gateway listens on.

    Attributes:
        preferred: name and port that links name; the port is empty where any will do.
    """

    def __init__(self, allowed: Sequence[str], bound: str) -> None:
        self._any_local = not allowed and is_wildcard(bound)
        names: Iterable[str] = allowed or (*LOOPBACK_NAMES, bound)
        self._allowed = frozenset(split for name in names if (split := _split(name))[0])
        self.preferred = self._prefer(allowed, bound)

    def _prefer(self, allowed: Sequence[str], bound: str) -> tuple[str, str]:
        """Name and port for links; the port is empty where any will do."""
        here = _split("127.0.0.1" if is_wildcard(bound) else bound)
        return here if self._any_local or here in self._allowed else _split(allowed[0])

    def ours(self, request: web.Request) -> bool:
        """Whether the request's one ``Host`` header names this gateway."""
        given = request.headers.getall("Host", [])
        if len(given) != 1:
            return False
        name, port = _split(given[0])
        if not name:
            return False
        if (name, "") in self._allowed or (name, port) in self._allowed:
            return True
        return self._any_local and name == _local_address(request)


def same_origin(request: web.Request) -> bool:
    """Whether the request changes nothing, or does not come from a page of somebody else.

    Programs that are no browsers send neither header. A browser sends ``Origin`` with everything that changes state.
    """
    if request.method in _SAFE_METHODS:
        return True
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in _OWN_SITE:
        return False
    origins = request.headers.getall("Origin", [])
    if not origins:
        return True
    if len(origins) > 1:
        return False
    parts = urlsplit(origins[0])
    # The scheme is not compared: behind a proxy that ends TLS the gateway sees http where the browser saw https.
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == request.headers.get("Host", "").lower()


def _split(host: str) -> tuple[str, str]:
    """Name and port, the name in its plain form; an empty name for what is no host."""
    text = host.strip().lower()
    if text.startswith("["):
        name, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            return "", ""
        port = rest[1:]
    elif text.count(":") > 1:
        name, port = text, ""
    else:
        name, _, port = text.partition(":")
    if port and not port.isdecimal():
        return "", ""
    return _plain(name.removesuffix(".")), port


def _plain(name: str) -> str:
    try:
        return ipaddress.ip_address(name).compressed
    except ValueError:
        return name


def _local_address(request: web.Request) -> str:
    """The address of this machine that the connection came in on."""
    socket_name = request.transport.get_extra_info("sockname") if request.transport is not None else None
    if not isinstance(socket_name, tuple):
        return ""
    address = _plain(str(socket_name[0]).partition("%")[0])
    return address.removeprefix("::ffff:")
