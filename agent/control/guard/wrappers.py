"""Programs that start the program named by their arguments, as data."""

from __future__ import annotations

import enum
from typing import NamedTuple

from agent.control.guard import programs


class Kind(enum.Enum):
    """How a wrapper is told what to run."""

    ARGV = "the words after its own"
    TEXT = "its words joined, read by a shell"


class Wrapper(NamedTuple):
    """One wrapper.

    Attributes:
        spec: its own options.
        leading: operands before the command.
        kind: how the command is given.
        assigns: ``NAME=value`` words may stand before the command.
        text_options: options whose value is shell text.
        verbs: first operands that start a command (``run`` of ``uv run``); without them it wraps nothing.
        label: what sets the place apart for grants; empty when it changes nothing.
    """

    spec: programs.Spec
    leading: int = 0
    kind: Kind = Kind.ARGV
    assigns: bool = False
    text_options: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    label: str = ""


def _wrap(
    values: str = "",
    *,
    leading: int = 0,
    kind: Kind = Kind.ARGV,
    assigns: bool = False,
    text: str = "",
    verbs: str = "",
    label: str = "",
) -> Wrapper:
    return Wrapper(
        programs.spec(values, stops=True), leading, kind, assigns, tuple(text.split()), tuple(verbs.split()), label
    )


_RUN = _wrap(
    "directory project p python with env-file extra group package from index-url C cwd env n name",
    verbs="run exec x dlx",
)

