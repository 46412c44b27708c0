"""The socket's file is never open to others, not for an instant."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gateway.web import control_socket
from gateway.web.exceptions import CannotListen


def test_the_mode_is_right_from_the_first_moment(short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen between bind and chmod, with a umask that takes nothing away."""
    seen: list[int] = []

    def look(path: Path, mode: int) -> None:
        seen.append(stat.S_IMODE(path.lstat().st_mode))
        os.chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", look)
    before = os.umask(0)
    try:
        control_socket.bind(short_folder / "s").close()
    finally:
        os.umask(before)
    assert seen == [0o600]


def test_a_folder_that_is_not_there(short_folder: Path) -> None:
    with pytest.raises(CannotListen, match="No such file"):
        control_socket.bind(short_folder / "nowhere" / "s")


def test_only_what_was_made_is_removed(short_folder: Path) -> None:
    path = short_folder / "s"
    control_socket.bind(path).close()
    made = control_socket.identity(path)
    control_socket.remove(path, None)
    assert path.exists()
    control_socket.remove(path, made)
    control_socket.remove(path, made)
    assert control_socket.identity(path) is None
