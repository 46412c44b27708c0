"""HTTP as a chat platform: a JSON API and server-sent events."""

from __future__ import annotations

from adapters.http.adapter import HttpAdapter

__all__ = ["HttpAdapter"]
