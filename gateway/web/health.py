"""Whether the process lives, whether it is ready, and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from aiohttp import web

from adapters.http.wire import reply

#: The text format of Prometheus, version 0.0.4.
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class State(Protocol):
    """Whether a part of the daemon works; ``reason`` says why not."""

    @property
    def ready(self) -> bool:
        """Whether it works now."""
        ...

    @property
    def reason(self) -> str:
        """Why not; empty while it works."""
        ...


class HealthRoutes:
    """``/healthz``, ``/readyz`` and ``/metrics``.

    Args:
        checks: name of each part and how to ask it; asked at every request, so it must be quick.
        metrics: the metrics in the text format of Prometheus.
    """

    def __init__(self, checks: Mapping[str, Callable[[], State]], metrics: Callable[[], str]) -> None:
        self._checks = dict(checks)
        self._metrics = metrics

    def routes(self) -> tuple[web.RouteDef, ...]:
        """The three of them."""
        return (
            web.get("/healthz", self._healthz),
            web.get("/readyz", self._readyz),
            web.get("/metrics", self._metrics_text),
        )

    async def _healthz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return reply({"alive": True})

    async def _readyz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        states = ((name, check()) for name, check in self._checks.items())
        reasons = [{"part": name, "reason": state.reason} for name, state in states if not state.ready]
        return reply({"ready": not reasons, "reasons": reasons}, 503 if reasons else 200)

    async def _metrics_text(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.Response(body=self._metrics().encode(), headers={"Content-Type": _METRICS_TYPE})
