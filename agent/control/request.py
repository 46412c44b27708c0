"""A request to act on the system, and what came of it."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.control.sandbox.base import Profile

#: Version of the digest's recipe. An open approval of another version is cancelled at start, never honoured.
DIGEST_VERSION = 1


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """What a tool handler asks the control layer to do.

    Attributes:
        request_id: unique and stable over restarts; traces chat, decision, execution and log.
        intent: the model's short reading of what the person wants; for the audit only.
        command: identifier from the catalog, or ``terminal`` for free-form shell.
        args: typed arguments; for ``terminal`` ``script`` and optionally ``workdir``.
        timeout_ms: limit of the run in milliseconds.
    """

    request_id: str
    intent: str
    command: str
    args: Mapping[str, Any]
    timeout_ms: int


class CommandStatus(enum.Enum):
    """How a request ended."""

    RAN = "ran"
    INVALID = "invalid"
    REFUSED = "refused"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    UNDELIVERABLE = "undeliverable"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What the model is told.

    Attributes:
        text: complete sentences or the command's output; bounded and free of configured secrets.
        exit_code: status of the command where it ran to its end.
    """

    status: CommandStatus
    text: str
    exit_code: int | None = None


def digest_of(
    *, command: str, args: Mapping[str, Any], workdir: str, profile: Profile, policy_version: str, timeout_ms: int
) -> str:
    """The SHA-256 (hex) that binds an approval to exactly what was shown.

    Session, turn and deadline are bound by the approval's record beside it, so that the same request can be recognised
    when it comes again in one turn.
    """
    limits = profile.limits
    material = {
        "version": DIGEST_VERSION,
        "command": command,
        "args": args,
        "workdir": workdir,
        "timeout_ms": timeout_ms,
        "policy": policy_version,
        "profile": {
            "name": profile.name,
            "network": profile.network,
            "workspace_writable": profile.workspace_writable,
            "mounts": [[str(mount.path), mount.writable] for mount in profile.mounts],
            "limits": [
                limits.memory_mb,
                limits.pids,
                limits.cpus,
                limits.disk_mb,
                limits.open_files,
                limits.output_bytes,
            ],
        },
    }
    encoded = json.dumps(material, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(encoded.encode()).hexdigest()
