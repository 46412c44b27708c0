"""Looks at everything that the daemon needs; each finding says how to mend it. Changes nothing."""

from __future__ import annotations

import asyncio
import enum
import os
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.control.clock import SystemClock
from agent.control.sandbox.base import EngineStatus
from agent.control.sandbox.bubblewrap import Bubblewrap
from agent.control.sandbox.engines import Engines
from gateway.config import ANYBODY, Config
from gateway.config_loader import Loaded
from gateway.exceptions import ConfigError
from gateway.home import Home
from gateway.store import inspection, readonly
from gateway.store.exceptions import DatabaseTooOld, StoreError

#: Free space of the home's disk: below the first the daemon may fail soon, below the second it is worth a note.
DISK_BAD_MB = 100
DISK_NOTE_MB = 1024

#: How far the clock may lie behind the newest row; the daemon ends open requests beyond it.
CLOCK_SLACK = timedelta(seconds=60)

OLDEST_PYTHON = (3, 11)


class State(enum.Enum):
    """How serious a finding is."""

    GOOD = "good"
    NOTE = "note"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: what was looked at.
        text: what was found.
        fix: what to do; empty when there is nothing to do.
    """

    check: str
    state: State
    text: str
    fix: str = ""


def good(check: str, text: str) -> Finding:
    """All is well."""
    return Finding(check, State.GOOD, text)


def python() -> Iterator[Finding]:
    """The interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= OLDEST_PYTHON:
        yield good("python", version)
    else:
        yield Finding("python", State.BAD, f"{version} is too old", "Install Python 3.11 or newer.")


def home(place: Home) -> Iterator[Finding]:
    """The home: whose it is, who may enter it, whether there is room."""
    root = place.root
    if not root.exists():
        yield good("home", f"{root} is made at the first start")
        parent = next(path for path in root.parents if path.exists())
        if not os.access(parent, os.W_OK):
            yield Finding("home", State.BAD, f"{parent} may not be written to", "Choose another home with --home.")
        return
    status = root.stat()
    allowed = 0o711 if os.geteuid() == 0 else 0o700
    if not stat.S_ISDIR(status.st_mode):
        yield Finding("home", State.BAD, f"{root} is no folder", "Move it aside or choose another home with --home.")
        return
    if status.st_uid != os.geteuid():
        yield Finding(
            "home", State.BAD, f"{root} belongs to uid {status.st_uid}", "Run this as the user that the daemon runs as."
        )
    elif stat.S_IMODE(status.st_mode) & ~allowed:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        yield Finding("home", State.BAD, f"others may enter {root} (mode {mode})", f"chmod {allowed:o} {root}")
    else:
        yield good("home", str(root))
    yield from _private_files(place)
    yield _disk(root)


def _private_files(place: Home) -> Iterator[Finding]:
    for path in (place.audit_key_file, place.http_token_file, place.state_db, place.allowlist_file, place.config_file):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            continue
        # a configuration without secrets is often kept readable; who writes it decides everything
        forbidden = 0o022 if path == place.config_file else 0o077
        if mode & forbidden:
            yield Finding("files", State.BAD, f"{path} is open to others (mode {mode:04o})", f"chmod 600 {path}")


def _disk(root: Path) -> Finding:
    disk = os.statvfs(root)
    free = disk.f_bavail * disk.f_frsize // 1_048_576
    text = f"{free:,} MB free"
    if free < DISK_BAD_MB:
        return Finding("disk", State.BAD, text, f"Free some space on the disk of {root}.")
    if free < DISK_NOTE_MB:
        return Finding("disk", State.NOTE, text, f"Watch the disk of {root}.")
    return good("disk", text)


def configuration(loaded: Loaded | ConfigError) -> Iterator[Finding]:
    """The configuration."""
    if isinstance(loaded, ConfigError):
        for problem in loaded.problems:
            text = f"{problem.source}: {problem.key} {problem.reason}"
            yield Finding("config", State.BAD, text, problem.suggestion or "Correct it.")
        return
    yield good("config", str(loaded.file) if loaded.file else "no file, defaults")
    for sentence in loaded.ineffective():
        yield Finding("config", State.NOTE, sentence, "Take the key out, or leave it for a later version.")


