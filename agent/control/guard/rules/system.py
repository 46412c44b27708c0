"""What belongs to the system (A9)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import PlaceRule, Rule

_rule_system_write = functools.partial(Rule, cls="A9", category="system-write")
_place_system_write = functools.partial(PlaceRule, cls="A9", category="system-write")
_place_self_protect = functools.partial(PlaceRule, cls="A9", category="self-protect")

RULES: tuple[Rule, ...] = (
    _rule_system_write(
        id="sysctl.write",
        programs="sysctl",
        text=r"(?:^|\s)(?:-w|--write|-p\S*|--load\S*|--system|-f)(?:\s|$)|(?:^|\s)[\w./-]+\s*=",
        reason="It changes a kernel setting.",
        match=("sudo sysctl -w kernel.randomize_va_space=0", "sysctl vm.swappiness=10"),
        spare=("sysctl -a", "sysctl vm.swappiness"),
    ),
    _rule_system_write(
        id="kernel.modules",
        programs="modprobe insmod rmmod depmod dkms kmod kextload kextunload",
        without="-n --show-depends -l --dry-run --show -c --showconfig",
        text="^(?!list|status).",
        reason="It loads or unloads a driver.",
        match=("sudo modprobe -r e1000e", "sudo insmod ./rootkit.ko"),
        spare=("lsmod", "modprobe -n e1000e", "dkms status"),
    ),
    _rule_system_write(
        id="boot.change",
        programs=(
            "update-grub grub-mkconfig grub2-mkconfig grub-install grub2-install"
            " grub-set-default grub-reboot grub-editenv grubby efibootmgr update-initramfs"
            " dracut mkinitcpio mkinitramfs kernel-install bootctl lilo bcdedit nvram bless"
            " installkernel flashrom fwupdmgr"
        ),
        without="-v --verbose",
        text=r"^(?!.*(?:\blist\b|\bstatus\b|\bget-|--info|--default-kernel|^-v$))(?:.*)$",
        reason="It changes how the machine starts.",
        match=("sudo update-grub",),
        spare=("efibootmgr -v", "bootctl status", "fwupdmgr get-devices"),
    ),
    _rule_system_write(
        id="host.name",
        programs="hostnamectl",
        verbs=("set-hostname", "hostname", "set-*", "chassis", "deployment", "location", "icon-name"),
        at_least=2,
        reason="It renames the host.",
        match=("sudo hostnamectl set-hostname web-2",),
        spare=("hostnamectl", "hostnamectl status"),
    ),
    _rule_system_write(
        id="host.name-old",
        programs="hostname domainname nisdomainname scutil",
        operand="^[^-]",
        without="-f -i -I -d -s -A --fqdn --get",
        reason="It renames the host.",
        match=("sudo hostname web-2",),
        spare=("hostname", "hostname -I"),
    ),
    _rule_system_write(
        id="system.clock",
        programs="date",
        options="-s --set",
        reason="It sets the clock.",
        match=("sudo date -s '2020-01-01'",),
        spare=("date -u +%FT%TZ", "date +%Y-%m-%d"),
    ),
    _rule_system_write(
        id="system.clock-positional",
        programs="date",
        operand=r"^\d{8,12}(?:\.\d\d)?$",
        without="-d --date",
        reason="It sets the clock.",
        match=("date 010112002020",),
        spare=("date -d 20200101",),
    ),
    _rule_system_write(
        id="system.timedatectl",
        programs="timedatectl localectl",
        verbs=("set-*",),
        reason="It sets the clock or the language of the system.",
        match=("timedatectl set-time 12:00",),
        spare=("timedatectl", "timedatectl status"),
    ),
    _rule_system_write(
        id="system.hwclock",
        programs="hwclock ntpdate chronyc ntpd rdate adjtimex systemsetup",
        text=(
            r"(?:^|\s)(?:-w|-s|--systohc|--hctosys|--set|-a|--adjust|makestep|settime|-set\w+|-gq"
            r"|-q|\w[\w.-]+\.\w+)(?:\s|$)"
        ),
        reason="It sets the clock.",
        match=("hwclock -w",),
        spare=("hwclock -r", "chronyc tracking"),
    ),
    _rule_system_write(
        id="security.switch",
        programs=(
            "setenforce setsebool semanage aa-disable aa-complain aa-teardown apparmor_parser"
            " csrutil spctl nvram tpm2_clear mokutil getenforce-set semodule"
        ),
        text=r"^(?!.*(?:\bstatus\b|\blist\b|(?:^|\s)-l(?:\s|$)|--list|--sb-state)).+|^$",
        reason="It changes a security switch of the system.",
        match=("setenforce 0",),
        spare=("getenforce", "csrutil status", "semanage boolean -l"),
    ),
    _rule_system_write(
        id="system.alternatives",
        programs="update-alternatives alternatives",
        options="--set --install --remove --remove-all --auto --config --set-selections",
        reason="It changes which program the system uses.",
        match=("sudo update-alternatives --set editor /tmp/ed",),
        spare=("update-alternatives --list editor", "update-alternatives --display editor"),
    ),
    _rule_system_write(
        id="package.file",
        programs="dpkg",
        options=(
            "-i --install --unpack --configure -r --remove -P --purge --force-all"
            " --add-architecture --set-selections --clear-selections"
        ),
        reason="A package's scripts run as root.",
        match=("sudo dpkg -i ./package.deb",),
        spare=("dpkg -l", "dpkg -L bash"),
    ),
    _rule_system_write(
        id="tar.root",
        programs="tar gtar bsdtar",
        text=r"(?:^|\s)-C\s*/(?:\s|$)|-\w*P\w*\s+.*-x|-x\w*P|--absolute-names",
        reason="It unpacks over the system.",
        match=("sudo tar xf rootfs.tar -C /",),
        spare=("tar xf a.tar -C vendor",),
    ),
    _rule_system_write(
        id="macos.defaults",
        programs="defaults",
        verbs=("write", "delete", "import"),
        reason="It changes settings of the system.",
        match=("defaults write com.apple.dock x 1",),
        spare=("defaults read com.apple.dock",),
    ),
    _rule_system_write(
        id="windows.registry",
        programs="reg regedit set-itemproperty set-executionpolicy wmic schtasks netsh bcdedit",
        text=r"^(?!.*(?:\bquery\b|\bshow\b|/query|\bget\b)).+",
        reason="It changes settings of the system.",
        match=(r"reg add HKLM\x /v y", "Set-ExecutionPolicy Bypass"),
        spare=("reg query HKLM", "netsh interface show interface"),
    ),
)

PLACES: tuple[PlaceRule, ...] = (
    _place_system_write(
        id="system.write",
        kinds="write move delete",
        places="system",
        spares="docker podman",
        reason="It changes files of the system.",
        match=(
            "echo x | sudo tee -a /etc/hosts",
            "sudo cp nginx.conf /etc/nginx/nginx.conf",
            "cd /etc && echo x > issue",
            "sudo sed -i 's/a/b/' /etc/ssh/sshd_config",
        ),
        spare=(
            "cat /etc/os-release",
            "cp /etc/hosts ./hosts.example",
            "sed -i 's#/etc/app#/opt/app#' config.yml",
            'echo "see > /etc/passwd"',
        ),
    ),
    _place_self_protect(
        id="gateway.write",
        kinds="write delete move mode",
        places="gateway",
        reason="It changes files of the gateway.",
        match=("cp settings.yaml ~/.gateway/config.yaml", "sed -i 's/a/b/' ~/.gateway/config.yaml"),
        spare=("tail -n 50 ~/.gateway/audit.log",),
    ),
)
