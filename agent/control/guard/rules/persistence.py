"""What stays and runs later (A11)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import PlaceRule, Rule

_rule = functools.partial(Rule, cls="A11", category="persistence")
_place = functools.partial(PlaceRule, cls="A11", category="persistence")

RULES: tuple[Rule, ...] = (
    _rule(
        id="cron.change",
        programs="crontab",
        text=r"^(?!.*(?:^|\s)-l(?:\s|$))",
        reason="It changes jobs that run later.",
        match=("crontab -r", "crontab jobs.txt", "echo '* * * * * x' | crontab -"),
        spare=("crontab -l",),
    ),
    _rule(
        id="at.job",
        programs="at batch",
        without="-l -c -V",
        reason="It starts something later, out of sight.",
        match=("at now + 1 minute -f job.sh", "echo 'rm -rf ~/data' | at midnight"),
        spare=("atq", "at -l"),
    ),
    _rule(
        id="at.remove",
        programs="atrm",
        reason="It deletes jobs that wait.",
        match=("atrm 3",),
        spare=("atq",),
    ),
    _rule(
        id="systemd-run.timer",
        programs="systemd-run",
        text="--on-(?:active|boot|calendar|startup|unit-active)|--timer-property",
        reason="It starts something later, out of sight.",
        match=("systemd-run --on-active=60 ls",),
        spare=("systemd-run --user --scope ls",),
    ),
    _rule(
        id="ssh.copy-id",
        programs="ssh-copy-id ssh-import-id",
        reason="It lets a key log in on another host.",
        match=("ssh-copy-id root@db.example.com",),
        spare=("ssh-keyscan host",),
    ),
    _rule(
        id="git.config-run",
        programs="git",
        verbs=("config",),
        without="--list -l --get --get-all --get-regexp --unset --unset-all",
        text=(
            r"\bconfig\b.*?(?:^|\s)['\"]?(?:core\.(?:pager|editor|sshcommand|fsmonitor|hookspath"
            r"|askpass|gitproxy|attributesfile|worktree)|pager\.\S+|sequence\.editor"
            r"|diff\.\S*(?:command|textconv|external)|(?:diff|merge)tool\.\S*cmd|merge\.\S*driver"
            r"|filter\.\S+|credential\.\S*helper|gpg\.\S*program|gpg\.program|init\.templatedir"
            r"|remote\.\S*(?:uploadpack|receivepack|proxy)|protocol\.\S*allow|include(?:if"
            r")?\.\S*path|url\.\S*insteadof|http\.(?:proxy|sslverify)|safe\.directory"
            r"|sendemail\.\S+|browser\.\S*cmd|commit\.template-run)\s+(?!(?:cat|less|vim?|nvim"
            "|nano|emacs|code(?: --wait)?|true|false|store|cache|osxkeychain|manager|libsecret"
            r"|ssh|delta|diff-so-fancy.*)['\"]?(?:\s|$))\S"
        ),
        reason="git would run a command or another address from now on.",
        match=("git config --global core.hooksPath /tmp/hooks", "git config --global core.pager 'sh -c id'"),
        spare=(
            "git config user.email dev@example.com",
            "git config --list --show-origin",
            "git config --global core.editor vim",
        ),
    ),
    _rule(
        id="git.config-alias",
        programs="git",
        verbs=("config",),
        text=r"\balias\.\S+\s+['\"]?!",
        reason="git would run a command from now on.",
        match=("git config --global alias.st '!sh -c id'",),
        spare=("git config alias.undo", "git config alias.co checkout"),
    ),
    _rule(
        id="npm.registry",
        programs="npm pnpm yarn pip pip3 bundle gem cargo poetry uv composer",
        text=(
            r"\bconfig\s+set\s+(?:\S+\s+)*?\S*(?:registry|index-url|extra-index|script-shell"
            "|ignore-scripts|proxy|cafile|strict-ssl|mirror|source|repositories|trusted-host"
            r"|prefix)\S*|^sources\s+(?:--add|-a|add)"
        ),
        reason="Packages would come from another place from now on.",
        match=(
            "npm config set registry http://x.example",
            "pip config set global.index-url http://x.example/simple",
        ),
        spare=("npm config get registry", "pip config list"),
    ),
    _rule(
        id="shell.default",
        programs="direnv",
        verbs=("allow", "permit", "grant"),
        reason="It lets a folder's settings run.",
        match=("direnv allow .",),
        spare=("direnv status",),
    ),
)

PLACES: tuple[PlaceRule, ...] = (
    _place(
        id="startup.write",
        kinds="write",
        places="startup",
        reason="It changes what runs at every start or log-in.",
        match=(
            "echo x >> ~/.bashrc",
            "cp post-commit .git/hooks/post-commit",
            "echo k >> ~/.ssh/authorized_keys",
            "cp x.desktop ~/.config/autostart/",
            "curl -o ~/.bashrc https://x.example/rc",
        ),
        spare=("cat ~/.bashrc", "cp ~/.bashrc dotfiles/bashrc", "ls .git/hooks", "vim .bashrc.template"),
    ),
    _place(
        id="startup.change",
        kinds="move delete mode",
        places="startup",
        reason="It changes what runs at every start or log-in.",
        match=("mv ~/.bashrc x",),
        spare=("mv a b",),
    ),
)
