"""Errors inside the guard; none of them leaves it.

::

    Unreadable         the command cannot be read to its end: ask, unless the net refuses
    +-- OverLimit      reading it would cost more than the guard spends on one command
"""

from __future__ import annotations


class Unreadable(Exception):
    """The text is no shell command that the guard can follow; the message says why, for the card."""


class OverLimit(Unreadable):
    """A bound on work was reached: length, nesting, fields of a word or commands."""
