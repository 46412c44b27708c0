"""Homes that sandboxes can reach, whoever runs the tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def fresh_home() -> Iterator[Path]:
    """A path for a home whose parents the sandbox user of a root daemon can pass, unlike those of pytest."""
    parent = Path(tempfile.mkdtemp(prefix="ostiary-test-", dir="/var/tmp"))
    parent.chmod(0o711)
    try:
        yield parent / "home"
    finally:
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def home_path() -> Iterator[Path]:
    """See :func:`fresh_home`."""
    with fresh_home() as path:
        yield path
