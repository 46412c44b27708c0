"""Local data that leaves for another host (A13), and hosts that are not what they seem."""

from __future__ import annotations

import re

from agent.control.guard.command import Command
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import GATEWAY, OUTPUT, SECRET

_LOOPBACK = Expression(
    r"^(?:\w+://)?(?:[^@/\s]*@)?(?:localhost|127(?:\.\d+){0,3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost"
    r"|host\.docker\.internal)(?::|/|\?|$)",
    re.IGNORECASE,
)
_DATA = ("-d", "--data", "--data-binary", "--data-ascii", "--data-urlencode", "--json", "--data-raw", "--url-query")
_FORMS = ("-F", "--form")
_REMOTE_PATH = Expression(r"^(?:[\w.+-]+@)?(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9_][\w.-]+|\w):(?!\\)(?!//)")
_CREDENTIAL_HEADER = Expression(
    r"\s*(?:(?:proxy-)?authorization|cookie|private-token|x-[\w-]*(?:token|key|auth)[\w-]*)\s*:", re.IGNORECASE
)
_BUCKET = Expression(r"^(?:s3|gs|az|abfss?|r2|b2|swift|oss|cos|wasbs?|hdfs|sftp|ftp|scp|rsync)://|^[\w-]+:(?!//)\S*$")
_URL = Expression(r"^(?:\w+://|[\w-]+(?:\.[\w-]+)+(?:[:/]|$))")
_LOCAL = (OUTPUT, SECRET, GATEWAY)
_NON_ASCII_HOST = Expression(r"(?:\w+://|@|^)([^/\s:?#]*[^\x00-\x7f\ue000-\ue0ff][^/\s:?#]*)(?=[/:?#]|$)")
_PUNYCODE = Expression(r"(?:\w+://|@|^|\.)xn--[\w-]+", re.IGNORECASE)
_FETCHERS = frozenset(
    (
        "curl",
        "wget",
        "git",
        "ssh",
        "scp",
        "pip",
        "pip3",
        "npm",
        "http",
        "https",
        "xh",
        "aria2c",
        "nc",
        "ncat",
        "rsync",
        "go",
        "cargo",
        "gem",
        "docker",
        "kubectl",
        "helm",
        "brew",
    )
)


def looks_alike(command: Command) -> bool:
    """Whether a host's name holds letters outside ASCII, or their encoded form."""
    if command.name not in _FETCHERS:
        return False
    return any(
        (_NON_ASCII_HOST.search(one) and "://" in one) or (_PUNYCODE.search(one) and "." in one)
        for one in command.operands
    )


def sends(command: Command) -> bool:
    """Whether a command visibly sends local data elsewhere."""
    sender = _SENDERS.get(command.name)
    return sender is not None and not command.inert and sender(command)


def _outside(words: list[str]) -> bool:
    return bool(words) and not all(_LOOPBACK.match(one) for one in words)


def _own(text: str) -> bool:
    """Whether a value holds the output of a local command or a secret."""
    return any(mark in text for mark in _LOCAL)


def _fed(command: Command) -> bool:
    """Whether standard input is local content, and no literal text."""
    if not command.piped:
        return any(one.operator == "<" and one.path for one in command.redirects)
    text = command.stdin.text
    return text is None or _own(text)


def _curl(command: Command) -> bool:  # noqa: PLR0911 - one way out a case
    urls = [*command.operands, *command.values("--url")]
    if not _outside(urls):
        return False
    if command.has("-T", "--upload-file"):
        return True
    for value in command.values(*_DATA):
        file = (
            value[1:]
            if value.startswith("@")
            else value.split("@", 1)[1]
            if re.match(r"^[\w.-]*@[^\s@{\"]", value) and "=" not in value
            else None
        )
        if file is not None and (file != "-" or _fed(command)) and not command.has("--data-raw-only"):
            return True
        if _own(value):
            return True
    for value in command.values(*_FORMS):
        body = value.split("=", 1)[-1]
        if (body[:1] in "@<" and (not body[1:].startswith("-") or _fed(command))) or _own(value):
            return True
    for value in command.values("-H", "--header"):
        if OUTPUT in value and not _CREDENTIAL_HEADER.match(value):
            return True
    return any(_leaks(one, command) for one in urls)


def _leaks(url: str, command: Command) -> bool:
    if SECRET in url:
        return True
    if OUTPUT not in url:
        return False
    return (
        (command.where.fed and not url.startswith(OUTPUT))
        or OUTPUT in url.partition("?")[2]
        or re.search(rf"{OUTPUT}\.[\w-]", url) is not None
    )


def _wget(command: Command) -> bool:
    if not _outside(command.operands):
        return False
    if command.has("--post-file", "--body-file"):
        return True
    return any(_own(value) for value in command.values("--post-data", "--body-data")) or any(
        _leaks(one, command) for one in command.operands
    )


