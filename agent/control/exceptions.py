"""Errors of the control layer.

::

    ControlError
    +-- RequestInvalid        the request does not fit its command's schema
    +-- SandboxUnavailable    (sandbox.base) no engine can run a command
    +-- PathRefused           (files) a path leaves its root or is no regular file
"""

from __future__ import annotations


class ControlError(Exception):
    """Root of this package's errors.

    Attributes:
        fix: what to do next; part of the message shown to people.
    """

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} {self.fix}".strip()


class RequestInvalid(ControlError):
    """The arguments of a command do not fit its schema; the message names the argument."""
