"""What would stop the gateway, lose its record, or weaken what it asks about (H7, H8)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.control.guard.expressions import Expression
from agent.control.guard import paths, sql
from agent.control.guard.command import Command
from agent.control.guard.effects import DELETE, MODE, MOVE, WRITE, Effect
from agent.control.guard.marks import GATEWAY, literal
from agent.control.guard.streams import names_gateway
from agent.control.guard.verdict import Assumptions

_STOPS = frozenset(
    ("stop", "restart", "try-restart", "condrestart", "reload-or-restart", "try-reload-or-restart", "kill", "freeze", "force-restart", "force-reload", "pause", "rm", "delete", "down", "shutdown", "terminate", "isolate")
)
_CLI_STOPS = frozenset(("stop", "restart", "kill", "shutdown", "quit", "halt", "uninstall", "down", "pause", "suspend", "terminate"))
_WEAK = Expression(
    r"\bmode[\"']?\]?\s*[:=]+>?\s*[\"']?(?:off|never|auto|none|disabled?|yolo|false|bypass|allow)\b"
    r"|\b(?:enabled?|required?|ask|confirm|audit|guard|approvals?|sandbox|hardline)[\"']?\]?\s*[:=]+>?\s*[\"']?(?:false|no|off|0|never|none|disabled?)\b"
    r"|\bi_understand[\"']?\]?\s*[:=]+>?\s*[\"']?(?:true|yes|on|1)\b|[\"'\[\s:,]\*[\"'\]\s,}]|^\*$|\ballow_?all\b|\byolo\b|\bterminal[\"']?\s*[:=]+>?\s*[\"']?(?:on|unguarded|allow|off)\b"
    r"|\bauto_?approve[\"']?\]?\s*[:=]+>?\s*[\"']?(?:true|yes|on|1|all)\b|\bskip_?(?:approval|confirm)\w*",
    re.IGNORECASE | re.MULTILINE,
)
_WEAK_VALUE = Expression(r"^[\"'\[]*(?:off|false|no|0|never|none|null|disabled?|auto|yolo|bypass|allow|\*|)[\"'\]]*$", re.IGNORECASE)
_GUARDED_KEY = Expression(r"^(?:audit|approvals?|guard|policy|sandbox|security|hardline)\b", re.IGNORECASE)
_SED_NEW = Expression(r"s(.)(?:(?!\1).)*\1((?:(?!\1).)*)\1", re.DOTALL)
_SED_TEXT = Expression(r"(?:^|[;\d$/])\s*[aic]\\?\s*(.+)", re.DOTALL)


def is_unit(word: str, assume: Assumptions) -> bool:
    """Whether a word names the gateway's unit, container or program."""
    name = assume.gateway_name
    word = literal(word).lower()
    return word in (name, f"{name}.service", f"{name}.socket", f"{name}.scope", f"/{name}") or bool(re.fullmatch(rf"{re.escape(name)}@[\w-]*(?:\.service)?", word))


def pattern_names_it(command: Command) -> bool:
    """Whether ``pkill`` or ``killall`` takes in the gateway."""
    assume = command.state.assume
    pidfile = command.value("-F", "--pidfile")
    if pidfile and command.state.resolve(pidfile) == assume.gateway_pid_file:
        return True
    if command.value("-P", "--parent") and GATEWAY in (command.value("-P", "--parent") or ""):
        return True
    if command.name == "killall" and not command.has("-r", "--regexp"):
        return any(literal(one).lower() == assume.gateway_name for one in command.operands)
    exact = command.name == "pkill" and command.has("-x", "--exact") and not command.has("-f", "--full")
    return any(names_gateway(one, command, whole=exact) for one in command.operands)


def hits(command: Command, effects: list[Effect]) -> Iterator[str]:
    """The ids of the rules that a command meets."""
    if _stops(command):
        yield "gateway.stop"
    if command.name == command.state.assume.gateway_name:
        yield from _cli(command)
    yield from of_effects(command, effects)


def _stops(command: Command) -> bool:
    assume = command.state.assume
    words = command.operands
    name = command.name
    if name == "systemctl":
        verb, units = (words[0] if words else ""), words[1:]
        stops = verb in _STOPS or (verb in ("disable", "mask") and command.has("--now"))
        if verb == "kill" and command.value("-s", "--signal") in ("0",):
            return False
        return stops and any(is_unit(one, assume) for one in units)
    if name in ("service", "rc-service", "invoke-rc.d") or command.argv[0].startswith("/etc/init.d/"):
        if command.argv[0].startswith("/etc/init.d/"):
            return is_unit(name, assume) and bool(set(words) & _STOPS)
        return len(words) > 1 and is_unit(words[0], assume) and words[1] in _STOPS
    if name in ("supervisorctl", "pm2", "docker", "podman", "nerdctl", "sv", "launchctl", "monit", "initctl", "svc", "s6-svc", "forever", "lxc", "incus", "docker-compose", "podman-compose", "brew", "circusctl"):
        verbs = set(words[:3]) & (_STOPS | {"unload", "bootout", "remove", "exit", "stopall", "kickstart", "unmonitor", "rmi-x"})
        return bool(verbs) and any(is_unit(one, assume) or one.endswith(f".{assume.gateway_name}") for one in words[1:]) and not command.inert
    if name == "start-stop-daemon" and command.has("-K", "--stop"):
        given = (command.value("-n", "--name"), command.value("-x", "--exec"), command.value("-p", "--pidfile"))
        return any(one and (is_unit(one.rsplit("/", 1)[-1], assume) or one == assume.gateway_pid_file) for one in given)
    if name == "fuser" and command.has("-k", "--kill"):
        return any(paths.below(command.state.resolve(one), assume.gateway_home) or command.state.resolve(one) == assume.gateway_pid_file for one in words)
    if name == "tmux" and words[:1] and words[0] in ("kill-session", "kill-window"):
        return assume.gateway_name in command.argv
    return name == "screen" and "quit" in command.argv and assume.gateway_name in command.argv


