"""Tells systemd how the daemon does: one datagram a message to the socket that systemd names (``man sd_notify``)."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping

from agent.control.clock import Clock


class Notifier:
    """Speaks to the service manager; without one every call does nothing."""

    def __init__(self, address: str = "", *, watchdog_s: float | None = None) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watchdog_s = watchdog_s

    @classmethod
    def from_environment(cls, environ: MutableMapping[str, str]) -> Notifier:
        """Take the socket and the watchdog's interval out of ``environ``, so that no child inherits them."""
        address = environ.pop("NOTIFY_SOCKET", "")
        interval = environ.pop("WATCHDOG_USEC", "")
        meant_for = environ.pop("WATCHDOG_PID", "")
        watched = interval.isdigit() and int(interval) > 0 and meant_for in {"", str(os.getpid())}
        return cls(address, watchdog_s=int(interval) / 1e6 if watched else None)

    def ready(self, status: str = "ready") -> None:
        """The start is complete."""
        self._send(f"READY=1\nSTATUS={_line(status)}")

    def status(self, text: str) -> None:
        """One line for ``systemctl status``."""
        self._send(f"STATUS={_line(text)}")

    def stopping(self) -> None:
        """The stop has begun."""
        self._send("STOPPING=1\nSTATUS=draining")

    async def watch(self, clock: Clock) -> None:
        """Tell the watchdog twice an interval that the event loop turns; returns at once where nobody watches."""
        if self._watchdog_s is None or not self._address:
            return
        while True:
            self._send("WATCHDOG=1")
            await clock.sleep(self._watchdog_s / 2)

    def _send(self, message: str) -> None:
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.setblocking(False)
            try:
                channel.sendto(message.encode(), self._address)
            except OSError:
                return  # the manager is away or busy; it asks for nothing more than an attempt


def _line(text: str) -> str:
    return " ".join(text.split())
