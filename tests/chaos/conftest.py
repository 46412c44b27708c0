"""How hard the daemon is hit."""

from __future__ import annotations

import os

import pytest

from tests.gateway.conftest import home_path

__all__ = ["home_path"]


@pytest.fixture
def kills() -> int:
    """How often the daemon is killed under load; ``CHAOS_KILLS`` raises it."""
    return int(os.environ.get("CHAOS_KILLS", "6"))
