from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway import cli


@dataclass(frozen=True)
class Ran:
    """How one command line ended."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """Standard output, decoded."""
        return json.loads(self.out)


Ostiary = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that does not exist yet, named by the environment."""
    path = tmp_path / "home"
    monkeypatch.setenv("OSTIARY_HOME", str(path))
    return path


@pytest.fixture
def ostiary(home: Path) -> Ostiary:
    """Runs a command line in this process."""

    def ostiary(*arguments: str) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.call(arguments)
        return Ran(status, out.getvalue(), err.getvalue())

    return ostiary
