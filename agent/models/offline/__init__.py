"""The offline model: a keyword interpreter that says that it is one.

Deterministic and without any input or output of its own, so that the whole of the gateway works, and can be tried, with
no language model at hand. :mod:`.words` is the table of what it understands; a tool that is added brings its word.
"""

from __future__ import annotations

from agent.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
