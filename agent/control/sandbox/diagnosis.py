"""Turns what bubblewrap prints when it cannot set a sandbox up into a sentence and a way out."""

from __future__ import annotations

import re
from pathlib import Path

from agent.control.sandbox.base import SandboxUnavailable

#: bubblewrap's own words when the kernel or a security module refuses it a user namespace.
_NO_NAMESPACE = re.compile(
    r"no permissions to creat\w* (a )?new namespace|creating new namespace failed|setting up uid map|setting up gid map"
    r"|unable to create user namespace|can't create.*namespace|loopback: failed|setgroups: permission denied",
    re.IGNORECASE,
)
_NO_PROC = re.compile(r"can't mount proc|max_user_namespaces: read-only file system", re.IGNORECASE)
_NO_HOSTNAME = re.compile(r"can't set hostname", re.IGNORECASE)
_NO_SOURCE = re.compile(r"can't find source path (?P<path>.+): (?P<reason>[^:]+)$", re.IGNORECASE | re.MULTILINE)
_NO_WORKDIR = re.compile(r"^bwrap: can't chdir to ", re.IGNORECASE)

_APPARMOR = """\
abi <abi/4.0>,
include <tunables/global>

profile {name} {binary} flags=(unconfined) {{
  userns,
  include if exists <local/{name}>
}}"""


def is_callers_fault(text: str) -> bool:
    """Whether the engine works and only the work directory of this one command does not exist."""
    return _NO_WORKDIR.match(text) is not None


def diagnose(text: str, binary: str, sysctl: Path = Path("/proc/sys")) -> SandboxUnavailable:
    """The error for a sandbox that could not be set up.

    Args:
        text: what bubblewrap printed.
        binary: its path, for which an AppArmor profile may be needed.
        sysctl: where kernel settings are read.
    """
    said = text.strip().splitlines()[-1] if text.strip() else "it said nothing"
    if said.startswith("setpriv: "):
        return SandboxUnavailable(
            f"The daemon runs as root but cannot start sandboxes under another user ({said}).",
            fix="Give it the capabilities CAP_SETUID and CAP_SETGID, or run it as an ordinary user.",
        )
    if _NO_NAMESPACE.search(text):
        return _no_namespace(said, binary, sysctl)
    if _NO_PROC.search(text):
        return SandboxUnavailable(
            f"A sandbox cannot have its own /proc here ({said}).",
            fix=(
                "Parts of the outer /proc are masked. Under systemd remove ProtectKernelTunables=, ProtectProc= and "
                "ProcSubset= from the unit; in Docker or Podman add --security-opt systempaths=unconfined "
                "(podman: unmask=ALL)."
            ),
        )
    if _NO_HOSTNAME.search(text):
        return SandboxUnavailable(
            f"The system does not let a sandbox name its own host ({said}).",
            fix=(
                "In Docker or Podman give the container a seccomp profile that allows sethostname, clone, unshare, "
                "mount, umount2 and pivot_root; under systemd remove ProtectHostname= and allow sethostname."
            ),
        )
    if missing := _NO_SOURCE.search(text):
        return SandboxUnavailable(
            f"The folder {missing['path']} cannot be shown in the sandbox: {missing['reason']}.",
            fix="Make it, let the sandbox user reach it, or take it out of sandbox.mounts.",
        )
    return SandboxUnavailable(
        f"bubblewrap could not set a sandbox up: {said}.",
        fix=(
            "Something confines the daemon: look at its seccomp profile, AppArmor or SELinux, or the hardening of its "
            "systemd unit. `ostiary doctor`, run as the daemon's user, tries again."
        ),
    )


def _no_namespace(said: str, binary: str, sysctl: Path) -> SandboxUnavailable:
    problem = f"The system refuses user namespaces ({said})."
    if _setting(sysctl / "user/max_user_namespaces") == "0":
        return SandboxUnavailable(
            problem, fix="Allow them: sysctl -w user.max_user_namespaces=15000 (and in /etc/sysctl.d/ for good)."
        )
    if _setting(sysctl / "kernel/unprivileged_userns_clone") == "0":
        return SandboxUnavailable(
            problem, fix="Allow them: sysctl -w kernel.unprivileged_userns_clone=1 (and in /etc/sysctl.d/ for good)."
        )
    if _setting(sysctl / "kernel/apparmor_restrict_unprivileged_userns") == "1":
        return SandboxUnavailable(problem, fix=apparmor_fix(binary))
    return SandboxUnavailable(
        problem,
        fix=(
            "In Docker or Podman give the container a seccomp profile that allows clone, unshare, mount, umount2, "
            "pivot_root and sethostname; under systemd remove RestrictNamespaces= and allow @mount and AF_NETLINK."
        ),
    )


def apparmor_fix(binary: str) -> str:
    """The AppArmor profile that lets ``binary`` make user namespaces, and how to load it (Ubuntu 24.04 and newer)."""
    name = "ostiary-bwrap"
    profile = _APPARMOR.format(name=name, binary=binary)
    return (
        f"AppArmor allows them only to programs with a profile. Save this as /etc/apparmor.d/{name} and run "
        f"apparmor_parser -r /etc/apparmor.d/{name}:\n{profile}"
    )


def _setting(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