def database(place: Home, now: datetime) -> Iterator[Finding]:
    """The database, read only; and the clock, by the newest row."""
    if not place.state_db.exists():
        yield good("database", "made at the first start")
        return
    try:
        with readonly.connect(place.state_db) as conn:
            faults = inspection.faults(conn)
            newest = inspection.newest(conn)
    except DatabaseTooOld as error:
        yield Finding("database", State.NOTE, error.args[0], "The next start migrates it after a backup.")
        return
    except StoreError as error:
        yield Finding("database", State.BAD, error.args[0], error.fix)
        return
    if faults:
        fix = "Stop the daemon, keep a copy of state.db, and restore a backup."
        yield Finding("database", State.BAD, "; ".join(faults), fix)
    else:
        yield good("database", f"{place.state_db.stat().st_size / 1_048_576:.1f} MB, sound")
    if newest is not None and newest > now + CLOCK_SLACK:
        fix = "Set the clock; requests that wait for a person are ended as timed out at a start before that."
        yield Finding("clock", State.BAD, f"{now:%F %T}Z lies before the newest row, {newest:%F %T}Z", fix)
    else:
        yield good("clock", f"{now:%F %T}Z")


def listener(settings: Config, *, running: bool) -> Iterator[Finding]:
    """The address of the listener."""
    http = settings.adapters.http
    where = f"{http.host}:{http.port}"
    if running:
        yield good("daemon", "answers on its control socket")
        return
    yield Finding("daemon", State.NOTE, "does not run", "Start it with `ostiary run`.")
    family = socket.AF_INET6 if ":" in http.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((http.host, http.port))
        except OSError as error:
            fix = "Stop what listens there, or set adapters.http.port."
            yield Finding("listener", State.BAD, f"{where}: {error.strerror or error}", fix)
        else:
            yield good("listener", f"{where} is free")


def sandbox(settings: Config, place: Home) -> Iterator[Finding]:
    """Every engine that the configuration allows, by a real run."""
    statuses = asyncio.run(_engines(settings, place))
    working = any(status.ok for status in statuses)
    for status in statuses:
        if status.ok:
            text = f"{status.engine} {status.version}".strip()
            yield good("sandbox", f"{text}, sums of limits held by {status.limits_by}" if status.limits_by else text)
        else:
            state = State.NOTE if working else State.BAD
            yield Finding("sandbox", state, f"{status.engine}: {status.problem}", status.fix)
    if not statuses:
        yield Finding("sandbox", State.BAD, "no engine is part of this installation", "Commands need Linux.")


async def _engines(settings: Config, place: Home) -> Sequence[EngineStatus]:
    with tempfile.TemporaryDirectory(prefix="ostiary-doctor-") as spare:
        os.chmod(spare, 0o755)  # noqa: S103, PTH101 - the sandbox's user must be able to reach a copied program
        folder = place.bin if place.bin.is_dir() else Path(spare)
        bubblewrap = Bubblewrap(uid=settings.sandbox.uid, bin_dir=folder, protected=(place.root,))
        try:
            engines = Engines({bubblewrap.name: bubblewrap}, clock=SystemClock(), choice=settings.sandbox.engine)
            return await engines.status()
        finally:
            bubblewrap.close()


def platforms(settings: Config, unready: Mapping[str, str] | None) -> Iterator[Finding]:
    """The platforms that are enabled, by what the running daemon says of them."""
    telegram = settings.adapters.telegram
    if not telegram.enabled:
        return
    if not telegram.allowed_users:
        fix = "Set adapters.telegram.allowed_users to the numeric ids of those who may write."
        yield Finding("telegram", State.NOTE, "nobody may write to the bot", fix)
    if ANYBODY in telegram.allowed_users:
        fix = "List numeric ids in adapters.telegram.allowed_users, unless you mean it."
        yield Finding("telegram", State.NOTE, "anybody may write to the bot, with role user", fix)
    if unready is None:
        yield Finding("telegram", State.NOTE, "enabled; whether it connects shows once the daemon runs")
    elif reason := unready.get("telegram"):
        yield Finding("telegram", State.BAD, reason, "The daemon goes on trying; /readyz shows the same.")
    else:
        yield good("telegram", "connected")


def examine(place: Home, loaded: Loaded | ConfigError, *, unready: Mapping[str, str] | None) -> Iterator[Finding]:
    """Everything, in the order in which one would mend it.

    Args:
        place: the home.
        loaded: the configuration, or what is wrong with it.
        unready: parts of the running daemon that do not work, with the reason; None where none runs.
    """
    settings = Config() if isinstance(loaded, ConfigError) else loaded.config
    yield from python()
    yield from configuration(loaded)
    yield from home(place)
    yield from database(place, datetime.now(UTC))
    yield from sandbox(settings, place)
    yield from listener(settings, running=unready is not None)
    yield from platforms(settings, unready)
