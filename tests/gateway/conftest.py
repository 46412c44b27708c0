"""Homes that sandboxes can reach, whoever runs the tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home_path() -> Iterator[Path]:
    """A path for a home whose parents the sandbox user of a root daemon can pass, unlike those of pytest."""
    parent = Path(tempfile.mkdtemp(prefix="ostiary-test-", dir="/var/tmp"))
    parent.chmod(0o711)
    yield parent / "home"
    shutil.rmtree(parent, ignore_errors=True)
