"""The file of ``control.sock``: right in mode from the first moment, replaced when stale, removed at the end.

Whoever can open it is user ``owner``, so there must be no instant at which others can. Only the holder of the home's
lock may call :func:`bind`: a file that is there then belongs to nobody that lives.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

from gateway.web.exceptions import CannotListen

#: Longest path that fits into ``sockaddr_un`` on Linux with its final zero, in bytes.
_MAX_PATH = 107


def bind(path: Path) -> socket.socket:
    """A socket bound to ``path`` with mode 0600, not yet listening. Touches the disk: call it in a thread.

    Raises:
        CannotListen: the path is too long, in use by a file that is no socket, or not writable.
    """
    if len(os.fsencode(path)) > _MAX_PATH:
        raise CannotListen(f"{path} is longer than {_MAX_PATH} bytes, the most for a socket; choose a shorter --home")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        # On Linux the mode of the unbound socket is that of the file, so it is never wider than this.
        os.fchmod(sock.fileno(), 0o600)
        sock.bind(os.fspath(path))
        path.chmod(0o600)
    except OSError as exc:
        sock.close()
        raise CannotListen(f"cannot make {path}: {exc.strerror or exc}") from exc
    except BaseException:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of ``path``, or None where there is nothing."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return None
    return info.st_dev, info.st_ino


def remove(path: Path, made: tuple[int, int] | None) -> None:
    """Remove the file if it is still the one that was ``made``."""
    if made is not None and identity(path) == made:
        path.unlink(missing_ok=True)


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise CannotListen(f"{path} is in the way and is no socket; move it elsewhere")
    path.unlink()
