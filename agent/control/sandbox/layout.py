"""What a command sees: the bubblewrap options for its files, users, environment and limits.

Only what is listed here exists inside. The host's ``/`` is never bound; ``/`` and ``/dev`` of the sandbox are remounted
read-only because bubblewrap makes both as temporary file systems of half the memory that ``--size`` does not bound.
"""

from __future__ import annotations

import functools
import math
import re
import resource
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from agent.control.exceptions import RequestInvalid
from agent.control.sandbox.base import WORKSPACE, Job, Limits, Mount, Profile, SandboxUnavailable

#: The user inside, whoever it is outside.
INNER_UID = 1000
INNER_NAME = "agent"

MIB = 1024 * 1024

#: Room for a job's temporary files and for shared memory, as parts of its memory (both are counted as memory).
TMP_SHARE = 2
SHM_SHARE = 4

#: Tasks that the kernel grants beyond ``Limits.pids``. Between the two the supervisor sees the excess and says so;
#: the kernel's own limit only makes ``fork`` fail, which a fork bomb ignores.
PIDS_HEADROOM = 16

_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")

#: What programs cannot do without: libraries, alternatives, time zone, certificates. Each bind costs a tenth of a
#: millisecond at every start, so the list is short.
_ETC = (
    "ld.so.cache",
    "alternatives",
    "localtime",
    "ssl/certs",
    "ssl/openssl.cnf",
    "crypto-policies",
    "pki/tls/certs",
    "pki/ca-trust/extracted",
)

_ETC_NETWORK = ("resolv.conf", "hosts", "services", "protocols")

_PASSWD = (
    f"root:x:0:0:root:/:/usr/sbin/nologin\n{INNER_NAME}:x:{INNER_UID}:{INNER_UID}:{INNER_NAME}:{WORKSPACE}:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
)
_GROUP = f"root:x:0:\n{INNER_NAME}:x:{INNER_UID}:\nnogroup:x:65534:\n"
_HOSTS = "127.0.0.1 localhost\n::1 localhost\n"
_NSSWITCH = "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "HOME": WORKSPACE,
    "USER": INNER_NAME,
    "LOGNAME": INNER_NAME,
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}

#: Places that the sandbox makes itself; no declared mount may hide one, and only the last two may hold one.
_RESERVED = tuple(PurePosixPath("/", name) for name in ("usr", "proc", "dev", "sys", WORKSPACE, *_SYSTEM, "etc", "tmp"))
_OPEN = _RESERVED[-2:]


@dataclass(frozen=True, slots=True)
class Layout:
    """Options for bubblewrap, complete but for the files whose content is made up.

    Attributes:
        options: in order; they end before the read-only remounts.
        files: contents to be placed inside, by path.
        closing: options that come after the files.
        limits: the ``prlimit`` command that is started inside and starts the command.
    """

    options: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    closing: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


def look_around() -> None:
    """Look at the system's folders once, off the event loop, so that :func:`layout` need not."""
    _system()
    _etc(network=False)
    _etc(network=True)


def layout(job: Job, prlimit: Path, protected: tuple[Path, ...] = ()) -> Layout:
    """Lay out the sandbox of ``job``. Blocks when there are mounts, else only before :func:`look_around`.

    Args:
        job: whose profile, workspace, environment and time limit count.
        prlimit: the host's program, at a path that exists inside too.
        protected: folders of the daemon that no declared mount may show.

    Raises:
        SandboxUnavailable: a declared mount would hide a part of the sandbox or show a part of the daemon.
        RequestInvalid: a variable has a bad name, or the time limit is none.
    """
    profile = job.profile
    files = {"/etc/passwd": _PASSWD, "/etc/group": _GROUP, "/etc/nsswitch.conf": _NSSWITCH}
    if not profile.network:
        files["/etc/hosts"] = _HOSTS
    options = (
        *_namespaces(profile),
        *_system(),
        *_etc(network=profile.network),
        *("--proc", "/proc", "--dev", "/dev"),
        *_temporary(profile.limits),
        *("--bind" if profile.workspace_writable else "--ro-bind", str(job.workspace), WORKSPACE),
        *_mounts(profile.mounts, protected),
        *_environment(job),
    )
    return Layout(
        options,
        {path: text.encode() for path, text in files.items()},
        ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", job.workdir),
        (str(prlimit), *_limits(profile.limits, job.timeout_s), "--"),
    )


def _namespaces(profile: Profile) -> tuple[str, ...]:
    return (
        "--unshare-all",
        *(("--share-net",) if profile.network else ()),
        *(
            "--unshare-user",
            "--disable-userns",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
            "--clearenv",
        ),
        *("--uid", str(INNER_UID), "--gid", str(INNER_UID), "--hostname", "sandbox"),
    )