#: By base name.
WRAPPERS: dict[str, Wrapper] = {
    "sudo": _wrap(
        "u g h p C r t T U D R user group host prompt close-from role type chdir chroot command-timeout",
        assigns=True,
        label="sudo",
    ),
    "doas": _wrap("u C", assigns=True, label="sudo"),
    "pkexec": _wrap("user u", label="sudo"),
    "run0": _wrap("u g D user group unit property description chdir setenv", label="sudo"),
    "gosu": _wrap(leading=1, label="sudo"),
    "su-exec": _wrap(leading=1, label="sudo"),
    "setpriv": _wrap("reuid regid groups inh-caps bounding-set ambient-caps securebits selinux-label", label="sudo"),
    "runuser": _wrap("u g G c s user group supp-group command shell", text="-c --command", label="sudo"),
    "sg": _wrap("c", leading=1, kind=Kind.TEXT, text="-c", label="sudo"),
    "env": _wrap("u C S unset chdir split-string", assigns=True),
    "nice": _wrap("n adjustment"),
    "ionice": _wrap("c n p P u class classdata pid"),
    "chrt": _wrap("T P D", leading=1),
    "taskset": _wrap(leading=1),
    "numactl": _wrap("i m N C p interleave membind cpunodebind physcpubind preferred"),
    "nohup": _wrap(),
    "setsid": _wrap(),
    "stdbuf": _wrap("i o e input output error"),
    "unbuffer": _wrap(),
    "timeout": _wrap("k s kill-after signal", leading=1),
    "gtimeout": _wrap("k s kill-after signal", leading=1),
    "time": _wrap("f o format output"),
    "command": _wrap(),
    "builtin": _wrap(),
    "exec": _wrap("a"),
    "coproc": _wrap(),
    "chronic": _wrap(),
    "ltrace": _wrap("e o p s n l u a"),
    "strace": _wrap("e o p s E u P I O S a b X trace output"),
    "valgrind": _wrap(),
    "perf": _wrap("e o F C p g", verbs="stat record trace"),
    "catchsegv": _wrap(),
    "firejail": _wrap(),
    "bwrap": _wrap(),
    "fakeroot": _wrap("s i l"),
    "proot": _wrap("r b w q k"),
    "unshare": _wrap("S G R w setuid setgid root wd map-user map-group propagation"),
    "nsenter": _wrap("t S G target setuid setgid root wd", label="nsenter"),
    "chroot": _wrap("userspec groups", leading=1, label="chroot"),
    "prlimit": _wrap("p o pid output"),
    "cpulimit": _wrap("l p e c limit pid exe cpu"),
    "cgexec": _wrap("g"),
    "systemd-inhibit": _wrap("what who why mode"),
    "systemd-cat": _wrap("t p identifier priority"),
    "systemd-run": _wrap(
        "u p M H t E d unit property machine host uid gid nice working-directory setenv description slice on-active "
        "on-boot on-calendar on-unit-active timer-property"
    ),
    "dbus-run-session": _wrap("config-file dbus-daemon"),
    "xvfb-run": _wrap("n s e f w p server-num server-args error-file auth-file wait xauth-protocol"),
    "faketime": _wrap("f", leading=1),
    "torsocks": _wrap(),
    "torify": _wrap(),
    "proxychains": _wrap("f"),
    "proxychains4": _wrap("f"),
    "tsocks": _wrap(),
    "rlwrap": _wrap("f H s b a C c D p S i"),
    "ccache": _wrap(),
    "caffeinate": _wrap("t w"),
    "arch": _wrap(),
    "entr": _wrap(),
    "watchexec": _wrap("w e f i d exts filter ignore watch delay-run signal shell"),
    "reflex": _wrap("r g R G"),
    "doppler": _wrap("p c t project config token", verbs="run"),
    "op": _wrap("env-file account", verbs="run"),
    "dotenv": _wrap("f e c"),
    "dotenvx": _wrap("f", verbs="run"),
    "envchain": _wrap(leading=1),
    "aws-vault": _wrap("d duration", verbs="exec"),
    "chamber": _wrap(verbs="exec"),
    "direnv": _wrap(verbs="exec"),
    "mise": _wrap(verbs="exec x"),
    "asdf": _wrap(verbs="exec"),
    "rbenv": _wrap(verbs="exec"),
    "pyenv": _wrap(verbs="exec"),
    "nodenv": _wrap(verbs="exec"),
    "rustup": _wrap(verbs="run"),
    "uv": _RUN,
    "uvx": _wrap("from with python p index-url"),
    "pipx": _wrap("spec python pip-args", verbs="run"),
    "poetry": _RUN,
    "pipenv": _RUN,
    "pdm": _RUN,
    "rye": _RUN,
    "hatch": _wrap("e env", verbs="run"),
    "conda": _wrap("n p name prefix cwd", verbs="run"),
    "mamba": _wrap("n p name prefix cwd", verbs="run"),
    "micromamba": _wrap("n p name prefix cwd", verbs="run"),
    "pixi": _wrap("e environment manifest-path", verbs="run exec"),
    "bundle": _wrap(verbs="exec"),
    "npx": _wrap("p package c call w workspace", text="-c --call"),
    "bunx": _wrap("p package"),
    "pnpx": _wrap("package"),
    "pnpm": _wrap("C dir filter F package", verbs="exec dlx"),
    "yarn": _wrap("cwd p package", verbs="exec dlx"),
    "npm": _wrap("prefix w workspace p package c call", verbs="exec x", text="-c --call"),
    "composer": _wrap("d working-dir", verbs="exec"),
    "mix": _wrap(verbs="cmd"),
    "nix": _wrap(verbs=""),
    "guix": _wrap(verbs=""),
    "nix-shell": _wrap("p I A run command packages attr", text="--run --command"),
    "vagrant": _wrap("c command", verbs="", text="-c --command"),
    "sshpass": _wrap("p f d P"),
    "autossh": _wrap("M"),
    "start-stop-daemon": _wrap(
        "x p n u g c d N P r k s R exec pidfile name user group chuid chdir nicelevel retry signal"
    ),
    "daemonize": _wrap("a e o p l u c E"),
    "dumb-init": _wrap("r rewrite"),
    "tini": _wrap("e p"),
    "s6-setuidgid": _wrap(leading=1),
    "chpst": _wrap("u U e / C n m d o p f c r t"),
    "setarch": _wrap(leading=1),
    "linux32": _wrap(),
    "linux64": _wrap(),
    "eatmydata": _wrap(),
    "pty": _wrap(),
    "watch": _wrap("n d q interval equexit", kind=Kind.TEXT),
    "script": _wrap("c I O B T t E command log-in log-out log-io log-timing echo", text="-c --command", leading=99),
    "scriptreplay": _wrap(verbs=""),
    "hyperfine": _wrap(
        "w m M r p c s S n N L P D warmup min-runs max-runs runs prepare cleanup setup shell export-json "
        "export-markdown export-csv command-name parameter-list parameter-scan",
        text="-p -c -s --prepare --cleanup --setup",
        leading=99,
    ),
    "concurrently": _wrap("n c k s names prefix-colors success", leading=99),
    "nodemon": _wrap("x e w i exec ext watch ignore delay", text="-x --exec", leading=99),
    "entr-r": _wrap(),
    "busybox": _wrap(),
    "toybox": _wrap(),
}
#: Wrappers whose every operand is shell text.
TEXT_OPERANDS = frozenset(("hyperfine", "concurrently"))
SHELLS = frozenset(
    (
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "ash",
        "mksh",
        "rbash",
        "fish",
        "yash",
        "posh",
        "tcsh",
        "csh",
        "ksh93",
        "oksh",
        "xonsh",
        "bash5",
        "elvish",
        "nu",
    )
)
CONTAINERS = frozenset(
    (
        "docker",
        "podman",
        "nerdctl",
        "kubectl",
        "oc",
        "lxc",
        "incus",
        "docker-compose",
        "podman-compose",
        "ctr",
        "crictl",
    )
)
