"""Packages (A16)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import Rule

_rule = functools.partial(Rule, cls="A16", category="packages")

RULES: tuple[Rule, ...] = (
    _rule(
        id="apt.remove",
        programs="apt apt-get aptitude",
        verbs=("remove", "purge", "autoremove", "autopurge", "dist-upgrade", "full-upgrade", "build-dep-x"),
        reason="It removes packages of the system.",
        match=("sudo apt-get remove --purge python3", "apt purge -y nginx", "sudo apt-get autoremove -y"),
        spare=(
            "apt list --installed",
            "apt-get -s remove nginx",
            "apt-get install -y jq",
            "apt-get --simulate dist-upgrade",
        ),
    ),
    _rule(
        id="dnf.remove",
        programs="dnf yum microdnf zypper rpm apk opkg emerge xbps-remove pkg port swupd eopkg tdnf",
        text=(
            r"(?:^|\s)(?:remove|erase|autoremove|rm|purge|del|uninstall|deinstall|delete"
            "|downgrade|distro-sync|swap|-e|--erase|-C|--unmerge|--depclean|history undo"
            r"|system-upgrade|groupremove)(?:\s|$)"
        ),
        reason="It removes packages of the system.",
        match=("sudo dnf remove kernel-core", "rpm -e bash", "apk del curl"),
        spare=("dnf remove --help", "rpm -qa", "dnf list installed"),
    ),
    _rule(
        id="rpm.install",
        programs="rpm",
        text=r"^-[iUF]\w*\s|--(?:install|upgrade|force|nodeps|import)",
        reason="A package's scripts run as root.",
        match=("rpm -ivh x.rpm",),
        spare=("rpm -qi bash",),
    ),
    _rule(
        id="pacman.remove",
        programs="pacman yay paru",
        text=r"(?:^|\s)(?:-R\w*|--remove|-U\w*|--upgrade)(?:\s|$)",
        reason="It removes or replaces packages of the system.",
        match=("sudo pacman -Rns systemd",),
        spare=("pacman -Qs vim", "pacman -Ss vim"),
    ),
    _rule(
        id="brew.uninstall",
        programs="brew snap flatpak choco winget scoop nix-env mas",
        text=(
            r"(?:^|\s)(?:uninstall|remove|rm|untap|tap|purge|-e|--uninstall|autoremove|revert"
            r"|disable|remote-add|remote-delete|source add|sources add|bucket add)(?:\s+\S|$)"
        ),
        reason="It removes packages or trusts a new source.",
        match=("brew uninstall --force openssl", "snap remove firefox"),
        spare=("brew list", "snap list"),
    ),
    _rule(
        id="apt.local",
        programs="apt apt-get dnf yum zypper apk pacman",
        operand=r"^(?:\.{0,2}/|~|https?://).*\.(?:deb|rpm|apk|pkg\.tar\.\w+)$",
        reason="A loose package's scripts run as root.",
        match=("sudo apt install ./x.deb", "dnf install https://x.example/a.rpm"),
        spare=("apt install jq",),
    ),
    _rule(
        id="apt.unsafe",
        programs="apt apt-get dnf yum zypper apk",
        text=(
            "--(?:allow-unauthenticated|allow-untrusted|nogpgcheck|no-gpg-checks|force-yes"
            "|allow-downgrades|allow-remove-essential|allow-change-held)|trusted=yes"
        ),
        reason="It skips the check of signatures.",
        match=("apt-get install --allow-unauthenticated x",),
        spare=("apt-get install x",),
    ),
    _rule(
        id="source.add",
        programs=(
            "add-apt-repository apt-add-repository apt-key yum-config-manager dnf-config-manager rpmkeys zypper-addrepo"
        ),
        text=r"^(?!.*(?:\blist\b|\bfinger|--list)).+",
        reason="It trusts a new source of packages.",
        match=("sudo add-apt-repository ppa:someone/ppa", "curl https://x.example/key.asc | sudo apt-key add -"),
        spare=("apt-key list",),
    ),
    _rule(
        id="source.add-dnf",
        programs="dnf yum zypper",
        verbs=("config-manager", "addrepo", "ar", "copr enable", "repo add"),
        reason="It trusts a new source of packages.",
        match=("dnf copr enable x/y",),
        spare=("dnf repolist",),
    ),
    _rule(
        id="npm.publish",
        programs="npm pnpm yarn lerna vsce ovsx bun jsr",
        verbs=(
            "publish",
            "unpublish",
            "deprecate",
            "dist-tag add",
            "dist-tag rm",
            "owner add",
            "owner rm",
            "access *",
            "adduser",
            "login",
            "logout",
            "token create",
            "token revoke",
            "team *",
            "org *",
            "npm publish",
            "stage",
        ),
        reason="It publishes; that cannot be taken back.",
        match=("npm publish --access public",),
        spare=("npm publish --dry-run", "npm run publish-docs"),
    ),
    _rule(
        id="twine.upload",
        programs="twine",
        verbs=("upload", "register"),
        reason="It publishes; that cannot be taken back.",
        match=("twine upload dist/*",),
        spare=("twine check dist/*",),
    ),
    _rule(
        id="publish.other",
        programs=(
            "cargo gem poetry uv flit hatch pdm maturin mvn gradle gradlew dotnet nuget docker"
            " podman helm oras skopeo goreleaser luarocks hex mix sbt clojars conda anaconda rye"
            " pod composer semantic-release release-it np changeset"
        ),
        without="--dry-run -n --help --snapshot",
        text=(
            r"^(?:-\S+\s+)*(?:publish|yank|push|upload|deploy|release|owner|hex\.publish"
            r"|nuget\s+push|trunk\s+push|publishToMaven\S*|publishSigned|login|logout"
            r"|image\s+push|manifest\s+push|compose\s+push|copy)(?:\s|$)"
        ),
        reason="It publishes; that cannot be taken back.",
        match=("cargo publish", "gem push x.gem", "docker push app:prod"),
        spare=("cargo publish --dry-run", "cargo build --release", "docker build ."),
    ),
    _rule(
        id="pip.root",
        programs="pip pip3",
        options="--break-system-packages",
        reason="It changes the language packages of the system.",
        match=("pip install --break-system-packages x",),
        spare=("pip install -r requirements.txt",),
    ),
    _rule(
        id="sudo.pip",
        programs="sudo doas",
        text=(
            r"(?:^|\s)(?:pip3?|npm|gem|cpan|cpanm|yarn|pnpm|python3?\s+-m\s+pip)\s+(?:\S+\s+"
            r")*(?:install|i|add|uninstall|remove)(?:\s|$)"
        ),
        reason="Language packages would run their scripts as root.",
        match=("sudo pip install x", "sudo npm install -g x"),
        spare=("sudo apt-get install -y jq", "sudo npm ls"),
    ),
    _rule(
        id="package.purge",
        programs="apt-mark dpkg-reconfigure dpkg-divert dpkg-statoverride debconf-set-selections do-release-upgrade",
        text="^(?!show|--list).*",
        reason="It changes packages of the system.",
        match=("apt-mark unhold x",),
        spare=("apt-mark showmanual",),
    ),
)
