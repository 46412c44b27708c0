"""Who a sandbox runs as on the host, and the folders that this user must own or reach."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from agent.control.sandbox.base import SandboxUnavailable

#: ``nobody`` on every Linux distribution; owns nothing else.
DEFAULT_UID = 65534


@dataclass(frozen=True, slots=True)
class Identity:
    """The host user that sandboxes run as.

    Attributes:
        drop: whether the daemon is root and must change to this user before it starts a sandbox.
    """

    uid: int
    gid: int
    drop: bool


def sandbox_identity(configured_uid: int = DEFAULT_UID) -> Identity:
    """The user for sandboxes: ``configured_uid`` under a root daemon, else the daemon's own.

    Raises:
        SandboxUnavailable: a root daemon is told to run sandboxes as root, whom the process limit does not bind.
    """
    if os.geteuid() != 0:
        return Identity(os.geteuid(), os.getegid(), drop=False)
    if configured_uid <= 0:
        raise SandboxUnavailable(
            f"Sandboxes cannot run as uid {configured_uid}: limits do not bind root.",
            fix=f"Set sandbox.uid to an unprivileged user, for example {DEFAULT_UID}.",
        )
    try:
        gid = pwd.getpwuid(configured_uid).pw_gid
    except KeyError:
        gid = configured_uid
    return Identity(configured_uid, gid or configured_uid, drop=True)


#: Bits of capabilities(7) without which root cannot change its user, kill another's process or give folders away.
_NEEDED = {"CAP_CHOWN": 0, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}


def check_capabilities(identity: Identity, status: Path = Path("/proc/self/status")) -> None:
    """Refuse to go on as a root that may not change its user or could not kill what it started.

    Raises:
        SandboxUnavailable: with the names of what is missing.
    """
    if not identity.drop:
        return
    effective = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("CapEff:"))
    missing = [name for name, bit in _NEEDED.items() if not int(effective, 16) >> bit & 1]
    if missing:
        raise SandboxUnavailable(
            f"The daemon runs as root without {', '.join(missing)}, so it cannot run sandboxes under another user.",
            fix="Run the daemon as an ordinary user, or give it these capabilities.",
        )


def obstacle(path: Path, identity: Identity, *, executable: bool = False) -> str:
    """What keeps ``identity`` from reaching ``path``, judged by owners and modes; empty when nothing does.

    Args:
        path: an absolute path; links in it are followed.
        identity: whose way it is.
        executable: whether the last component must be an executable file rather than merely reachable.
    """
    try:
        real = path.resolve(strict=True)
    except OSError as exc:
        return f"{path}: {exc.strerror}"
    for folder in reversed(real.parents):
        if not _allows(folder.stat(), identity, stat.S_IXOTH):
            return f"{folder} has mode {stat.S_IMODE(folder.stat().st_mode):04o}"
    if executable and not _allows(real.stat(), identity, stat.S_IXOTH | stat.S_IROTH):
        return f"{real} is not executable for it"
    return ""


def _allows(status: os.stat_result, identity: Identity, bits: int) -> bool:
    if status.st_uid == identity.uid:
        bits <<= 6
    elif status.st_gid == identity.gid:
        bits <<= 3
    return status.st_mode & bits == bits


def prepare_workspace(path: Path, identity: Identity) -> None:
    """Make the workspace folder, or check one that exists: a real folder, mode 0700, owned by the sandbox user.

    Missing parents are made with 0711 under a root daemon, so that the sandbox user can pass, else with 0700. Blocks;
    call it in a worker thread.

    Raises:
        SandboxUnavailable: the folder cannot be made, is a link, belongs to somebody else, or cannot be reached.
    """
    try:
        _make_parents(path, 0o711 if identity.drop else 0o700)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    except OSError as exc:
        raise SandboxUnavailable(
            f"The workspace {path} cannot be made: {exc.strerror}.",
            fix=f"Look at the folder {path.parent} and its disk.",
        ) from exc
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as exc:
        raise SandboxUnavailable(
            f"The workspace {path} is not a folder that can be opened: {exc.strerror}.",
            fix="Remove the link or file in its place; it is made anew.",
        ) from exc
    try:
        _take_over(path, folder, identity)
    finally:
        os.close(folder)
    if hurdle := obstacle(path, identity):
        raise SandboxUnavailable(
            f"The sandbox user (uid {identity.uid}) cannot reach the workspace {path}: {hurdle}.",
            fix="Give that folder mode 0711, or move the home to where every user may pass, such as /var/lib/ostiary.",
        )


def _make_parents(path: Path, mode: int) -> None:
    for parent in reversed(path.parents):
        try:
            parent.mkdir(mode=mode)
        except FileExistsError:
            continue
        parent.chmod(mode)


def _take_over(path: Path, folder: int, identity: Identity) -> None:
    status = os.fstat(folder)
    if status.st_uid != identity.uid:
        if not identity.drop or (status.st_uid != 0 or os.listdir(folder)):
            raise SandboxUnavailable(
                f"The workspace {path} belongs to uid {status.st_uid}, not to the sandbox user (uid {identity.uid}).",
                fix=f"Run: chown -R {identity.uid}:{identity.gid} {path}",
            )
        os.fchown(folder, identity.uid, identity.gid)
    if stat.S_IMODE(status.st_mode) != 0o700:
        os.fchmod(folder, 0o700)
