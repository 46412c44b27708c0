"""The home: one folder that holds everything of one daemon.

::

    HomeError
    +-- HomeRefused     the folder or a file in it must not be used as it is
    +-- HomeLocked      another daemon has it
    +-- KeyUnusable     audit.key or http_token is missing or no key
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

#: Names in a folder may have 255 bytes; some room is left for suffixes.
SCOPE_NAME_MAX = 200
#: ``sun_path`` without its closing NUL, unix(7).
SOCKET_PATH_MAX = 103 if sys.platform == "darwin" else 107
#: Bytes of the key of the audit chain.
AUDIT_KEY_BYTES = 32

_PRIVATE = 0o700
#: A root daemon's sandboxes run under another uid, which must be able to pass through to its workspace.
_PASSABLE = 0o711
_FOLDERS = ("workspaces", "memories", "skills", "commands", "trash", "bin")
_PASSED_THROUGH = frozenset({"workspaces", "bin"})


class HomeError(Exception):
    """Root of this module's errors.

    Attributes:
        fix: what to do next; part of the message.
    """

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix

    def __str__(self) -> str:
        return f"{super().__str__()} {self.fix}".strip()


class HomeRefused(HomeError):
    """The folder or a file in it must not be used as it is."""


class KeyUnusable(HomeError):
    """A key file is missing or holds no key."""


class HomeLocked(HomeError):
    """Another daemon has the home.

    Attributes:
        pid: of the holder, as it wrote it down; 0 where that cannot be read.
    """

    def __init__(self, root: Path, pid: int) -> None:
        who = f"the process {pid}" if pid else "another process"
        super().__init__(
            f"{root} is in use: {who} runs a daemon there.",
            fix="Stop that one first, or give this one another home with --home.",
        )
        self.pid = pid


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything is. Making one touches nothing."""

    root: Path

    @classmethod
    def default(cls, environ: Mapping[str, str] | None = None) -> Home:
        """``$OSTIARY_HOME``, else ``/var/lib/ostiary`` for root, else ``~/.ostiary``."""
        named = (os.environ if environ is None else environ).get("OSTIARY_HOME")
        if named:
            return cls(Path(named).expanduser().absolute())
        if os.geteuid() == 0:
            return cls(Path("/var/lib/ostiary"))
        return cls(Path.home() / ".ostiary")

    @property
    def config_file(self) -> Path:
        """The configuration; optional."""
        return self.root / "config.yaml"

    @property
    def policy_file(self) -> Path:
        """Roles and principals; optional."""
        return self.root / "policy.yaml"

    @property
    def state_db(self) -> Path:
        """The database; opened through SQLite only."""
        return self.root / "state.db"

    @property
    def allowlist_file(self) -> Path:
        """Permanent grants."""
        return self.root / "allowlist.json"

    @property
    def audit_key_file(self) -> Path:
        """Key of the audit chain."""
        return self.root / "audit.key"

    @property
    def control_sock(self) -> Path:
        """The socket on which the daemon answers the command line."""
        return self.root / "control.sock"

    @property
    def http_token_file(self) -> Path:
        """The bearer token of user ``owner``."""
        return self.root / "http_token"

    @property
    def lock_file(self) -> Path:
        """Locked while a daemon runs; its existence means nothing."""
        return self.root / "daemon.lock"

    @property
    def workspaces(self) -> Path:
        """A folder for each scope."""
        return self.root / "workspaces"

    @property
    def memories(self) -> Path:
        """What is remembered, a folder for each scope."""
        return self.root / "memories"

    @property
    def skills(self) -> Path:
        """Skills."""
        return self.root / "skills"

    @property
    def commands(self) -> Path:
        """The operator's own catalog commands."""
        return self.root / "commands"

    @property
    def trash(self) -> Path:
        """What was deleted and can be brought back."""
        return self.root / "trash"

    @property
    def bin(self) -> Path:
        """Programs that sandboxes must be able to reach."""
        return self.root / "bin"

    def prepare(self) -> None:
        """Make what is missing: the folders, ``audit.key`` and ``http_token``, for the owner alone.

        Raises:
            HomeRefused: it belongs to somebody else, others may write to it, or its path is too long for the socket.
            KeyUnusable: a database is there and its key is not, or a key file holds no key.
        """
        self._check_socket_path()
        passable = _PASSABLE if os.geteuid() == 0 else _PRIVATE
        try:
            self.root.parent.mkdir(parents=True, exist_ok=True)
            _make_folder(self.root, passable)
            for name in _FOLDERS:
                _make_folder(self.root / name, passable if name in _PASSED_THROUGH else _PRIVATE)
            if self.state_db.exists() and not self.audit_key_file.exists():
                raise KeyUnusable(
                    f"{self.audit_key_file} is missing, and without it the records in state.db cannot be checked.",
                    fix="Put it back from a backup, or move state.db aside to begin anew.",
                )
            _make_secret(self.audit_key_file, secrets.token_bytes(AUDIT_KEY_BYTES))
            _make_secret(self.http_token_file, secrets.token_urlsafe(32).encode() + b"\n")
        except OSError as error:
            raise HomeRefused(
                f"{self.root} cannot be prepared: {error.strerror or error} ({error.filename}).",
                fix="Check owner, rights and free space, or give another home with --home.",
            ) from error
        self.audit_key()
        self.http_token()

    def audit_key(self) -> bytes:
        """The key of the audit chain.

        Raises:
            KeyUnusable: it is missing, cannot be read or has another length.
        """
        key = _read_secret(self.audit_key_file)
        if len(key) != AUDIT_KEY_BYTES:
            raise KeyUnusable(
                f"{self.audit_key_file} holds {len(key)} bytes, a key has {AUDIT_KEY_BYTES}.",
                fix="Put it back from a backup.",
            )
        return key

    def http_token(self) -> str:
        """The bearer token of user ``owner``, made where it is missing.

        Raises:
            KeyUnusable: it cannot be read or made, or is empty.
        """
        if not self.http_token_file.exists():
            try:
                _make_secret(self.http_token_file, secrets.token_urlsafe(32).encode() + b"\n")
            except OSError as error:
                raise KeyUnusable(
                    f"{self.http_token_file} cannot be made: {error.strerror}.", fix="Start the daemon once."
                ) from error
        token = _read_secret(self.http_token_file).decode("ascii", "replace").strip()
        if not token:
            raise KeyUnusable(
                f"{self.http_token_file} is empty.", fix="Remove it; a new one is made at the next start."
            )
        return token

    def workspace(self, scope: str) -> Path:
        """The workspace of a scope; a path only, see :meth:`make_workspace`."""
        return self.workspaces / encoded_scope(scope)

    def make_workspace(self, scope: str, owner_uid: int | None = None) -> Path:
        """The workspace of a scope, made where it is missing; under a root daemon it belongs to ``owner_uid``."""
        path = self.workspace(scope)
        with suppress(FileExistsError):
            path.mkdir(mode=_PRIVATE, parents=False)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if owner_uid is not None and os.geteuid() == 0 and os.fstat(descriptor).st_uid != owner_uid:
                os.fchown(descriptor, owner_uid, -1)
        finally:
            os.close(descriptor)
        return path

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the home for this process; the lock dies with it, however it ends.

        Raises:
            HomeLocked: another daemon has it.
        """
        descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise HomeLocked(self.root, _pid_in(descriptor)) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            yield
            os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)

    def _check_socket_path(self) -> None:
        length = len(os.fsencode(self.control_sock))
        if length > SOCKET_PATH_MAX:
            raise HomeRefused(
                f"{self.control_sock} is too long for a socket: {length} bytes, the system takes {SOCKET_PATH_MAX}.",
                fix="Choose a home with a shorter path.",
            )


def encoded_scope(scope: str) -> str:
    """The name of a scope on disk: percent-encoded, one name a scope, never longer than a file system takes.

    Raises:
        ValueError: the scope is empty.
    """
    if not scope:
        raise ValueError("a scope has a name")
    name = quote(scope, safe="", errors="surrogatepass").replace("~", "%7E")
    if not name.strip("."):
        name = name.replace(".", "%2E")
    if len(name) <= SCOPE_NAME_MAX:
        return name
    # A tilde is in no other name, so that a long scope never meets a short one.
    digest = hashlib.sha256(scope.encode("utf-8", "surrogatepass")).hexdigest()
    head = re.sub(r"%.?$", "", name[: SCOPE_NAME_MAX - len(digest) - 1])
    return f"{head}~{digest}"


def _make_folder(path: Path, mode: int) -> None:
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        _check_folder(path)
    else:
        path.chmod(mode)  # the umask may have taken bits away


def _check_folder(path: Path) -> None:
    status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise HomeRefused(f"{path} is no folder.", fix="Move it aside.")
    if status.st_uid != os.geteuid():
        raise HomeRefused(
            f"{path} belongs to the user with uid {status.st_uid}, this process runs with uid {os.geteuid()}.",
            fix="Run the daemon as that user, change the owner with chown, or give another home with --home.",
        )
    if status.st_mode & 0o022:
        raise HomeRefused(
            f"Others may write to {path} (mode {stat.S_IMODE(status.st_mode):04o}).", fix=f"Run: chmod go-w {path}"
        )


def _make_secret(path: Path, content: bytes) -> None:
    """Write ``content`` into a new file; a file that is there stays, and becomes its owner's alone."""
    if not path.exists():
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                os.write(descriptor, content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _publish(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        path.chmod(0o600)


def _publish(fresh: Path, path: Path) -> None:
    """Give ``fresh`` its name unless another process was faster: a link never replaces."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read_secret(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise KeyUnusable(f"{path} is missing.", fix="Start the daemon once; it makes it.") from None
    except OSError as error:
        raise KeyUnusable(
            f"{path} cannot be read: {error.strerror}.", fix="Run this as the user of the daemon."
        ) from error
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _pid_in(descriptor: int) -> int:
    try:
        return int(os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or 0)
    except ValueError:
        return 0
