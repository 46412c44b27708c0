"""The few files that the daemon itself reads and writes: memory, skills, prompt context, uploads into a workspace.

A running command may be rearranging the tree meanwhile. Every path is therefore walked from a directory descriptor,
component by component, with no link followed; what is opened is looked at through its own descriptor, never by name
again. Everything here blocks; call it in a worker thread.

Errors::

    ControlError
    +-- PathRefused           a path leaves its root, meets a link, or names no regular file
        +-- FileTooLarge      the file is longer than the caller's limit

A missing file or folder is a ``FileNotFoundError``; a full disk an ``OSError``.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from agent.control.exceptions import ControlError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CHUNK = 1024 * 1024


class PathRefused(ControlError):
    """A path leaves its root, leads over a link, or names something that is no regular file."""


class FileTooLarge(PathRefused):
    """A file is longer than may be read."""


def read_bytes(root: Path, relative: str, limit: int) -> bytes:
    """Read a regular file of at most ``limit`` bytes below ``root``.

    Raises:
        PathRefused: ``relative`` is absolute, climbs out, leads over a link, or names no regular file.
        FileTooLarge: the file is longer.
        FileNotFoundError: it does not exist.
    """
    with _opened(root, relative) as descriptor:
        return b"".join(_chunks(descriptor, relative, limit))


def sha256_file(root: Path, relative: str, limit: int) -> str:
    """The SHA-256 of a regular file of at most ``limit`` bytes below ``root``, in hexadecimal.

    Raises:
        PathRefused, FileTooLarge, FileNotFoundError: see :func:`read_bytes`.
    """
    digest = hashlib.sha256()
    with _opened(root, relative) as descriptor:
        for chunk in _chunks(descriptor, relative, limit):
            digest.update(chunk)
    return digest.hexdigest()


def write_atomic(
    root: Path,
    relative: str,
    data: bytes,
    *,
    mode: int = 0o600,
    parents: bool = False,
    owner: tuple[int, int] | None = None,
) -> None:
    """Write a file below ``root`` so that readers and a power cut see the old content or the new, never a part.

    Args:
        root: a folder that exists.
        relative: the file's path below it; a regular file there is replaced.
        data: the whole content.
        mode: permissions of the new file.
        parents: make missing folders, with mode 0700.
        owner: uid and gid for the file and new folders, where the daemon is root and the tree is another's.

    Raises:
        PathRefused: see :func:`read_bytes`.
        FileNotFoundError: a folder on the way is missing and ``parents`` is false.
    """
    components = _components(relative)
    with _folder(root, components[:-1], relative, parents=parents, owner=owner) as folder:
        name = components[-1]
        _refuse_odd_target(folder, name, relative)
        temporary = f".{secrets.token_hex(8)}.tmp"
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
        )
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fchmod(stream.fileno(), mode)
                if owner is not None:
                    os.fchown(stream.fileno(), *owner)
                os.fsync(stream.fileno())
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)


def _components(relative: str) -> tuple[str, ...]:
    """The parts of a relative path, checked by themselves before any of them touches the file system."""
    shown = ascii(relative)
    if "\0" in relative:
        raise PathRefused(f"The path {shown} holds a NUL character.")
    path = PurePosixPath(relative)
    if path.is_absolute():
        raise PathRefused(f"The path {shown} is absolute.", fix="Give a path below the folder that it belongs to.")
    if ".." in path.parts:
        raise PathRefused(f"The path {shown} climbs with '..'.", fix="Give a path without '..'.")
    if not path.parts:
        raise PathRefused(f"The path {shown} names no file.")
    return path.parts


@contextlib.contextmanager
def _folder(
    root: Path,
    components: tuple[str, ...],
    relative: str,
    *,
    parents: bool = False,
    owner: tuple[int, int] | None = None,
) -> Iterator[int]:
    """A descriptor of the folder ``components`` below ``root``. The root itself is trusted, links included."""
    current = os.open(root, _FOLDER)
    try:
        for component in components:
            following = _step(current, component, relative, make=parents, owner=owner)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


def _step(parent: int, name: str, relative: str, *, make: bool, owner: tuple[int, int] | None) -> int:
    try:
        return _enter(parent, name, relative)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    descriptor = _enter(parent, name, relative)
    try:
        if owner is not None:
            os.fchown(descriptor, *owner)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _enter(parent: int, name: str, relative: str) -> int:
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as exc:
        if exc.errno in (errno.ELOOP, errno.ENOTDIR):
            raise PathRefused(f"In the path {relative!a}, {name!a} is a link or no folder.") from exc
        raise


@contextlib.contextmanager
def _opened(root: Path, relative: str) -> Iterator[int]:
    components = _components(relative)
    with _folder(root, components[:-1], relative) as folder:
        # Without O_NONBLOCK the open itself would wait for the other end of a FIFO.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            descriptor = os.open(components[-1], flags, dir_fd=folder)
        except OSError as exc:
            if exc.errno == errno.ELOOP:
                raise PathRefused(f"{relative!a} is a link.", fix="Name the file itself.") from exc
            if exc.errno == errno.ENXIO:
                raise PathRefused(f"{relative!a} is no regular file.") from exc
            raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PathRefused(f"{relative!a} is no regular file.")
        yield descriptor
    finally:
        os.close(descriptor)


def _chunks(descriptor: int, relative: str, limit: int) -> Iterator[bytes]:
    # The size is not believed: the file may grow while it is read.
    left = limit + 1
    while chunk := os.read(descriptor, min(left, _CHUNK)):
        left -= len(chunk)
        if left <= 0:
            raise FileTooLarge(f"{relative!a} is longer than {limit:,} bytes.")
        yield chunk


def _refuse_odd_target(folder: int, name: str, relative: str) -> None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise PathRefused(f"{relative!a} exists and is no regular file.")
