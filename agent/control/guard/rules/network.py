"""Firewall, interfaces and tunnels (A10)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import Rule

_rule = functools.partial(Rule, cls="A10", category="network")

RULES: tuple[Rule, ...] = (
    _rule(
        id="firewall.iptables",
        programs="iptables ip6tables arptables ebtables iptables-legacy iptables-nft",
        text=r"^(?!.*(?:^|\s)(?:-[nvtw]*[LS]\w*|--list\S*|--list-rules|-C|--check|-V|--version|-h)(?:\s|$)).+",
        reason="It changes the firewall.",
        match=("sudo iptables -F", "iptables -P INPUT DROP"),
        spare=("sudo iptables -L -n -v", "iptables -S", "iptables --version"),
    ),
    _rule(
        id="firewall.restore",
        programs="iptables-restore ip6tables-restore nft-restore ipset pfctl",
        text=r"^(?!.*(?:\blist\b|-s\s*\w+|^save)).*",
        reason="It changes the firewall.",
        match=("iptables-restore < r", "pfctl -d"),
        spare=("ipset list", "pfctl -s rules"),
    ),
    _rule(
        id="firewall.ufw",
        programs="ufw",
        verbs=(
            "enable",
            "disable",
            "reset",
            "reload",
            "allow",
            "deny",
            "reject",
            "limit",
            "delete",
            "insert",
            "default",
            "route",
            "logging",
            "prepend",
        ),
        reason="It changes the firewall.",
        match=("sudo ufw disable",),
        spare=("sudo ufw status verbose",),
    ),
    _rule(
        id="firewall.nft",
        programs="nft",
        text=r"(?:^|\s)(?:flush|add|delete|insert|create|replace|destroy|reset|rename|-f|--file)(?:\s|$)",
        reason="It changes the firewall.",
        match=("sudo nft flush ruleset",),
        spare=("nft list ruleset",),
    ),
    _rule(
        id="firewall.firewalld",
        programs="firewall-cmd",
        text=(
            "--(?:add|remove|set|change|new|delete|load|panic-on|panic-off|reload"
            r"|complete-reload|runtime-to-permanent|direct)\S*"
        ),
        reason="It changes the firewall.",
        match=("sudo firewall-cmd --add-port=22/tcp --permanent",),
        spare=("firewall-cmd --list-all",),
    ),
    _rule(
        id="ip.change",
        programs="ip bridge",
        text=r"(?:^|\s)(?:set|add|del|delete|change|replace|append|flush|up|down|exec)(?:\s|$)(?<!dev up)",
        reason="It changes interfaces or routes.",
        match=("sudo ip link set eth0 down", "sudo ip route del default"),
        spare=("ip addr show", "ip route", "ip -br link"),
    ),
    _rule(
        id="ifconfig.change",
        programs="ifconfig iwconfig ethtool wpa_cli brctl vconfig",
        without="-i -k -S",
        at_least=2,
        reason="It changes an interface.",
        match=("sudo ifconfig wlan0 down",),
        spare=("ifconfig", "ifconfig eth0", "ethtool -i eth0"),
    ),
    _rule(
        id="network.ifupdown",
        programs="ifup ifdown ifreload dhclient dhcpcd route-del wg-quick openvpn tailscale-up vpnc networksetup",
        text="^(?!.*(?:-get|-list|--version)).+",
        reason="It changes an interface.",
        match=("ifdown eth0", "wg-quick up wg0"),
        spare=("networksetup -listallhardwareports",),
    ),
    _rule(
        id="route.change",
        programs="route arp ndp",
        text=r"(?:^|\s)(?:add|del|delete|flush|change|-d|-s)(?:\s|$)",
        reason="It changes routes.",
        match=("route del default",),
        spare=("route -n", "arp -a"),
    ),
    _rule(
        id="nmcli.change",
        programs="nmcli",
        verbs=(
            "networking off",
            "networking on",
            "n off",
            "radio *",
            "r *",
            "connection up",
            "connection down",
            "connection delete",
            "connection modify",
            "connection add",
            "connection reload",
            "con up",
            "con down",
            "con delete",
            "con mod*",
            "con add",
            "c up",
            "c down",
            "c delete",
            "c mod*",
            "device disconnect",
            "device connect",
            "device wifi",
            "device set",
            "device delete",
            "device modify",
            "dev disconnect",
            "dev connect",
            "d disconnect",
            "general hostname",
            "general logging",
        ),
        at_least=2,
        reason="It changes the network.",
        match=("nmcli networking off",),
        spare=("nmcli device status", "nmcli connection show"),
    ),
    _rule(
        id="network.resolver",
        programs="resolvectl systemd-resolve resolvconf networkctl",
        text=(
            r"^(?:.*\s)?(?:dns|domain|revert|flush-caches|reset-server-features|llmnr|mdns|-a|-d"
            r"|up|down|delete|reload|reconfigure|--set-dns\S*|--flush-caches)\b\s*\S*"
        ),
        reason="It changes how names are looked up.",
        match=("resolvectl dns eth0 1.1.1.1",),
        spare=("resolvectl status", "resolvectl query example.com"),
    ),
    _rule(
        id="tunnel.reverse",
        programs="ssh autossh",
        options="-R",
        reason="It opens a way into this machine from outside.",
        match=("ssh -R 9000:localhost:22 relay.example.com -N",),
        spare=("ssh -L 5432:localhost:5432 db.example.com -N -f",),
    ),
    _rule(
        id="tunnel.public",
        programs=(
            "ngrok localtunnel lt cloudflared bore frpc frps chisel gost inlets localxpose zrok"
            " pagekite serveo tunnelmole tunnelto rathole"
        ),
        text=r"^(?!.*\b(?:version|help|list|--version)\b).+",
        reason="It shows a port of this machine to the internet.",
        match=("ngrok tcp 22",),
        spare=("ngrok version",),
    ),
    _rule(
        id="tunnel.tailscale",
        programs="tailscale",
        verbs=("up", "down", "funnel", "serve", "logout", "login", "set", "switch", "ssh"),
        reason="It changes who can reach this machine.",
        match=("tailscale funnel 3000",),
        spare=("tailscale status",),
    ),
    _rule(
        id="network.tc",
        programs="tc",
        text=r"(?:^|\s)(?:add|del|change|replace)(?:\s|$)",
        reason="It changes how packets are sent.",
        match=("tc qdisc add dev eth0 root netem loss 50%",),
        spare=("tc qdisc show",),
    ),
)
