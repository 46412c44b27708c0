"""Applies the rules to what the evaluation finds, and gathers findings."""

from __future__ import annotations

import functools
import re

from agent.control.guard import containers, effects, gateway, hardline, normalise, paths, sending, sql
from agent.control.guard.command import Command, Reach
from agent.control.guard.effects import Effect
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import ENVIRON, JOB, SECRET, has_gap, has_glob, visible
from agent.control.guard.rules import facts, hardline_data, registry
from agent.control.guard.rules.model import NEVER_GRANTED, Reason, VariableRule
from agent.control.guard.verdict import Assumptions, Finding, Shape, Verdict

#: Findings that are kept; a command with more of them is no clearer for the rest.
MAX_FINDINGS = 64
#: Characters of a segment in a finding; the card shows the whole command beside it.
MAX_SHOWN = 1_000

_SUBCOMMANDS = frozenset(effects.TOUCHES)
_DEVICE_OK = Expression(
    r"/dev/(?:null|zero|full|stdin|stdout|stderr|tty\w*|pts/.*|fd/.*|shm(?:/.*)?|ptmx|u?random|tcp/.*|udp/.*"
    r"|console|log|\Z)"
)
_SOCKET = Expression(r"/dev/(?:tcp|udp)/(?P<host>[^/]*)/")
_PRINTS = frozenset(("echo", "printf", "tee", "logger", "cat", "wall", "write", "say"))
_SECRET_WORD = Expression(r"secret|token|passw|credential|api_?key|access_?key|private_?key", re.IGNORECASE)
#: Programs that take a whole folder along.
_PACKERS = frozenset(("tar", "zip", "cp", "rsync", "scp", "7z", "grep", "rg"))
_ENDLESS = Expression(r"/dev/(?:zero|u?random|full)\Z")


