"""The hardline set H1 to H8: what no approval lets through. Decided by code alone; no configuration reaches it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from agent.control.guard import gateway, paths
from agent.control.guard.command import Command
from agent.control.guard.effects import DELETE, MODE, MOVE, WRITE, Effect
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import EVERYONE, GATEWAY, has_gap, literal

#: What is found: the id of a rule.
Hits = Iterator[str]

_POWER_TARGETS = Expression(
    r"(?:poweroff|reboot|halt|kexec|rescue|emergency|shutdown|suspend|hibernate|hybrid-sleep|suspend-then-hibernate"
    r"|sleep|runlevel[016]|soft-reboot|ctrl-alt-del)(?:\.target)?\Z"
)
_POWER_VERBS = frozenset(
    (
        "poweroff",
        "reboot",
        "halt",
        "kexec",
        "suspend",
        "hibernate",
        "hybrid-sleep",
        "suspend-then-hibernate",
        "sleep",
        "rescue",
        "emergency",
        "soft-reboot",
    )
)
_BUS = Expression(
    r"login1\S*[\s.]+.*\b(?:PowerOff|Reboot|Halt|Suspend|Hibernate|HybridSleep|SuspendThenHibernate|Sleep)\b"
    r"|systemd1\S*\.(?:PowerOff|Reboot|Halt|KExec)|ConsoleKit\S*\.(?:Stop|Restart)|UPower\S*\.(?:Suspend|Hibernate)"
    r"|ksmserver|requestShutdown|SessionManager\S*\.(?:Shutdown|Reboot|RequestShutdown|RequestReboot)",
    re.DOTALL,
)
_SYSRQ = Expression(r"/proc/sysrq-trigger\Z|/sys/power/(?:state|disk|mem_sleep|wakeup_count)\Z")
_SIGNAL_NAMES = {"0": 0, "EXIT": 0}


def hits(command: Command, effects: list[Effect]) -> Hits:
    """The ids of the hardline rules that a command meets."""
    for effect in effects:
        yield from _of_effect(effect, command)
    check = _PROGRAMS.get(command.name)
    if check is not None:
        yield from check(command)
    if command.argv:
        yield from gateway.hits(command, effects)


def _of_effect(effect: Effect, command: Command) -> Hits:
    assume = command.state.assume
    path = effect.path
    if not path.startswith("/"):
        return
    if (
        effect.kind in (DELETE, MOVE)
        and (effect.recursive or effect.kind == MOVE)
        and paths.is_whole(path, assume, relative=effect.relative)
    ):
        if effect.kind == DELETE:
            yield "hardline.delete"
    elif (effect.kind == MODE and effect.recursive and paths.is_whole(path, assume, relative=effect.relative)) or (
        effect.kind == MODE and command.where.fed and paths.is_whole(path, assume)
    ):
        yield "hardline.rights"
    if effect.kind in (WRITE, DELETE, MOVE) and paths.is_disk(path) and command.name not in ("touch", "mkdir", "ln"):
        yield "hardline.disk"
    if effect.kind == WRITE and _SYSRQ.match(path):
        yield "hardline.power"


# -- power -------------------------------------------------------------------------------------------------------------


def _shutdown(command: Command) -> Hits:
    if command.has("-c", "-k") or "/?" in command.operands or "-a" in command.argv or "/a" in command.argv:
        return
    yield "hardline.power"


def _power(command: Command) -> Hits:
    if not command.has("-w", "--wtmp-only"):
        yield "hardline.power"


def _init(command: Command) -> Hits:
    if any(one.lower() in ("0", "6", "1", "s", "single", "emergency", "rescue") for one in command.operands[:1]):
        yield "hardline.power"


def _systemctl(command: Command) -> Hits:
    verb, rest = (command.operands[0].lower() if command.operands else ""), command.operands[1:]
    if verb in _POWER_VERBS or (
        verb in ("isolate", "start", "restart", "set-default", "enable", "reload-or-restart")
        and any(_POWER_TARGETS.match(one) and ("." in one or verb in ("isolate", "set-default")) for one in rest)
    ):
        yield "hardline.power"


def _bus(command: Command) -> Hits:
    if _BUS.search(" ".join(command.argv)):
        yield "hardline.power"


def _rtcwake(command: Command) -> Hits:
    if command.value("-m", "--mode") not in ("show", "no", "on", "disable") and command.argv[1:]:
        yield "hardline.power"


def _kexec(command: Command) -> Hits:
    if command.has("-e", "--exec", "-f", "--force"):
        yield "hardline.power"


def _always_power(command: Command) -> Hits:
    del command
    yield "hardline.power"


def _by_words(*expressions: str) -> Callable[[Command], Hits]:
    compiled = re.compile("|".join(expressions), re.IGNORECASE | re.DOTALL)

    def check(command: Command) -> Hits:
        if compiled.search(" ".join(command.argv[1:])):
            yield "hardline.power"

    return check


# -- disks -------------------------------------------------------------------------------------------------------------


def _on_disk(command: Command) -> bool:
    return any(paths.is_disk(command.state.resolve(one)) for one in command.operands)


def _partition(command: Command) -> Hits:
    """Partition tools: everything on a disk but listing."""
    if command.has(
        "-l",
        "--list",
        "-d",
        "--dump",
        "-p",
        "--print",
        "-L",
        "-v",
        "--verify",
        "-i",
        "--info",
        "-F",
        "--list-free",
        "-J",
        "--json",
        "-s",
        "--getsz",
        "-g",
        "-x",
        "-E",
        "-D",
    ) and not command.has(
        "-Z",
        "--zap-all",
        "-z",
        "--zap",
        "-o",
        "--clear",
        "-n",
        "--new",
        "-G",
        "--randomize-guids",
        "-t",
        "--typecode",
        "-c",
        "--delete",
    ):
        return
    if command.name in ("fdisk", "cfdisk", "gdisk") and not command.piped and not command.has("-w", "--wipe", "-W"):
        return
    if _on_disk(command):
        yield "hardline.disk"


_PARTED_CHANGES = frozenset(
    (
        "mklabel",
        "mktable",
        "mkpart",
        "mkpartfs",
        "mkfs",
        "rm",
        "resizepart",
        "resize",
        "set",
        "name",
        "rescue",
        "toggle",
        "disk_set",
        "disk_toggle",
        "move",
        "cp",
        "type",
    )
)


def _parted(command: Command) -> Hits:
    if _on_disk(command) and (
        _PARTED_CHANGES & set(command.operands) or (command.piped and command.stdin.text is not None)
    ):
        yield "hardline.disk"


def _disk_tool(*needs: str) -> Callable[[Command], Hits]:
    def check(command: Command) -> Hits:
        words = set(command.argv[1:])
        if _on_disk(command) and (
            not needs or words & set(needs) or command.has(*(one for one in needs if one.startswith("-")))
        ):
            yield "hardline.disk"

    return check


def _diskutil(command: Command) -> Hits:
    verb = command.operands[0].lower() if command.operands else ""
    if verb.startswith(
        ("erase", "partition", "zero", "secureerase", "reformat", "random", "split", "merge", "resize")
    ) and any(re.search(r"(?:^|/dev/r?)disk\d", one) for one in command.operands):
        yield "hardline.disk"


# -- processes ---------------------------------------------------------------------------------------------------------


def kill_arguments(command: Command) -> tuple[str, list[str]]:
    """The signal and the targets of ``kill``."""
    words = command.argv[1:]
    signal = "TERM"
    if words and words[0] in ("-s", "-n", "--signal", "--queue", "-q") and len(words) > 1:
        signal, words = words[1], words[2:]
    elif words and words[0].startswith("--signal="):
        signal, words = words[0].split("=", 1)[1], words[1:]
    elif (
        words
        and words[0].startswith("-")
        and words[0] not in ("--", "-l", "-L", "--list", "--table", "--help", "--version")
        and len(words) > 1
    ):
        match = re.match(r"-s?n?([A-Za-z][\w+-]*|\d+)\Z", words[0])
        if match:
            signal, words = match[1], words[1:]
    if words[:1] == ["--"]:
        words = words[1:]
    elif len(words) > 1 and words[0] == "-s":
        signal, words = words[1], words[2:]
    return signal.upper().removeprefix("SIG"), words


def _kill(command: Command) -> Hits:
    words = command.argv[1:]
    if not words or words[0] in ("-l", "-L", "--list", "--table", "--help", "--version") or words == ["-1"]:
        return
    signal, targets = kill_arguments(command)
    if signal in _SIGNAL_NAMES:
        return
    for target in targets:
        if target in ("-1", "1", "+1", "01", "-01") or EVERYONE in target:
            yield "process.kill-all"
        elif GATEWAY in target:
            yield "gateway.kill"


def _everyone(command: Command) -> bool:
    """Whether a pattern kill takes in every process of the gateway's user."""
    user = command.state.assume.user
    given = command.value("-u", "-U", "--euid", "--uid", "--user")
    users = set(given.split(",")) if given else set()
    patterns = [literal(one) for one in command.operands]
    covers_all = any(pattern in (".", ".*", "", "^", "$", ".+", "[a-z]", "\\w", "^.*$", ".?") for pattern in patterns)
    if command.name == "killall":
        if user in users and not patterns:
            return True
        return (command.has("-r", "--regexp") and covers_all) or any(
            one in ("init", "systemd", "launchd") for one in patterns
        )
    if command.has("-v", "--inverse"):
        return True
    if users and user not in users and not any(has_gap(one) for one in users):
        return False
    if user in users and not patterns:
        return True
    return covers_all


