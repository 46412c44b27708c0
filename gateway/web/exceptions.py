"""What can keep the listener from opening.

::

    WebError
    +-- WebRefused       the settings would leave the gateway open to strangers
    +-- CannotListen     the operating system refuses the address or the socket file
        +-- PortInUse    another program listens there
"""

from __future__ import annotations


class WebError(Exception):
    """Root of what can keep the listener from opening; the message says what to do."""


class WebRefused(WebError):
    """The settings would leave the gateway open to strangers."""


class CannotListen(WebError):
    """The operating system refuses the address or the socket file."""


class PortInUse(CannotListen):
    """Another program listens there.

    Attributes:
        port: the port that is taken.
    """

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"port {port} on {host or 'every address'} is in use by another program; "
            "stop it, or set adapters.http.port to another port"
        )
        self.port = port