class Judge:
    """Collects findings about one command."""

    def __init__(self, assume: Assumptions) -> None:
        self.assume = assume
        self.findings: dict[tuple[str, str, str], Finding] = {}

    # -- what the evaluator calls --------------------------------------------------------------------------------------

    def fact(self, name: str, command: Command, resolved: str = "") -> None:
        """Note something that the evaluation saw."""
        reason = facts.BY_NAME.get(name) or hardline_data.BY_NAME[name]
        self._add(reason, command, resolved=resolved, shaped=False)

    def command(self, command: Command) -> None:
        """Judge one simple command with its redirections and variables."""
        if command.argv and command.only_talks and command.name != "kill":
            return
        touched = (
            effects.of(command)
            if not command.inert
            else [_redirect for _redirect in effects.of(command) if _redirect.redirect]
        )
        if not command.argv:
            self._variables(command)
            self._without_program(command, touched)
            return
        if touched:
            self._places(command, touched)
        inert = command.inert
        if not inert:
            for rule in dict.fromkeys(hardline.hits(command, touched)):
                self._add(facts.BY_NAME.get(rule) or hardline_data.BY_NAME[rule], command, touched)
        for found in registry.rules_for(command.name, command.operands[0] if command.operands else ""):
            if (not inert or found.always) and found.holds(command):
                self._add(found, command, touched)
        if command.argv[0].startswith("/etc/init.d/") and command.operands:
            self._init_script(command)
        if command.assigns or command.name in ("export", "declare", "typeset", "env", "readonly", "local", "set"):
            self._variables(command)
        if not inert:
            self._coded(command)

    # -- kinds of rules ------------------------------------------------------------------------------------------------

    def _without_program(self, command: Command, touched: list[Effect]) -> None:
        for rule in gateway.of_effects(command, touched):
            self._add(hardline_data.BY_NAME[rule], command, touched)
        for rule in dict.fromkeys(hardline.hits(command, touched)):
            self._add(facts.BY_NAME.get(rule) or hardline_data.BY_NAME[rule], command, touched)
        self._places(command, touched)

    def _places(self, command: Command, touched: list[Effect]) -> None:
        table = registry.by_kind()
        hit: set[str] = set()
        for effect in dict.fromkeys(touched):
            socket = _SOCKET.match(effect.path)
            if socket and not re.match(r"(?:localhost|127\.|::1)", socket["host"]):
                self._add(hardline_data.BY_NAME["remote.socket"], command, touched)
                continue
            rules = table.get(effect.kind)
            if not rules or all(rule.id in hit for rule in rules):
                continue
            classes = self._classes(effect, command)
            for rule in rules:
                if rule.id in hit or (effect.inside and not rule.inside) or command.name in _split(rule.spares):
                    continue
                if not classes.isdisjoint(_split(rule.places)):
                    hit.add(rule.id)
                    self._add(rule, command, touched)

    def _classes(self, effect: Effect, command: Command) -> frozenset[str]:
        path = effect.path
        found = _classes_of(path, self.assume)
        if effect.kind == effects.DELETE:
            if has_glob(path):
                found |= {"glob"}
            if command.where.fed or has_gap(path) or not path.startswith("/"):
                found |= {"computed"}
        elif effect.kind == effects.READ and command.name in _PACKERS and paths.is_secret_folder(path):
            found |= {"folder"}
        return found

    def _variables(self, command: Command) -> None:
        given = dict(command.assigns)
        if command.name in ("export", "declare", "typeset", "readonly", "local", "env"):
            for word in command.argv[1:]:
                name, equals, value = word.partition("=")
                if equals:
                    given[name] = value
                elif command.name == "export" and isinstance(known := command.state.variables.get(word), str):
                    given[word] = known
        for name, value in given.items():
            for rule in registry.variable_rules(name):
                if _variable_holds(rule, value):
                    self._add(rule, command)

    def _init_script(self, command: Command) -> None:
        verbs = {"start", "stop", "restart", "reload", "force-reload", "try-restart", "condrestart"}
        if verbs & set(command.operands):
            rule = next(one for one in registry.RULES if one.id == "service.change")
            self._add(rule, command)

    def _coded(self, command: Command) -> None:
        name = command.name
        if name in ("kill",):
            self._kill(command)
        text = sql.given_to(command)
        if text is not None and sql.destroys(text):
            self._note("sql.destructive", command, shaped=not command.piped)
        if sending.sends(command):
            self._note("send.data", command, shaped=False)
        if sending.looks_alike(command):
            self._note("remote.look-alike", command)
        if not name.isascii() and normalise.mixes_scripts(name):
            self.fact("unreadable.scripts", command)
        if name in _PRINTS and any(SECRET in one for one in command.argv[1:]):
            self._note("secret.variable", command)
        if (
            name in ("grep", "egrep", "rg", "ag")
            and ENVIRON in command.stdin.traits
            and not command.has("-c", "-q", "-v")
            and any(_SECRET_WORD.search(one) for one in command.operands[:1])
        ):
            self._note("secret.variable", command)
        if name in ("cat", "yes", "dd", "cp", "tee") and self._fills(command):
            self._note("disk.filler", command)
        if name in ("docker", "podman", "nerdctl"):
            self._container(command)
        if name in ("pip", "pip3", "uv", "pipx", "apt", "npm", "dpkg") and any(
            one in command.argv for one in ("install", "uninstall", "-i", "remove")
        ):
            own = self.assume.gateway_name
            if any(re.match(rf"(?:.*/)?{re.escape(own)}(?:[-_=<>~! \[@]|$)", one) for one in command.operands[1:]):
                self._note("gateway.code", command)

    def _fills(self, command: Command) -> bool:
        writes = any(one.writes and not one.path.startswith("/dev/") for one in command.redirects)
        if command.name == "yes":
            return writes
        endless = any(_ENDLESS.match(command.state.resolve(one)) for one in command.operands) or any(
            one.operator == "<" and _ENDLESS.match(one.path) for one in command.redirects
        )
        return endless and writes

    def _kill(self, command: Command) -> None:
        words = command.argv[1:]
        if not words or words[0] in ("-l", "-L", "--list", "--table"):
            return
        signal, targets = hardline.kill_arguments(command)
        if signal in ("0", "EXIT"):
            return
        for target in targets:
            if target.startswith("%") or (target.strip(JOB) == "" and target):
                continue
            if (
                has_gap(target)
                or command.where.fed
                or target == "0"
                or (target.startswith("-") and target[1:].isdigit())
            ):
                self._note("kill.computed", command)
                break
            if signal in ("9", "KILL"):
                self._note("kill.forced", command)
                break

    def _container(self, command: Command) -> None:
        started = containers.run_options(command)
        if started is None:
            return
        options, _ = started
        mounts = containers.mounts_of(options, command)
        sockets = any(
            "docker.sock" in source
            or "podman.sock" in source
            or source in ("/etc", "/root", "/home", "/var", "/usr", "/proc", "/sys", "/boot")
            for source, _ in mounts
        )
        if sockets or containers.reaches_host(options, mounts):
            self._note("container.host", command)

    # -- findings ------------------------------------------------------------------------------------------------------

    def _note(self, name: str, command: Command, *, shaped: bool = True) -> None:
        self._add(hardline_data.BY_NAME[name], command, shaped=shaped)

    def _add(
        self,
        reason: Reason,
        command: Command,
        touched: list[Effect] | None = None,
        *,
        resolved: str = "",
        shaped: bool = True,
    ) -> None:
        verdict = reason.verdict
        if command.where.reach is Reach.CONTAINER and verdict is Verdict.REFUSE:
            verdict = Verdict.APPROVE
        shape, scope = self._shape(command, touched or []) if shaped and verdict is Verdict.APPROVE else (None, ())
        key = (reason.id, f"{command.where.label} {command.text()}", "\0".join(scope))
        if key in self.findings or (len(self.findings) >= MAX_FINDINGS and verdict is not Verdict.REFUSE):
            return
        segment = _cut(visible(command.segment))
        text = _cut(visible(resolved) if resolved else command.text())
        self.findings[key] = Finding(
            rule=reason.id,
            cls=reason.cls,
            category=reason.category,
            verdict=verdict,
            reason=reason.reason,
            segment=segment,
            resolved="" if text == segment else text,
            alternative=reason.alternative,
            shape=shape,
            paths=scope,
            grantable=reason.cls not in NEVER_GRANTED,
        )

    def _shape(self, command: Command, touched: list[Effect]) -> tuple[Shape | None, tuple[str, ...]]:
        """Shape and path scope by which a grant knows a command again; no shape where something of it is unknown."""
        if (
            not command.argv
            or not command.resolved
            or command.where.fed
            or any(not effects.shown(one.path) for one in touched)
        ):
            return None, ()
        if any(has_gap(value) for value in command.assigns.values()):
            return None, ()
        scope = tuple(dict.fromkeys(effects.plain(one.path) for one in touched))
        options = {f"{name}={visible(value)}" if value is not None else name for name, value in command.options}
        options |= {f"{name}={value}" for name, value in command.assigns.items()}
        options |= {one.operator for one in command.redirects if one.writes}
        words = () if command.name in _PATH_PROGRAMS else tuple(visible(one) for one in command.operands)
        if command.name in ("chmod", "chown", "chgrp"):
            words = tuple(visible(one) for one in command.operands[:1])
        program = f"{command.where.label} {command.name}".strip()
        return Shape(program, words, tuple(sorted(options))), scope


#: Programs whose every operand is in the path scope.
_PATH_PROGRAMS = frozenset(
    name
    for name, touches in effects.TOUCHES.items()
    if touches and any(one.which == "all" and not one.only_if for one in touches)
)


@functools.lru_cache(maxsize=256)
def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


@functools.lru_cache(maxsize=2_048)
def _classes_of(path: str, assume: Assumptions) -> frozenset[str]:
    """The classes of a path as rules name them."""
    if not path.startswith("/"):
        return frozenset()
    place = paths.place(path, assume)
    found = {name for name, given in zip(place._fields, place, strict=True) if given}
    if not place.workspace and not place.scratch and not has_gap(path):
        found.add("outside")
    if path.startswith("/dev/") and not _DEVICE_OK.match(path) and not place.disk:
        found.add("device")
    return frozenset(found)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _variable_holds(rule: VariableRule, value: str) -> bool:
    if rule.value:
        return re.search(rule.value, visible(value), re.IGNORECASE) is not None
    return not (rule.harmless and re.search(rule.harmless, value, re.IGNORECASE))