def _cli(command: Command) -> Iterator[str]:
    words = command.operands
    if not words:
        return
    verb = words[0]
    if verb in _CLI_STOPS or (verb in ("service", "daemon", "gateway") and set(words[1:2]) & (_CLI_STOPS | {"disable"})):
        yield "gateway.stop"
    elif verb in ("config", "set") and set(words[1:2]) & {"set", "unset", "delete", "reset", "add"}:
        key = words[2] if len(words) > 2 else ""
        value = words[3] if len(words) > 3 else ""
        if "=" in key:
            key, _, value = key.partition("=")
        if _GUARDED_KEY.match(key) and (_WEAK_VALUE.match(value) or words[1] in ("unset", "delete")):
            yield "gateway.audit" if key.startswith("audit") else "gateway.policy"
        elif re.search(r"i_understand$", key) and value.lower() in ("true", "yes", "1", "on"):
            yield "gateway.policy"
        else:
            yield "gateway.cli"
    elif verb == "audit" and set(words[1:2]) & {"disable", "clear", "delete", "purge", "off", "truncate", "reset", "prune", "rotate"}:
        yield "gateway.audit"
    elif (verb in ("approvals", "approval", "approve", "grants", "access", "allow", "policy", "guard", "yolo") and not set(words[1:2]) & {"list", "show", "revoke", "test", "check", "explain", "get", "status", "pending"}):
        yield "gateway.policy" if set(words[1:]) & {"off", "disable", "disabled", "never", "all", "*", "none"} or verb == "yolo" else "gateway.cli"
    elif verb in ("undo", "jobs", "access", "deliveries", "takeover", "update", "upgrade", "install") and set(words[1:2]) - {"list", "show"}:
        yield "gateway.cli"


def of_effects(command: Command, effects: list[Effect]) -> Iterator[str]:
    """The record and the policy, by whatever program touches them."""
    assume = command.state.assume
    for effect in effects:
        if effect.kind not in (WRITE, DELETE, MOVE, MODE) or effect.inside or not effect.path.startswith("/"):
            continue
        place = paths.place(effect.path, assume)
        if not place.gateway and not _above(effect, assume):
            continue
        if place.audit:
            yield "gateway.audit"
        elif effect.kind in (DELETE, MOVE) and _takes_audit(effect, assume):
            yield "gateway.audit"
        elif effect.kind == MODE and effect.recursive and _takes_audit(effect, assume):
            yield "gateway.audit"
        elif place.policy and effect.kind == WRITE and _weakens(command):
            yield "gateway.policy"
    if command.name in sql.CLIENTS and any(paths.place(command.state.resolve(one), assume).audit for one in command.operands[:2] if "/" in one or one.endswith(".db")):
        text = sql.given_to(command) or ""
        if re.search(r"\b(?:delete|update|drop|truncate|alter|insert|replace|vacuum|create|attach|pragma\s+\w+\s*=|detach|reindex)\b", text, re.IGNORECASE):
            yield "gateway.audit"


def _above(effect: Effect, assume: Assumptions) -> bool:
    return effect.kind in (DELETE, MOVE) and (effect.recursive or effect.kind == MOVE) and paths.covers(effect.path, assume.gateway_home)


def _takes_audit(effect: Effect, assume: Assumptions) -> bool:
    if effect.kind == DELETE and not effect.recursive:
        return any(_may_be(effect.path, one) for one in assume.audit_paths)
    return any(paths.covers(effect.path, one) for one in (assume.gateway_home, *assume.audit_paths))


def _may_be(path: str, target: str) -> bool:
    """Whether a path with gaps between its parts (a search by name) can be the target."""
    head, _, name = path.rpartition("/")
    base = re.split(r"/[\ue000-\ue006]", f"{head}/", maxsplit=1)[0].rstrip("/")
    if base == head or not base:
        return paths.covers(path, target)
    if not paths.below(target, base):
        return False
    return re.fullmatch(re.escape(literal(name)).replace(r"\*", ".*").replace(r"\?", "."), target.rsplit("/", 1)[-1]) is not None


def _weakens(command: Command) -> bool:
    """Whether what is written into the policy is visible and weakens it."""
    texts: list[str] = []
    name = command.name
    if name in ("sed", "gsed"):
        for script in (*command.values("-e", "--expression"), *command.operands[:1]):
            texts += [match[2] for match in _SED_NEW.finditer(script)]
            if any(_WEAK_VALUE.match(match[2]) and match[2] for match in _SED_NEW.finditer(script)):
                return True
            texts += [match[1] for match in _SED_TEXT.finditer(script)]
    elif name in ("yq", "jq", "perl", "awk", "dasel", "crudini"):
        texts += command.argv[1:]
    else:
        for effect_path in (one.path for one in command.redirects if one.writes):
            known = command.state.world.files.get(effect_path)
            texts.append(known.text or "" if known else "")
        if name in ("echo", "printf"):
            texts.append(" ".join(command.argv[1:]))
        if command.stdin.text:
            texts.append(command.stdin.text)
        if name in ("cp", "mv", "install") and len(command.operands) > 1:
            known = command.state.world.files.get(command.state.resolve(command.operands[0]))
            texts.append(known.text or "" if known else "")
    return any(_WEAK.search(literal(text)) for text in texts)