@functools.cache
def _system() -> tuple[str, ...]:
    options = ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()).lstrip("/"), f"/{name}"]
        elif path.is_dir():
            options += ["--ro-bind", f"/{name}", f"/{name}"]
    return tuple(options)


@functools.cache
def _etc(*, network: bool) -> tuple[str, ...]:
    # Folders are made by hand: bubblewrap gives those that it makes on the way mode 0700.
    options = ["--perms", "0755", "--dir", "/etc"]
    made: set[str] = set()
    for name in (*_ETC, *(_ETC_NETWORK if network else ())):
        source = f"/etc/{name}"
        if not Path(source).exists():
            continue
        for parent in reversed(PurePosixPath(name).parents[:-1]):
            if str(parent) not in made:
                made.add(str(parent))
                options += ["--perms", "0755", "--dir", f"/etc/{parent}"]
        # An update of the system may take a file away while the daemon runs.
        options += ["--ro-bind-try", source, source]
    return tuple(options)


def temporary_bytes(limits: Limits) -> tuple[int, int]:
    """Sizes of ``/tmp`` and ``/dev/shm`` in bytes."""
    memory = limits.memory_mb * MIB
    return max(memory // TMP_SHARE, MIB), max(memory // SHM_SHARE, MIB)


def _temporary(limits: Limits) -> tuple[str, ...]:
    tmp, shm = temporary_bytes(limits)
    return (
        *("--perms", "1777", "--size", str(tmp), "--tmpfs", "/tmp"),  # noqa: S108 - the sandbox's own
        *("--perms", "1777", "--size", str(shm), "--tmpfs", "/dev/shm"),  # noqa: S108
    )


def _mounts(mounts: tuple[Mount, ...], protected: tuple[Path, ...]) -> tuple[str, ...]:
    options: list[str] = []
    for mount in mounts:
        check_mount(mount, protected)
        options += ["--bind" if mount.writable else "--ro-bind", str(mount.path), str(mount.path)]
    return tuple(options)


def check_mount(mount: Mount, protected: tuple[Path, ...] = ()) -> None:
    """Refuse a declared mount that would hide a part of the sandbox or show one of the daemon's folders.

    Raises:
        SandboxUnavailable: with the reason.
    """
    fix = "Change sandbox.mounts."
    shown = PurePosixPath(mount.path)
    if not shown.is_absolute() or ".." in shown.parts:
        raise SandboxUnavailable(f"The mount {shown} is not an absolute path without '..'.", fix=fix)
    for reserved in _RESERVED:
        if reserved.is_relative_to(shown) or (shown.is_relative_to(reserved) and reserved not in _OPEN):
            raise SandboxUnavailable(f"The mount {shown} overlaps {reserved}, which a sandbox makes itself.", fix=fix)
    real = Path(mount.path).resolve()
    for folder in protected:
        home = folder.resolve()
        if real.is_relative_to(home) or home.is_relative_to(real):
            raise SandboxUnavailable(f"The mount {shown} would show {folder}, which belongs to the daemon.", fix=fix)


def _environment(job: Job) -> tuple[str, ...]:
    for name in job.environment:
        if not _VARIABLE.fullmatch(name):
            raise RequestInvalid(f"{name!a} is no name for a variable.", fix="Use letters, digits and _.")
    return tuple(
        part for name, value in {**_ENVIRONMENT, **job.environment}.items() for part in ("--setenv", name, value)
    )


def _limits(limits: Limits, timeout_s: float) -> tuple[str, ...]:
    # RLIMIT_DATA and not RLIMIT_AS: runtimes such as V8 reserve far more addresses than they use.
    # RLIMIT_CPU binds one process: a job never has more processor time than its cores for its whole time.
    if not (math.isfinite(timeout_s) and timeout_s > 0):
        raise RequestInvalid(f"The time limit of {timeout_s} s is no limit.", fix="Give a positive number of seconds.")
    wanted = (
        ("nproc", limits.pids + PIDS_HEADROOM, resource.RLIMIT_NPROC),
        ("data", limits.memory_mb * MIB, resource.RLIMIT_DATA),
        ("fsize", limits.disk_mb * MIB, resource.RLIMIT_FSIZE),
        ("cpu", math.ceil(timeout_s * max(limits.cpus, 1.0)) + 1, resource.RLIMIT_CPU),
        ("nofile", limits.open_files, resource.RLIMIT_NOFILE),
    )
    return (*(f"--{name}={_within(value, kind)}" for name, value, kind in wanted), "--core=0")


def _within(value: int, kind: int) -> int:
    """No more than the daemon's own hard limit: nothing inside may raise it, and trying would fail the command."""
    hard = resource.getrlimit(kind)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
