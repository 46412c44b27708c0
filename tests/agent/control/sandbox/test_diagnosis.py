from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.control.sandbox.diagnosis import apparmor_fix, diagnose, is_callers_fault

BWRAP = "/srv/venv/bin/bwrap"


def settings(folder: Path, **values: str) -> Path:
    for name, value in values.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(value + "\n")
    return folder


REFUSALS = [
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow it.",
    "bwrap: No permissions to creating new namespace, likely because the kernel does not allow it.",
    "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
    "bwrap: setting up uid map: Permission denied",
    "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
]


@pytest.mark.parametrize("text", REFUSALS)
class TestNoNamespace:
    def test_none_allowed(self, text: str, tmp_path: Path) -> None:
        error = diagnose(text, BWRAP, settings(tmp_path, user__max_user_namespaces="0"))
        assert "refuses user namespaces" in str(error)
        assert "sysctl -w user.max_user_namespaces" in error.fix

    def test_only_for_root(self, text: str, tmp_path: Path) -> None:
        error = diagnose(text, BWRAP, settings(tmp_path, kernel__unprivileged_userns_clone="0"))
        assert "sysctl -w kernel.unprivileged_userns_clone=1" in error.fix

    def test_apparmor_gets_the_profile_for_that_very_path(self, text: str, tmp_path: Path) -> None:
        error = diagnose(text, BWRAP, settings(tmp_path, kernel__apparmor_restrict_unprivileged_userns="1"))
        assert f"profile ostiary-bwrap {BWRAP} flags=(unconfined) {{\n  userns,\n" in error.fix
        assert "apparmor_parser -r /etc/apparmor.d/ostiary-bwrap" in error.fix

    def test_a_container_or_unit_otherwise(self, text: str, tmp_path: Path) -> None:
        assert "RestrictNamespaces" in diagnose(text, BWRAP, tmp_path).fix


@pytest.mark.parametrize(
    "text",
    [
        "bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n",
        "bwrap: cannot open /proc/sys/user/max_user_namespaces: Read-only file system\n",
    ],
)
def test_masked_proc(text: str) -> None:
    error = diagnose(text, BWRAP)
    assert "its own /proc" in str(error)
    assert "ProtectKernelTunables" in error.fix
    assert "systempaths=unconfined" in error.fix


def test_a_root_that_may_not_change_its_user() -> None:
    error = diagnose("setpriv: setresuid failed: Operation not permitted\n", BWRAP)
    assert "CAP_SETUID" in error.fix


def test_missing_source() -> None:
    error = diagnose("bwrap: Can't find source path /data: x: No such file or directory", BWRAP)
    assert str(error).startswith("The folder /data: x cannot be shown in the sandbox: No such file or directory.")


def test_anything_else_is_quoted() -> None:
    assert "bwrap: Something new" in str(diagnose("noise\nbwrap: Something new\n", BWRAP))
    assert "it said nothing" in str(diagnose("", BWRAP))


def test_the_callers_fault() -> None:
    assert is_callers_fault("bwrap: Can't chdir to /workspace/x: No such file or directory\n")
    assert not is_callers_fault("bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n")


def test_profile_is_whole() -> None:
    fix = apparmor_fix(BWRAP)
    assert fix.count("{") == fix.count("}") == 1


PROBE = """
import asyncio, sys
from pathlib import Path
from agent.control.sandbox.bubblewrap import Bubblewrap

status = asyncio.run(Bubblewrap(bin_dir=Path(sys.argv[1])).probe())
print(status.ok, status.problem, status.fix, sep="\\n")
"""

#: A user namespace in which every user is itself, and in which no further ones may be made.
WITHOUT_NAMESPACES = """
import ctypes, os
read, write = os.pipe()
helper = os.fork()
if not helper:
    os.read(read, 1)
    for name in ("uid_map", "gid_map"):
        open(f"/proc/{os.getppid()}/{name}", "w").write("0 0 100000")
    os._exit(0)
assert ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == 0
os.write(write, b"x")
os.waitpid(helper, 0)
open("/proc/sys/user/max_user_namespaces", "w").write("0")
"""

MASKED_PROC = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys"


def answer(*command: str) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="changes mounts and limits, each in a namespace of its own")
class TestForReal:
    def test_a_proc_that_is_partly_read_only(self, ground: Path) -> None:
        """What ProtectKernelTunables= does on newer systemd; older ones let it pass."""
        python = (sys.executable, "-c", PROBE, str(ground / "bin"))
        said = answer("unshare", "--mount", "/bin/sh", "-c", f'{MASKED_PROC} && exec "$@"', "sh", *python)
        assert said.startswith("False\nA sandbox cannot have its own /proc here")
        assert "ProtectKernelTunables" in said

    def test_user_namespaces_switched_off(self, ground: Path) -> None:
        said = answer(sys.executable, "-c", WITHOUT_NAMESPACES + PROBE, str(ground / "bin"))
        assert said.startswith("False\nThe system refuses user namespaces")
        assert "sysctl -w user.max_user_namespaces" in said


def test_a_container_or_unit_that_keeps_its_host_name() -> None:
    """Seen in a default container of podman's: the namespaces are made, and then the name is refused."""
    error = diagnose("bwrap: Can't set hostname to sandbox: Operation not permitted\n", BWRAP)
    assert "sethostname" in error.fix
    assert "ProtectHostname=" in error.fix
