"""Commands that run inside a container, and what of the host that container can reach."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent.control.guard import programs
from agent.control.guard.command import Command, Reach, Where, parse_options
from agent.control.guard.marks import UNKNOWN, Stream, visible

if TYPE_CHECKING:
    from agent.control.guard.evaluate import Evaluator

_RUN_VALUES = programs.spec(
    "a c e h l m p u v w add-host annotation attach blkio-weight cap-add cap-drop cgroup-parent cgroupns cidfile "
    "cpus cpu-shares cpuset-cpus device dns "
    "domainname entrypoint env env-file expose gpus group-add health-cmd hostname ip ipc isolation label label-file "
    "link log-driver log-opt memory "
    "memory-swap mount name network network-alias net oom-score-adj pid pids-limit platform publish pull restart "
    "runtime security-opt shm-size "
    "stop-signal stop-timeout storage-opt sysctl tmpfs ulimit user userns uts volume volumes-from workdir",
    stops=True,
)
_EXEC_VALUES = programs.spec("e u w n c env env-file user workdir detach-keys index namespace container", stops=True)
_KUBE_VALUES = programs.spec(
    "n c namespace container context image kubeconfig f filename overrides l labels env restart"
)


def mounts_of(options: list[tuple[str, str | None]], command: Command) -> list[tuple[str, str]]:
    """Host and container side of every mount."""
    found: list[tuple[str, str]] = []
    for name, value in options:
        if value is None:
            continue
        if name in ("-v", "--volume"):
            parts = value.split(":")
            if len(parts) > 1:
                found.append((command.state.resolve(parts[0]) if parts[0][:1] in "/.~" else parts[0], parts[1]))
        elif name == "--mount":
            given = dict(part.split("=", 1) for part in value.split(",") if "=" in part)
            source = given.get("source") or given.get("src")
            target = given.get("target") or given.get("dst") or given.get("destination")
            if source and target:
                found.append((source, target))
        elif name == "--device":
            device = value.split(":")[0]
            found.append((device, device))
    return found


def reaches_host(options: list[tuple[str, str | None]], mounts: list[tuple[str, str]]) -> bool:
    """Whether a container is privileged or sees the host's ``/`` or ``/dev``."""
    given = dict(options)
    if "--privileged" in given or given.get("--pid") == "host":
        return True
    if any(
        name == "--cap-add" and str(value).upper() in ("ALL", "SYS_ADMIN", "CAP_SYS_ADMIN") for name, value in options
    ):
        return True
    return any(source in ("/", "/dev") or source.startswith("/dev/") for source, _ in mounts)


def run_options(command: Command) -> tuple[list[tuple[str, str | None]], list[str]] | None:
    """Options and operands after ``docker run`` or ``create``; None for other verbs."""
    words = _after(command, ("run", "create"))
    return parse_options(words, _RUN_VALUES) if words is not None else None


def _after(command: Command, verbs: tuple[str, ...]) -> list[str] | None:
    """The words after a verb that stands first, behind ``compose`` or behind ``container``."""
    operands = [one for one in command.operands if one not in ("compose", "container")]
    if not operands or operands[0] not in verbs:
        return None
    return command.argv[command.argv.index(operands[0], 1) + 1 :]


def follow(command: Command, evaluator: Evaluator) -> Stream | None:
    """Evaluate what a container runs."""
    name = command.name
    if name in ("kubectl", "oc", "crictl", "ctr"):
        words = _after(command, ("exec", "run", "debug"))
        if words is None:
            return None
        argv = words[words.index("--") + 1 :] if "--" in words else parse_options(words, _KUBE_VALUES)[1][1:]
        privileged = any("privileged" in word for word in words)
        reach = Reach.CONTAINER_WITH_HOST if privileged else Reach.CONTAINER
        return _inside(argv, command, evaluator, Where(f"{name} {_target(words)}", reach))
    if name in ("lxc", "incus"):
        words = _after(command, ("exec",))
        if words is None:
            return None
        argv = words[words.index("--") + 1 :] if "--" in words else words[1:]
        return _inside(argv, command, evaluator, Where(f"{name} {_target(words)}", Reach.CONTAINER))
    return _docker(command, evaluator)


def _docker(command: Command, evaluator: Evaluator) -> Stream | None:
    started = run_options(command)
    if started is not None:
        options, operands = started
        mounts = mounts_of(options, command)
        reach = Reach.CONTAINER_WITH_HOST if reaches_host(options, mounts) else Reach.CONTAINER
        argv = operands[1:]
        entry = dict(options).get("--entrypoint")
        if entry:
            argv = [entry, *argv]
        label = f"{command.name} run {visible(operands[0])}" if operands else command.name
        where = Where(label, reach, tuple((target, source) for source, target in mounts if source.startswith("/")))
        return _inside(argv, command, evaluator, where)
    words = _after(command, ("exec",))
    if words is None:
        return None
    options, operands = parse_options(words, _EXEC_VALUES)
    privileged = any(name == "--privileged" for name, _ in options)
    reach = Reach.CONTAINER_WITH_HOST if privileged else Reach.CONTAINER
    return _inside(operands[1:], command, evaluator, Where(f"{command.name} {_target(operands)}", reach))


def _target(words: list[str]) -> str:
    return visible(next((word for word in words if not word.startswith("-")), ""))


def _inside(argv: list[str], command: Command, evaluator: Evaluator, where: Where) -> Stream | None:
    if not argv or (argv[0].startswith("-") and not re.match(r"-\w", argv[0])):
        return None
    state = command.state.copy()
    state.cwd = UNKNOWN
    state.variables["HOME"] = "/root"
    state.functions, state.aliases = {}, {}
    inner = Command(argv, state, segment=command.segment, stdin=command.stdin, piped=command.piped, where=where)
    return evaluator.nested(inner)