def _socket(command: Command) -> bool:
    if command.has("-l", "-z", "--listen") or not command.operands:
        return False
    host = next((one for one in command.operands if not one.isdigit()), "")
    if command.name == "socat":
        hosts = [one for one in command.operands if re.match(r"(?i)(?:tcp|udp|openssl|ssl|sctp)\w*:", one)]
        return (_fed(command) and any(not _LOOPBACK.match(one.split(":", 1)[1]) for one in hosts)) or (
            any(re.match(r"(?i)(?:file|open|gopen):", one) for one in command.operands) and bool(hosts)
        )
    return bool(host) and not _LOOPBACK.match(host) and _fed(command)


def _openssl(command: Command) -> bool:
    host = command.value("-connect") or next(
        (command.argv[i + 1] for i, word in enumerate(command.argv[:-1]) if word == "-connect"), ""
    )
    return bool(host) and not _LOOPBACK.match(host) and _fed(command)


def _copies(command: Command) -> bool:
    if len(command.operands) < 2:
        return False
    target = command.operands[-1]
    if command.name == "rsync" and target.startswith("rsync://"):
        return True
    if not _REMOTE_PATH.match(target) or _LOOPBACK.match(target):
        return False
    return not all(_REMOTE_PATH.match(one) for one in command.operands[:-1])


def _sftp(command: Command) -> bool:
    return bool(command.stdin.text and re.search(r"(?m)^\s*(?:put|mput|reput)\b", command.stdin.text)) or (
        command.has("-b") and not command.piped
    )


def _mail(command: Command) -> bool:
    return bool(command.operands) and (_fed(command) or command.has("-a", "-A", "--attach"))


def _names(command: Command) -> bool:
    return any(re.search(rf"[{OUTPUT}{SECRET}][\w-]*\.[\w.-]+", one) for one in command.operands)


def _bucket(command: Command) -> bool:
    verbs = [
        one
        for one in command.operands
        if one
        in (
            "cp",
            "sync",
            "mv",
            "copy",
            "move",
            "copyto",
            "moveto",
            "put",
            "mirror",
            "upload",
            "rsync",
            "put-object",
            "upload-batch",
            "upload-file",
        )
    ]
    if not verbs:
        return False
    if verbs[0] in ("put-object", "upload-batch", "upload", "put", "upload-file"):
        return True
    places = command.operands[command.operands.index(verbs[0]) + 1 :]
    return len(places) > 1 and _BUCKET.match(places[-1]) is not None and _BUCKET.match(places[0]) is None


def _gh(command: Command) -> bool:
    words = command.operands
    if (
        words[:2] == ["gist", "create"]
        or words[:2] == ["release", "upload"]
        or (words[:2] == ["release", "create"] and len(words) > 3)
    ):
        return True
    return words[:1] == ["api"] and any(
        value.split("=", 1)[-1].startswith("@") or _own(value)
        for value in command.values("-F", "--field", "--input", "-f")
    )


def _git(command: Command) -> bool:
    if command.operands[:1] != ["push"]:
        return False
    if command.has("-n", "--dry-run"):
        return False
    return any(
        "://" in one or re.match(r"[\w.-]+@[\w.-]+:", one) or re.match(r"^(?:/|~|\.\./)", one)
        for one in command.operands[1:2]
    )


def _ssh(command: Command) -> bool:
    if not command.operands or _LOOPBACK.match(command.operands[0]):
        return False
    if len(command.operands) == 1:
        return False
    return _fed(command) and not (command.stdin.text is not None and not _own(command.stdin.text))


def _always(command: Command) -> bool:
    return bool(command.operands) or command.piped


_SENDERS = {
    "curl": _curl,
    "wget": _wget,
    "http": lambda command: (
        (
            _outside(command.operands[:2])
            and any("@" in one[1:] and re.search(r"^[\w.-]+=?@", one) for one in command.operands)
        )
        or (_outside(command.operands[:1]) and _fed(command))
    ),
    "nc": _socket,
    "ncat": _socket,
    "netcat": _socket,
    "telnet": _socket,
    "socat": _socket,
    "openssl": _openssl,
    "scp": _copies,
    "rsync": _copies,
    "sftp": _sftp,
    "ftp": _sftp,
    "lftp": _sftp,
    "mail": _mail,
    "mailx": _mail,
    "mutt": _mail,
    "sendmail": _mail,
    "swaks": _mail,
    "msmtp": _mail,
    "dig": _names,
    "nslookup": _names,
    "host": _names,
    "ping": _names,
    "drill": _names,
    "getent": _names,
    "aws": _bucket,
    "gsutil": _bucket,
    "gcloud": _bucket,
    "az": _bucket,
    "azcopy": _bucket,
    "rclone": _bucket,
    "s3cmd": _bucket,
    "mc": _bucket,
    "b2": _bucket,
    "gh": _gh,
    "glab": _gh,
    "git": _git,
    "ssh": _ssh,
    "croc": _always,
    "wormhole": _always,
    "magic-wormhole": _always,
    "pastebinit": _always,
    "transfer": _always,
    "gist": _always,
    "wgetpaste": _always,
    "termbin": _always,
    "ffsend": _always,
}
