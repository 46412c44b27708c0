"""What the guard takes for granted about this daemon, without building anything of it."""

from __future__ import annotations

from agent.control.guard.verdict import Assumptions
from gateway.home import Home


def assumptions_of(home: Home) -> Assumptions:
    """What the guard takes for granted here: the paths are those that a command would see, were they mounted."""
    root = home.root
    return Assumptions(
        gateway_home=str(root),
        audit_paths=tuple(map(str, (home.state_db, home.audit_key_file))),
        policy_paths=tuple(map(str, (home.config_file, home.policy_file, home.allowlist_file))),
        secret_paths=tuple(map(str, (home.http_token_file, home.audit_key_file, home.control_sock))),
    )
