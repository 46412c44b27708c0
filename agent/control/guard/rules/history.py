"""Traces (A20)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import PlaceRule, Rule

_rule = functools.partial(Rule, cls="A20", category="history")
_place = functools.partial(PlaceRule, cls="A20", category="history")

RULES: tuple[Rule, ...] = (
    _rule(
        id="history.clear",
        programs="history fc",
        options="-c -d -w -r",
        without="-l",
        text=r"(?:^|\s)-\w*[cdw]",
        reason="It wipes the shell's history.",
        match=("history -c && history -w",),
        spare=("history | tail -20", "history 5"),
    ),
    _rule(
        id="history.off",
        programs="set shopt unsetopt",
        text=r"^(?:\+o\s+history|-u\s+histappend|\+o\s+hist\w*|\+H.*history)",
        reason="What follows would not be kept in the history.",
        match=("set +o history",),
        spare=("set -o pipefail", "set +x"),
    ),
    _rule(
        id="history.unset",
        programs="unset",
        operand="^(?:HISTFILE|HISTSIZE|HISTFILESIZE|HISTIGNORE|HISTCONTROL|PROMPT_COMMAND|TMOUT)$",
        reason="What follows would not be kept in the history.",
        match=("unset HISTFILE; make deploy",),
        spare=("unset DEBUG",),
    ),
    _rule(
        id="log.journal",
        programs="journalctl",
        text=r"--(?:vacuum-\w+|rotate|flush|relinquish-var|setup-keys)",
        reason="It shortens the journal of the system.",
        match=("sudo journalctl --rotate --vacuum-time=1s",),
        spare=("journalctl --disk-usage", "journalctl -u nginx"),
    ),
    _rule(
        id="log.dmesg",
        programs="dmesg",
        options="-C --clear -c --read-clear -D --console-off -E -n --console-level",
        reason="It clears the kernel's messages.",
        match=("sudo dmesg -C",),
        spare=("dmesg | tail", "dmesg -T"),
    ),
    _rule(
        id="log.audit",
        programs="auditctl augenrules",
        text=r"(?:^|\s)-(?:e\s*0|D|d|R|W|e)\b",
        reason="It changes what the system's audit records.",
        match=("sudo auditctl -e 0",),
        spare=("auditctl -s", "auditctl -l"),
    ),
    _rule(
        id="log.tools",
        programs="logrotate wevtutil clear-eventlog utmpdump auditd rsyslogd last-clear lastlog",
        text=r"(?:^|\s)(?:-f|--force|cl|clear-log|-r|--reverse|-C|--clear|-S)(?:\s|$)|clear",
        reason="It wipes or rotates logs.",
        match=("logrotate -f /etc/logrotate.conf", "wevtutil cl System"),
        spare=("lastlog -u bob", "logrotate -d x.conf"),
    ),
)

PLACES: tuple[PlaceRule, ...] = (
    _place(
        id="history.write",
        kinds="write delete move",
        places="history",
        reason="It wipes or changes a shell's history.",
        match=("rm ~/.bash_history", "> ~/.zsh_history", "ln -sf /dev/null ~/.bash_history"),
        spare=("grep -n x ~/.bash_history",),
    ),
    _place(
        id="log.write",
        kinds="write delete move",
        places="logs",
        reason="It wipes or changes logs of the system.",
        match=("sudo truncate -s 0 /var/log/auth.log", "sudo rm -rf /var/log/*"),
        spare=("tail -f /var/log/syslog", "> app.log"),
    ),
)
