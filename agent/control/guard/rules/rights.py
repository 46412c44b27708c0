"""Permissions, accounts and root shells (A8)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import PlaceRule, Rule

_rule = functools.partial(Rule, cls="A8", category="permissions")
_place = functools.partial(PlaceRule, cls="A8", category="permissions")

RULES: tuple[Rule, ...] = (
    _rule(
        id="chmod.world",
        programs="chmod gchmod",
        first=(
            "^0{0,4}[0-7]{0,3}[2367]$|(?:^|,)(?=[ugoa]{1,8}[=+-])[ugo]{0,4}[oa][ugoa]{0"
            ",4}(?:[+=-][rwxXst]{0,6}){0,4}[+=][rxXst]{0,6}w"
        ),
        at_least=2,
        reason="Everybody may write there afterwards.",
        alternative="Give the right to the owner or the group only.",
        match=(
            "chmod 777 upload",
            "chmod -R 777 public/",
            "chmod 0777 run",
            "chmod a+rwx shared",
            "chmod -R o+w data",
            "chmod 666 config.ini",
            "chmod ugo=rwx bin/tool",
        ),
        spare=("chmod 644 README.md", "chmod +x scripts/build.sh", "chmod go-w shared.txt", "chmod 755 777"),
    ),
    _rule(
        id="chmod.setuid",
        programs="chmod gchmod",
        first="^0{0,4}[2467][0-7]{3}$|(?:^|,)[ugoa]{0,8}(?:[+=-][rwxXt]{0,6}){0,4}[+=][rwxXt]{0,6}s",
        at_least=2,
        reason="The program runs with its owner's rights afterwards.",
        match=("chmod u+s ./helper", "sudo chmod 4755 /usr/local/bin/helper", "chmod g+s dir"),
        spare=("chmod 0755 x", "chmod 755 x"),
    ),
    _rule(
        id="owner.recursive",
        programs="chown chgrp gchown chcon chattr setfacl",
        options="-R --recursive",
        reason="It changes the owner or the access list of everything below.",
        match=(
            "sudo chown -R www-data:www-data /var/www",
            "chown --recursive agent .",
            "setfacl -R -m u:nobody:rwx .",
        ),
        spare=("chown agent x", "chown --help", "getfacl -R data/"),
    ),
    _rule(
        id="acl.world",
        programs="setfacl",
        options="-m --modify",
        value="(?:^|,)(?:d:|default:)?o(?:ther)?::?[rx-]*w",
        reason="Everybody may write there afterwards.",
        match=("setfacl -m o::rwx f",),
        spare=("setfacl -m u:bob:r f",),
    ),
    _rule(
        id="rights.setcap",
        programs="setcap",
        without="-v",
        reason="It gives a program rights of the system.",
        match=("sudo setcap cap_setuid+ep /usr/bin/python3.12",),
        spare=("getcap /usr/bin/ping",),
    ),
    _rule(
        id="rights.chattr",
        programs="chattr",
        at_least=1,
        reason="It changes what may be done with a file.",
        match=("chattr +i f",),
        spare=("lsattr f",),
    ),
    _rule(
        id="rights.accounts",
        programs=(
            "useradd adduser userdel deluser usermod groupadd addgroup groupdel delgroup"
            " groupmod gpasswd newusers chpasswd chgpasswd chsh chfn vipw vigr pwconv pwunconv"
            " grpconv dscl sysadminctl newgrp smbpasswd htpasswd samba-tool faillock"
            " pam-auth-update authconfig authselect realm subuid"
        ),
        reason="It changes accounts, groups or passwords.",
        match=("sudo useradd -m -G sudo helper", "echo 'root:x' | sudo chpasswd", "sudo usermod -aG docker agent"),
        spare=("useradd --help | head -20", "id && groups", "getent passwd bob"),
    ),
    _rule(
        id="rights.passwd",
        programs="passwd chage",
        without="-S --status -l-list --list",
        reason="It changes a password.",
        match=("passwd root",),
        spare=("passwd -S root",),
    ),
    _rule(
        id="rights.visudo",
        programs="visudo",
        without="-c --check",
        reason="It changes who may become root.",
        match=("sudo visudo -f /etc/sudoers.d/agent",),
        spare=("visudo -c",),
    ),
    _rule(
        id="sudo.shell",
        programs="sudo doas run0",
        text=r"^(?:-\w*\s+)*-(?:[A-Za-z]{0,4}[is][A-Za-z]{0,4}|-login|-shell)(?:\s|$)(?!.*\s-[lvk]\b)",
        reason="It opens a root shell.",
        match=("sudo -i", "sudo -s"),
        spare=("sudo -l", "sudo -v", "sudo apt-get update"),
    ),
    _rule(
        id="sudo.program-shell",
        programs="sudo doas run0",
        text=r"^(?:-\w+\s+(?:[\w-]+\s+)?){0,6}(?:/\S*/)?(?:ba|z|da|k|fi)?sh(?:\s+-[il]+)*$",
        reason="It opens a root shell.",
        match=("sudo bash", "sudo -u root zsh -l"),
        spare=("sudo bash x.sh", "sudo ls"),
    ),
    _rule(
        id="sudo.su",
        programs="su",
        without="-c --command --session-command",
        reason="It opens a shell of another user.",
        match=("sudo su -", "su root"),
        spare=("su --help",),
    ),
    _rule(
        id="sudo.bare-shell",
        programs="pkexec machinectl",
        text=r"^(?:(?:/\S*/)?(?:ba|z|da|k)?sh|shell\b.*)$",
        reason="It opens a root shell.",
        match=("pkexec bash",),
        spare=("machinectl list",),
    ),
    _rule(
        id="sudo.stdin",
        programs="sudo",
        text=r"^(?:-\w+\s+)*-\w*S|^(?:\S+\s+)*--stdin\b",
        reason="It feeds a password to sudo.",
        match=("echo hunter2 | sudo -S apt-get install tree",),
        spare=("sudo -n true",),
    ),
    _rule(
        id="sudo.edit",
        programs="sudo",
        options="-e --edit",
        reason="It edits a system file.",
        match=("sudo -e /etc/hosts",),
        spare=("sudo -E ls",),
    ),
)

PLACES: tuple[PlaceRule, ...] = (
    _place(
        id="system.mode",
        kinds="mode",
        places="system",
        reason="It changes the rights of system files.",
        match=("chmod 600 /etc/hosts",),
        spare=("chmod 600 deploy_key",),
    ),
)
