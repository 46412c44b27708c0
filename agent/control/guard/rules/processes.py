"""Signals (A6)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import Rule

_rule = functools.partial(Rule, cls="A6", category="process")

RULES: tuple[Rule, ...] = (
    _rule(
        id="kill.pattern",
        programs="pkill killall skill slay",
        without="-l -L --list",
        text=r"^(?!.*(?:^|\s)(?:-0|-s\s*0|--signal[= ]0)(?:\s|$)).+",
        reason="It signals every process that fits a pattern.",
        alternative="Look the process up and signal its number.",
        match=("pkill node", "killall python3", "pkill -9 -f webpack"),
        spare=("pgrep -fl node", "killall -l", "pkill -0 node"),
    ),
    _rule(
        id="kill.window",
        programs="xkill",
        reason="It ends a program by its window.",
        match=("xkill -id 0x1c00007",),
        spare=("xwininfo",),
    ),
    _rule(
        id="fuser.kill",
        programs="fuser",
        options="-k --kill",
        reason="It ends whatever uses a file or a port.",
        match=("fuser -k 8080/tcp",),
        spare=("fuser 8080/tcp",),
    ),
    _rule(
        id="kill.port",
        programs="kill-port fkill npx-kill-port",
        reason="It ends whatever uses a port.",
        match=("npx kill-port 3000",),
        spare=("npm run kill-port",),
    ),
    _rule(
        id="tmux.kill",
        programs="tmux",
        verbs=("kill-server", "kill-session", "kill-window", "kill-pane"),
        reason="It ends sessions with what runs in them.",
        match=("tmux kill-server",),
        spare=("tmux ls",),
    ),
    _rule(
        id="screen.quit",
        programs="screen",
        text=r"-X\b.*\b(?:quit|kill)\b|-wipe",
        reason="It ends sessions with what runs in them.",
        match=("screen -X -S work quit",),
        spare=("screen -ls",),
    ),
    _rule(
        id="kill.windows",
        programs="stop-process taskkill spps",
        reason="It ends processes.",
        match=("taskkill /F /IM node.exe",),
        spare=("tasklist",),
    ),
    _rule(
        id="kill.daemon",
        programs="start-stop-daemon",
        options="-K --stop",
        reason="It stops a daemon.",
        match=("start-stop-daemon --stop --pidfile /run/x.pid",),
        spare=("start-stop-daemon --status --pidfile /run/x.pid",),
    ),
)
