"""Paths as text, and the classes of places that matter to the rules. Nothing here touches a file system."""

from __future__ import annotations

import fnmatch
import functools
import posixpath
import re
from typing import NamedTuple

from agent.control.guard.expressions import Expression
from agent.control.guard.marks import CHANNEL, GAPS, GLOBS, has_gap, has_glob, literal
from agent.control.guard.verdict import Assumptions

_SYSTEM_TOP = (
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "opt",
    "proc",
    "root",
    "sbin",
    "srv",
)
#: The directories whose recursive deletion or change is never approved, beside home directories.
HARDLINE_DIRECTORIES = (
    "/",
    *(f"/{name}" for name in (*_SYSTEM_TOP, "sys", "usr", "var", "Users")),
    "/usr/bin",
    "/usr/lib",
    "/var/lib",
)
_BROAD = Expression(r"(?:\*+|\.\*|\.\[[!^]\.\]\*|\.\?\*|\.\.\?\*|\?\*|\*\?|\[[^\]]*-[^\]]*\]\*|\[!\.\]\*|\*\.\*)")
_DISK = Expression(
    rf"/dev/(?:(?:sd|hd|vd|xvd)(?:[a-z]+\d*|[{GAPS}{GLOBS}].*)|nvme\d*(?:[n{GAPS}{GLOBS}].*)?|mmcblk.*|md(?:\d+.*"
    rf"|/.+)|dm-.+"
    r"|mapper/(?!control$).+|disk/by-.+|r?disk\d+.*)\Z"
)
_SYSTEM = Expression(
    r"/(?:(?:etc|usr|bin|sbin|lib\w*|boot|opt|srv|sys|proc|root|private|Library|System)(?:/|\Z)|var(?:/(?!tmp(?:/"
    r"|\Z))|\Z)"
    r"|run/(?!user/)|\Z)"
)
_HOMES = Expression(r"/(?:home/[^/]+|root|Users/[^/]+)\Z")
_IN_HOME = Expression(r"/(?:home/[^/]+|root|Users/[^/]+)/(.*)", re.DOTALL)

