"""The net below the parser: expressions for the hardline set over text that could not be read.

It sees the folded text with quotes and backslashes dropped, and looks for the subjects of H1 to H8 where a command may
begin. It is coarse on purpose and only asked when the parser gave up; a hit refuses.
"""

from __future__ import annotations

import functools
import re

from agent.control.guard import normalise
from agent.control.guard.verdict import Assumptions

_PREFIX = (
    r"(?:sudo|doas|env|nohup|exec|command|builtin|time|nice|setsid|stdbuf|busybox|xargs|eval|timeout[ \t]+\S{1,16})"
)
_START = (
    r"(?:^|[\n;|&(){}`!]|\b(?:then|do|else|elif|sudo|doas|env|nohup|exec|xargs|eval|busybox|sh[ \t]+-c|bash[ \t]+-c"
    r")[ \t])[ \t]{0,64}"
    rf"(?:\w{{1,32}}=\S{{0,64}}[ \t]+){{0,4}}(?:{_PREFIX}[ \t]+(?:-\S{{1,32}}[ \t]+){{0,4}}){{0,3}}(?:/(?:usr/"
    rf")?(?:local/)?s?bin/)?"
)
_END = r"(?=[\s;|&)}<>`]|$)"
_TOP = (
    r"(?:bin|boot|dev|etc|home|lib\w*|opt|proc|root|sbin|srv|sys|usr|var|Users|usr/bin|usr/lib|var/lib"
    r"|home/[\w.-]+|Users/[\w.-]+)"
)
_ROOT = rf"(?:/+(?:\.{{0,2}}/+)*(?:\*|\.\*|\.)?|/+{_TOP}/*(?:\*|\.\*)?|~[\w-]*/*(?:\*)?|\$\{{?HOME\}}?/*(?:\*)?)"
_DISK = r"/dev/(?:sd|hd|vd|xvd)[a-z]\d*|/dev/(?:nvme|mmcblk|md|dm-|mapper/|disk/by-|r?disk)\d*[\w/:.-]*"


@functools.lru_cache(maxsize=64)
def _expressions(assume: Assumptions) -> tuple[tuple[str, re.Pattern[str], tuple[str, ...]], ...]:
    """Rule, expression, and the words of which one must stand in the text for it to be tried."""
    name = re.escape(assume.gateway_name)
    home = "|".join(re.escape(one) for one in (assume.gateway_home, assume.gateway_home.replace(assume.home, "~", 1)))
    own_home = re.escape(assume.home)
    audit = "|".join(
        spelled
        for one in (*assume.audit_paths,)
        for spelled in (re.escape(one), re.escape(one.replace(assume.home, "~", 1)))
    )
    raw = [
        (
            "hardline.delete",
            rf"{_START}rm\s+(?=[^\n;|&]*(?:-\w*[rR]|--recursive))(?:[^\n;|&]*\s)?(?:{_ROOT}|{own_home}/*\*?){_END}",
        ),
        (
            "hardline.delete",
            rf"{_START}find\s+(?:{_ROOT}|{own_home})\s+(?![^\n;|&]*-name)[^\n;|&]*-(?:delete|exec\s+rm){_END}",
        ),
        (
            "hardline.rights",
            (
                rf"{_START}(?:chmod|chown|chgrp|setfacl)\s+(?=[^\n;|&]*(?:-\w*R|--recursive))(?:[^\n;|&]*\s)?(?:{_ROOT}"
                rf"|{own_home}/?){_END}"
            ),
        ),
        (
            "hardline.disk",
            (
                rf"{_START}(?:mkfs(?:\.\w+)?|mke2fs|mkswap|wipefs|shred|blkdiscard|sgdisk|sfdisk)\s[^\n;|&]*(?:{_DISK}"
                rf"){_END}"
            ),
        ),
        ("hardline.disk", rf"{_START}dd\s[^\n;|&]*\bof=(?:{_DISK}){_END}"),
        ("hardline.disk", rf">\s*(?:{_DISK}){_END}"),
        (
            "process.fork-bomb",
            (
                r"(?<![\w:])([\w:]{1,64})\s{0,8}\(\s{0,8}\)\s{0,8}\{\s{0,8}\1\s{0,8}[|&]\s{0,8}\1\s{0,8}&?\s{0,8};?\s{0"
                r",8}\}"
            ),
        ),
        ("process.kill-all", rf"{_START}kill\s+(?:-\S+\s+)+(?:--\s+)?-?1{_END}"),
        ("process.kill-all", rf"{_START}killall5\b"),
        (
            "hardline.power",
            rf"{_START}(?:shutdown|reboot|poweroff|halt)(?:\s+(?!--help|--version)[^\s;|&]+)*\s*{_END}(?!\s*--help)",
        ),
        ("hardline.power", rf"{_START}(?:init|telinit)\s+[06]{_END}"),
        (
            "hardline.power",
            rf"{_START}systemctl\s+(?:-\S+\s+)*(?:poweroff|reboot|halt|kexec|suspend|hibernate|rescue|emergency){_END}",
        ),
        ("hardline.power", r">\s*/proc/sysrq-trigger"),
        ("gateway.kill", rf"{_START}(?:pkill|killall)\s+(?:-\S+\s+)*{name}{_END}"),
        ("gateway.stop", rf"{_START}systemctl\s+(?:-\S+\s+)*(?:stop|restart|kill|freeze)\s+{name}(?:\.service)?{_END}"),
        ("gateway.stop", rf"{_START}{name}\s+(?:stop|restart|kill|shutdown){_END}"),
        ("gateway.audit", rf"{_START}rm\s+[^\n;|&]*(?:{home})/?{_END}"),
    ]
    if audit:
        raw.append(("gateway.audit", rf"{_START}(?:rm|mv|truncate|shred|unlink|tee)\s[^\n;|&]*(?:{audit}){_END}"))
        raw.append(("gateway.audit", rf">\s*(?:{audit}){_END}"))
    return tuple((rule, re.compile(expression, re.IGNORECASE), _NEEDS.get(rule, ())) for rule, expression in raw)


_NEEDS = {
    "hardline.delete": ("rm", "find"),
    "hardline.rights": ("chmod", "chown", "chgrp", "setfacl"),
    "hardline.disk": ("/dev/",),
    "process.fork-bomb": ("{",),
    "process.kill-all": ("kill",),
    "hardline.power": ("shutdown", "reboot", "poweroff", "halt", "init", "systemctl", "sysrq"),
}


def hit(text: str, assume: Assumptions) -> tuple[str, str] | None:
    """The rule that a text meets and the part that meets it; None when it meets none."""
    folded = normalise.fold(text).replace("\\\n", " ")
    plain = re.sub(r"[\\'\"]", "", folded)
    lower = plain.lower()
    pieces = _pieces(plain)
    for rule, expression, needs in _expressions(assume):
        if needs and not any(word in lower for word in needs):
            continue
        for line in pieces:
            match = expression.search(line)
            if match:
                return rule, match[0].strip()[:200]
    return None


def _pieces(text: str, size: int = 4_096) -> list[str]:
    """Lines, long ones cut with an overlap, so that no expression runs over more than a few thousand characters."""
    pieces: list[str] = []
    for line in text.split("\n"):
        if len(line) <= size:
            pieces.append(line)
        else:
            pieces += [line[at : at + size] for at in range(0, len(line), size - 512)]
    return pieces