def _pkill(command: Command) -> Hits:
    if command.has("-0", "-l", "-L", "--list") or command.value("-s", "--signal") in ("0",) or "-0" in command.argv:
        return
    if _everyone(command):
        yield "process.kill-all"
    elif gateway.pattern_names_it(command):
        yield "gateway.kill"


def _killall5(command: Command) -> Hits:
    del command
    yield "process.kill-all"


def _loginctl(command: Command) -> Hits:
    words = command.operands
    if words[:1] and words[0] in ("kill-user", "terminate-user") and command.state.assume.user in words[1:]:
        yield "process.kill-all"
    elif words[:1] and words[0] in _POWER_VERBS:
        yield "hardline.power"


def _skill(command: Command) -> Hits:
    user = command.state.assume.user
    if command.value("-u") == user or user in command.operands:
        yield "process.kill-all"


_PROGRAMS: dict[str, Callable[[Command], Hits]] = {
    "shutdown": _shutdown,
    "reboot": _power,
    "poweroff": _power,
    "halt": _power,
    "init": _init,
    "telinit": _init,
    "openrc-shutdown": _always_power,
    "systemctl": _systemctl,
    "loginctl": _loginctl,
    "dbus-send": _bus,
    "busctl": _bus,
    "gdbus": _bus,
    "qdbus": _bus,
    "qdbus6": _bus,
    "rtcwake": _rtcwake,
    "kexec": _kexec,
    "pm-suspend": _always_power,
    "pm-hibernate": _always_power,
    "pm-suspend-hybrid": _always_power,
    "systemsetup": _by_words(r"-setrestart|-setsleep|-setcomputersleep"),
    "zzz": _always_power,
    "uadmin": _always_power,
    "restart-computer": _always_power,
    "stop-computer": _always_power,
    "pmset": _by_words(r"\b(?:sleepnow|shutdownnow|restart)\b|\bschedule\b.*\b(?:shutdown|poweron|restart|sleep)\b"),
    "osascript": _by_words(
        r"\b(?:to\s+)?(?:shut\s*down|restart|sleep)\b(?=[^\w]*$)|System Events.*\b(?:shut\s*down|restart|sleep|log "
        r"out)\b"
    ),
    "gnome-session-quit": _by_words(r"--power-off|--reboot"),
    "xfce4-session-logout": _by_words(r"--halt|--reboot|--suspend|--hibernate|-[hrs]\b"),
    "ipmitool": _by_words(r"\b(?:chassis\s+)?power\s+(?:off|cycle|reset|soft)\b"),
    "rundll32": _by_words(r"SetSuspendState|ExitWindows"),
    "apm": _by_words(r"-[sS]\b|--suspend|--standby"),
    "kill": _kill,
    "pkill": _pkill,
    "killall": _pkill,
    "killall5": _killall5,
    "skill": _skill,
    "slay": _skill,
    "fdisk": _partition,
    "cfdisk": _partition,
    "gdisk": _partition,
    "sgdisk": _partition,
    "sfdisk": _partition,
    "parted": _parted,
    "hdparm": _disk_tool(
        "--security-erase",
        "--security-erase-enhanced",
        "--trim-sector-ranges",
        "--write-sector",
        "--make-bad-sector",
        "--sanitize-block-erase",
        "--sanitize-crypto-scramble",
        "--sanitize-overwrite-passes",
    ),
    "nvme": _disk_tool("format", "sanitize", "write", "write-zeroes", "delete-ns", "create-ns", "dsm"),
    "badblocks": _disk_tool("-w"),
    "cryptsetup": _disk_tool("luksFormat", "luksErase", "erase", "reencrypt", "format"),
    "sg_format": _disk_tool(),
    "sg_sanitize": _disk_tool(),
    "ddrescue": _disk_tool(),
    "partclone.restore": _disk_tool(),
    "ntfsclone": _disk_tool("--overwrite", "-O"),
    "scrub": _disk_tool(),
    "nwipe": _disk_tool(),
    "wodim": _disk_tool("-blank"),
    "diskutil": _diskutil,
}
for _name in ("gshred",):
    _PROGRAMS[_name] = _disk_tool()