_STARTUP = Expression(
    r"\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|zlogout"
    r"|kshrc|cshrc|tcshrc"
    r"|login|xinitrc|xprofile|xsession\w*|inputrc|gitconfig|pythonrc(?:\.py)?|npmrc|pypirc|pip/pip\.conf|curlrc"
    r"|wgetrc|vimrc|tmux\.conf"
    r"|emacs|screenrc|pam_environment|ssh/(?:authorized_keys2?|config|rc|environment)|gnupg/gpg-agent\.conf"
    r"|cargo/config(?:\.toml)?"
    r"|config/(?:autostart|systemd|fish|environment\.d|git|pip|nvim|cron|upstart|zsh|X11)(?:/.*)?)\Z"
    r"|Library/(?:LaunchAgents|LaunchDaemons)(?:/.*)?\Z"
)
_SYSTEM_STARTUP = Expression(
    r"/(?:etc/(?:cron[^/]*|systemd|init\.d|rc[^/]*|profile(?:\.d)?|sudoers(?:\.d)?|ld\.so[^/]*|environment"
    r"|bash[^/]*|zsh|xdg/autostart"
    r"|pam\.d|udev|modules-load\.d|anacrontab)(?:/.*)?|var/spool/(?:cron|at)(?:/.*)?|(?:usr/)?lib/systemd/.*)\Z"
)
_GIT_HOOK = Expression(r"/\.git(?:/modules/.+)?/(?:hooks(?:/.*)?|config)\Z")
_HISTORY = Expression(
    r"/\.(?:bash|zsh|sh|python|node_repl|psql|mysql|sqlite|rediscli|lesshst)?_?(?:history|histfile)\Z|/\.lesshst\Z"
    r"|/fish_history\Z"
)
_LOGS = Expression(r"/var/log(?:/.*)?\Z|/(?:var/run|run)/utmp\Z|/var/(?:adm|audit)(?:/.*)?\Z")
_ENV_FILE = Expression(
    r"/\.env(?:rc)?(?:\.(?!example\Z|sample\Z|template\Z|dist\Z|tmpl\Z|defaults?\Z)[\w-]+(?:\.local)?)?\Z"
    r"|/[\w-]+\.env\Z"
)
_SECRET = Expression(
    r"/\.ssh/(?!.*\.pub\Z|known_hosts|config\Z|authorized_keys)(?:id_[^/]*|identity|[^/]*(?:key|\.pem)[^/]*|\*)\Z"
    r"|/\.(?:aws/credentials|kube/config|netrc|pgpass|my\.cnf|git-credentials|docker/config\.json|npmrc|pypirc"
    r"|vault-token|htpasswd"
    r"|config/gh/hosts\.yml|config/gcloud/.*|azure/.*|password-store/.*|gnupg/(?:private-keys-v1\.d/?.*"
    r"|secring\.gpg|.*\.key)"
    r"|config/hub|config/rclone/rclone\.conf|terraform\.d/credentials.*|cargo/credentials(?:\.toml)?"
    r"|gem/credentials|dockercfg"
    r"|config/op/.*|boto|s3cfg|oci/config|fly/config\.yml|heroku/.*|local/share/keyrings/.*|electrum/.*"
    r"|bitcoin/wallet\.dat)\Z"
    r"|/_netrc\Z|/etc/(?:g?shadow-?|sudoers|ssl/private/.*|ssh/ssh_host_.*_key|krb5\.keytab|machine-id\Z(?!))\Z"
    r"|/proc/[^/]+/environ\Z|/run/secrets/.+\Z|/var/run/secrets/.+\Z|/etc/kubernetes/admin\.conf\Z"
    r"|/(?:id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|server\.key|private\.key|privkey\.pem|[\w.-]*private[\w.-]*\.(?:pem"
    r"|key)|[\w-]+\.p12|[\w-]+\.pfx"
    r"|[\w-]+\.kdbx|[\w-]+\.ppk|[\w-]+\.keystore|service[-_]account[\w.-]*\.json|credentials\.json"
    r"|secrets?\.(?:ya?ml|json|toml|env))\Z"
    r"|/(?:google-chrome|chromium|BraveSoftware/[^/]+|\.mozilla/firefox|Firefox/Profiles)/.*(?:Cookies|Login Data"
    r"|key4\.db|logins\.json"
    r"|cookies\.sqlite|Web Data)\Z"
)
_SECRET_FOLDER = Expression(
    r"/\.(?:ssh|gnupg|aws|kube|password-store|azure|config/gcloud|docker|config/gh)\Z|/etc/ssl/private\Z"
)


class Place(NamedTuple):
    """The classes of one path."""

    root_like: bool
    disk: bool
    system: bool
    startup: bool
    secret: bool
    history: bool
    logs: bool
    scratch: bool
    workspace: bool
    gateway: bool
    audit: bool
    policy: bool


def normal(path: str) -> str:
    """``posixpath.normpath`` with one leading slash, and no step up out of a part that is not known."""
    if "//" in path or "/." in path or path.endswith("/") or path[:1] == ".":
        if has_gap(path) and "/.." in path:
            known = path.split("/..", maxsplit=1)[0]
            if has_gap(known):
                return GAPS[0]
        path = posixpath.normpath(path)
        if path.startswith("//"):
            path = path[1:]
    return path or "."


def join(cwd: str, word: str) -> str:
    """The normalised path of a word seen from a directory; begins with a mark where that is not known."""
    if not word:
        return cwd
    if word[0] == "/" or word[0] in GAPS:
        return normal(word)
    if word == ".":
        return cwd
    return normal(f"{cwd}/{word}")


def through_links(path: str, links: dict[str, str]) -> str:
    """A path with links that the command made itself replaced by their targets."""
    if not links:
        return path
    for _ in range(8):
        for link, target in links.items():
            if path == link or path.startswith(f"{link}/"):
                path = normal(target + path[len(link) :])
                break
        else:
            return path
    return path


def below(path: str, directory: str) -> bool:
    """Whether a path is a directory or lies in it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def covers(path: str, target: str) -> bool:
    """Whether deleting a path (it may hold globs) takes a target with it."""
    if has_glob(path):
        wanted = path.count("/")
        parent = "/".join(target.split("/")[: wanted + 1])
        return parent.count("/") == wanted and _matches(parent, path)
    return below(target, path)


def _matches(path: str, pattern: str) -> bool:
    parts, patterns = path.split("/"), literal(pattern).split("/")
    if len(parts) != len(patterns):
        return False
    return all(fnmatch.fnmatchcase(part, wanted) for part, wanted in zip(parts, patterns, strict=True))


def is_whole(path: str, assume: Assumptions, *, relative: bool = False) -> bool:
    """Whether a path, or a glob over its content, is the root, a top-level system directory or a whole home.

    Args:
        path: resolved path.
        assume: names the home directory.
        relative: it was written relative to the working directory. Where home and workspace are one, such a path means
            the workspace and not the home.
    """
    if not path.startswith("/"):
        return False
    home = normal(assume.home)
    head, _, last = path.rpartition("/")
    if has_glob(last) and not has_glob(head) and _BROAD.fullmatch(literal(last)):
        return is_whole(head or "/", assume, relative=relative or home == normal(assume.workdir))
    if has_gap(path):
        return False
    if relative and path == home == normal(assume.workdir):
        return False
    if has_glob(path):
        plain = literal(path)
        wanted = plain.count("/")
        return any(one.count("/") == wanted and _matches(one, plain) for one in (*HARDLINE_DIRECTORIES[1:], home)) or (
            _matches("/home/x/x", f"{plain}/x") and wanted == 2 and plain.startswith("/home/")
        )
    return path in HARDLINE_DIRECTORIES or path == home or _HOMES.match(path) is not None or _lib(path)


def _lib(path: str) -> bool:
    return path.startswith("/lib") and "/" not in path[1:]


def is_disk(path: str) -> bool:
    """Whether a path names a disk device."""
    return path.startswith("/dev/") and _DISK.match(path) is not None


@functools.lru_cache(maxsize=2_048)
def place(path: str, assume: Assumptions) -> Place:
    """The classes of a resolved path."""
    plain = literal(path)
    home = normal(assume.home)
    scratch = any(below(plain, one) for one in assume.scratch)
    workspace = below(plain, normal(assume.workdir))
    gateway = below(plain, assume.gateway_home) or plain == assume.gateway_pid_file
    in_home = _IN_HOME.match(plain)
    rest = in_home[1] if in_home else plain[len(home) + 1 :] if below(plain, home) else ""
    return Place(
        root_like=is_whole(path, assume),
        disk=is_disk(path),
        system=_SYSTEM.match(plain) is not None
        and not workspace
        and not scratch
        and not below(plain, home)
        and not gateway,
        startup=bool((rest and _STARTUP.match(rest)) or _SYSTEM_STARTUP.match(plain) or _GIT_HOOK.search(plain)),
        secret=bool(_SECRET.search(plain) or _ENV_FILE.search(plain)) or _is_one(path, assume.secret_paths),
        history=_HISTORY.search(plain) is not None,
        logs=_LOGS.match(plain) is not None,
        scratch=scratch,
        workspace=workspace,
        gateway=gateway,
        audit=_takes(path, assume.audit_paths),
        policy=_takes(path, assume.policy_paths),
    )


def is_secret_folder(path: str) -> bool:
    """Whether a directory is known to hold credentials."""
    return _SECRET_FOLDER.search(path) is not None


def is_channel(path: str) -> bool:
    """Whether a path stands for a process substitution."""
    return CHANNEL in path


def _is_one(path: str, wanted: tuple[str, ...]) -> bool:
    return any(path == one or (has_glob(path) and covers(path, one)) for one in wanted)


def _takes(path: str, wanted: tuple[str, ...]) -> bool:
    """Whether a path is one of these, lies in one, or is a glob over one."""
    return any(below(path, one) or (has_glob(path) and covers(path, one)) for one in wanted)
