"""Options that make a program run another one (A18)."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from agent.control.guard.expressions import Expression
from agent.control.guard.rules.model import Rule

#: What an option or a variable may name without a question: filters, pagers, editors, ssh.
HARMLESS = (
    r"^\s*['\"]?(?:exec\s+)?(?:/(?:usr/)?(?:local/)?bin/)?(?:ssh|cat|less|more|most|bat|delta|gzip|pigz|bzip2"
    r"|pbzip2|xz|zstd|lz4|lzop|brotli|true|false|:"
    r"|vim?|nvim|nano|emacs|emacsclient|micro|ed|code|subl|hx|helix|firefox|chromium|xdg-open|open|w3m|diff|meld"
    r"|vimdiff|nvimdiff|kdiff3|opendiff)"
    r"(?=\s|['\"]?$)(?![^\n]*(?:[;&|`]|\$\(|ProxyCommand|LocalCommand|!))"
)
_NOT_HARMLESS = rf"^(?!{HARMLESS[1:]})."
_SSH_RUNS = (
    r"^\s*(?:ProxyCommand|LocalCommand|KnownHostsCommand|RemoteCommand|PKCS11Provider|SecurityKeyProvider"
    r"|ProxyUseFdpass|XAuthLocation)\b(?!\s*[= ]\s*none)"
)


class Payload(NamedTuple):
    """An option whose value holds shell text: group 1 of the expression."""

    name: str
    payload: Expression


def _whole(*names: str) -> tuple[Payload, ...]:
    return tuple(Payload(name, Expression(r"(.*)\Z", re.DOTALL)) for name in names)


_EDITOR = Expression(r":?!\s*(.+)", re.DOTALL)
#: Options that are looked into for what is refused.
PAYLOADS: dict[str, tuple[Payload, ...]] = {
    "tar": (
        Payload("--checkpoint-action", Expression(r"exec=(.+)", re.DOTALL)),
        *_whole(
            "--to-command",
            "-I",
            "--use-compress-program",
            "--info-script",
            "-F",
            "--new-volume-script",
            "--rsh-command",
        ),
    ),
    "rsync": _whole("-e", "--rsh", "--rsync-path"),
    "ssh": (Payload("-o", Expression(r"\s*(?:Proxy|Local)Command\s*[= ]\s*(.+)", re.DOTALL | re.IGNORECASE)),),
    "scp": (
        Payload("-o", Expression(r"\s*(?:Proxy|Local)Command\s*[= ]\s*(.+)", re.DOTALL | re.IGNORECASE)),
        *_whole("-S"),
    ),
    "vim": (Payload("-c", _EDITOR), Payload("--cmd", _EDITOR)),
    "man": _whole("-P", "--pager"),
    "split": _whole("--filter"),
    "sort": _whole("--compress-program"),
    "zip": _whole("-T", "--unzip-command"),
    "gdb": tuple(
        Payload(name, Expression(r"(?:shell|!)\s*(.+)", re.DOTALL)) for name in ("-ex", "--ex", "--eval-command")
    ),
    "git": tuple(
        Payload(name, Expression(r"(.+)", re.DOTALL))
        for name in ("-x", "--exec", "--extcmd", "--upload-pack", "--receive-pack", "-u", "-O")
    )[:3],
    "rg": _whole("--pre"),
    "make": (Payload("--eval", Expression(r"\$\(shell (.+)\)", re.DOTALL)),),
}
for _same in ("bsdtar", "gtar"):
    PAYLOADS[_same] = PAYLOADS["tar"]
for _same in ("vi", "nvim", "view"):
    PAYLOADS[_same] = PAYLOADS["vim"]


_rule = functools.partial(Rule, cls="A18", category="exec-flag")

RULES: tuple[Rule, ...] = (
    _rule(
        id="exec.tar-action",
        programs="tar bsdtar gtar",
        options="--checkpoint-action --to-command --info-script --new-volume-script -F --rsh-command --rmt-command",
        reason="tar would run a command.",
        match=(
            "tar cf /dev/null x --checkpoint=1 --checkpoint-action=exec=sh",
            "tar xf a.tar --to-command='sh -c id'",
        ),
        spare=("tar tf a.tar",),
    ),
    _rule(
        id="exec.tar-compressor",
        programs="tar bsdtar gtar",
        options="-I --use-compress-program",
        value=(
            r"^(?!\s*['\"]?(?:exec\s+)?(?:/(?:usr/)?(?:local/)?bin/)?(?:ssh|cat|less|more|most"
            "|bat|delta|gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzop|brotli|true|false|:|vim?|nvim"
            "|nano|emacs|emacsclient|micro|ed|code|subl|hx|helix|firefox|chromium|xdg-open|open"
            r"|w3m|diff|meld|vimdiff|nvimdiff|kdiff3|opendiff)(?=\s|['\"]?$)(?![^\n]*(?:[;&|`]"
            r"|\$\(|ProxyCommand|LocalCommand|!)))."
        ),
        reason="tar would run a command as its compressor.",
        match=("tar -I 'sh -c id' -xf a.tar",),
        spare=("tar -I zstd -xf a.tar",),
    ),
    _rule(
        id="exec.zip-test",
        programs="zip",
        text=r"(?:^|\s)(?:-TT|--unzip-command)(?:\s|=|$)",
        reason="zip would run a command.",
        match=("zip out.zip f -T -TT 'sh #'",),
        spare=("zip -r out.zip src -x '*.pyc'",),
    ),
    _rule(
        id="exec.sort-compressor",
        programs="sort",
        options="--compress-program",
        value=(
            r"^(?!\s*['\"]?(?:exec\s+)?(?:/(?:usr/)?(?:local/)?bin/)?(?:ssh|cat|less|more|most"
            "|bat|delta|gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzop|brotli|true|false|:|vim?|nvim"
            "|nano|emacs|emacsclient|micro|ed|code|subl|hx|helix|firefox|chromium|xdg-open|open"
            r"|w3m|diff|meld|vimdiff|nvimdiff|kdiff3|opendiff)(?=\s|['\"]?$)(?![^\n]*(?:[;&|`]"
            r"|\$\(|ProxyCommand|LocalCommand|!)))."
        ),
        reason="sort would run a program.",
        match=("sort --compress-program=./x.sh big.txt",),
        spare=("sort --compress-program=gzip big.txt",),
    ),
    _rule(
        id="exec.rg-pre",
        programs="rg",
        options="--pre --hostname-bin",
        reason="ripgrep would run a program on every file.",
        match=("rg --pre ./x.sh pattern",),
        spare=("rg -n pre src",),
    ),
    _rule(
        id="exec.man-pager",
        programs="man",
        options="-P --pager -H",
        value=(
            r"^(?!\s*['\"]?(?:exec\s+)?(?:/(?:usr/)?(?:local/)?bin/)?(?:ssh|cat|less|more|most"
            "|bat|delta|gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzop|brotli|true|false|:|vim?|nvim"
            "|nano|emacs|emacsclient|micro|ed|code|subl|hx|helix|firefox|chromium|xdg-open|open"
            r"|w3m|diff|meld|vimdiff|nvimdiff|kdiff3|opendiff)(?=\s|['\"]?$)(?![^\n]*(?:[;&|`]"
            r"|\$\(|ProxyCommand|LocalCommand|!)))."
        ),
        reason="man would run a command as its pager.",
        match=("man -P 'sh -c id' ls",),
        spare=("man -P cat ls", "man -k checkpoint"),
    ),
    _rule(
        id="exec.editor-command",
        programs="vim vi nvim view ex",
        text=(
            r"(?:^|\s)(?:-c|--cmd|-S)?\s*\+?:?(?:silent\s+)?(?:!|py3?(?:thon)?\s|lua\s|ruby\s"
            r"|perl\s|call system|r\s*!|terminal)"
        ),
        reason="The editor would run a command.",
        match=("vim -c ':!git push -f' -c ':q'",),
        spare=("vim -c ':set nu' -c ':q' file", "vim +/DROP schema.sql"),
    ),
    _rule(
        id="exec.editor-script",
        programs="vim vi nvim ex",
        options="-S -u --luamod -l",
        value="^(?!NONE$|NORC$)",
        without="--clean",
        reason="The editor would run a script.",
        match=("vim -S x.vim f",),
        spare=("vim -u NONE f",),
    ),
    _rule(
        id="exec.emacs-eval",
        programs="emacs emacsclient",
        options="--eval -e --execute -l --load --script",
        reason="The editor would run a program.",
        match=("emacsclient --eval '(kill-emacs)'",),
        spare=("emacsclient f.txt",),
    ),
    _rule(
        id="exec.rsync-shell",
        programs="rsync",
        options="-e --rsh --rsync-path",
        value=(
            r"^(?!\s*['\"]?(?:exec\s+)?(?:/(?:usr/)?(?:local/)?bin/)?(?:ssh|cat|less|more|most"
            "|bat|delta|gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzop|brotli|true|false|:|vim?|nvim"
            "|nano|emacs|emacsclient|micro|ed|code|subl|hx|helix|firefox|chromium|xdg-open|open"
            r"|w3m|diff|meld|vimdiff|nvimdiff|kdiff3|opendiff)(?=\s|['\"]?$)(?![^\n]*(?:[;&|`]"
            r"|\$\(|ProxyCommand|LocalCommand|!)))."
        ),
        reason="rsync would run a command as its remote shell.",
        match=("rsync -e 'sh -c id' a b:c",),
        spare=("rsync -e 'ssh -p 22' h:a b",),
    ),
    _rule(
        id="exec.ssh-command",
        programs="ssh scp sftp mosh",
        options="-o",
        value=(
            r"^\s*(?:ProxyCommand|LocalCommand|KnownHostsCommand|RemoteCommand|PKCS11Provider"
            r"|SecurityKeyProvider|ProxyUseFdpass|XAuthLocation)\b(?!\s*[= ]\s*none)"
        ),
        reason="ssh would run a command here.",
        match=(
            "ssh -o ProxyCommand='sh -c id' host",
            "ssh -o PermitLocalCommand=yes -o LocalCommand='rm -rf out' host",
        ),
        spare=("ssh -o ConnectTimeout=5 web1 true",),
    ),
    _rule(
        id="exec.ssh-program",
        programs="scp sftp",
        options="-S -D",
        value=(
            r"^(?!\s*['\"]?(?:exec\s+)?(?:/(?:usr/)?(?:local/)?bin/)?(?:ssh|cat|less|more|most"
            "|bat|delta|gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzop|brotli|true|false|:|vim?|nvim"
            "|nano|emacs|emacsclient|micro|ed|code|subl|hx|helix|firefox|chromium|xdg-open|open"
            r"|w3m|diff|meld|vimdiff|nvimdiff|kdiff3|opendiff)(?=\s|['\"]?$)(?![^\n]*(?:[;&|`]"
            r"|\$\(|ProxyCommand|LocalCommand|!)))."
        ),
        reason="scp would run a program as its ssh.",
        match=("scp -S ./x.sh host:b .",),
        spare=("scp -S ssh host:b .",),
    ),
    _rule(
        id="exec.ssh-config",
        programs="ssh scp sftp",
        options="-F",
        value=r"^(?!/dev/null$|none$|~?/?.*\.ssh/config$)",
        reason="ssh would read settings that may run commands.",
        match=("ssh -F ./cfg host true",),
        spare=("ssh -F /dev/null host true",),
    ),
    _rule(
        id="exec.ssh-library",
        programs="ssh-keygen ssh-add ssh",
        options="-D -s -I -w",
        value=r"(?:^|/)[\w.-]+\.(?:so|dylib)",
        reason="It would load a library.",
        match=("ssh-keygen -D ./x.so",),
        spare=("ssh-keygen -lf k.pub",),
    ),
    _rule(
        id="exec.gdb-shell",
        programs="gdb lldb",
        text=(
            r"(?:^|\s)(?:-ex|--ex|--eval-command|-o|--one-line)[\s=]+['\"]?(?:shell|!|python|py"
            r"|source|call|print\s+\w*system|platform shell|script)"
        ),
        reason="The debugger would run a command or a program text.",
        match=("gdb -batch -ex 'shell rm -rf out'",),
        spare=("gdb -batch -ex bt ./core",),
    ),
    _rule(
        id="exec.gdb-script",
        programs="gdb lldb",
        options="-x --command -s --source -P",
        reason="The debugger would run a script.",
        match=("gdb -x x.gdb ./a",),
        spare=("gdb ./a core",),
    ),
    _rule(
        id="exec.git-difftool",
        programs="git",
        verbs=("difftool", "mergetool"),
        options="-x --extcmd",
        value=(
            r"^(?!\s*['\"]?(?:exec\s+)?(?:/(?:usr/)?(?:local/)?bin/)?(?:ssh|cat|less|more|most"
            "|bat|delta|gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzop|brotli|true|false|:|vim?|nvim"
            "|nano|emacs|emacsclient|micro|ed|code|subl|hx|helix|firefox|chromium|xdg-open|open"
            r"|w3m|diff|meld|vimdiff|nvimdiff|kdiff3|opendiff)(?=\s|['\"]?$)(?![^\n]*(?:[;&|`]"
            r"|\$\(|ProxyCommand|LocalCommand|!)))."
        ),
        reason="git would run a command.",
        match=("git difftool -y -x 'rm -f' HEAD~1",),
        spare=("git difftool -y HEAD~1",),
    ),
    _rule(
        id="exec.git-pack",
        programs="git",
        options="--upload-pack --receive-pack --exec -O --open-files-in-pager",
        value=".",
        text=r"--(?:upload-pack|receive-pack|open-files-in-pager)|(?:^|\s)-O\w|fetch-pack|archive.*--exec",
        reason="git would run a command.",
        match=("git clone --upload-pack='sh -c id' x y",),
        spare=("git grep -n O src",),
    ),
    _rule(
        id="exec.less-command",
        programs="less more most",
        text=r"(?:^|\s)\++['\"]?!",
        reason="The pager would run a command.",
        match=("less +'!id' file",),
        spare=("less +F app.log", "less +G build.log"),
    ),
    _rule(
        id="exec.openssl-engine",
        programs="openssl",
        text=r"(?:^|\s)(?:engine\b.*\.(?:so|dylib)|-(?:engine|provider-path)\s+\S*/)",
        reason="openssl would load a library.",
        match=("openssl engine -t -c ./x.so dynamic",),
        spare=("openssl rand -hex 16",),
    ),
    _rule(
        id="exec.nmap-script",
        programs="nmap",
        options="--script --script-args-file",
        value=r"[/.~]|\.nse",
        reason="nmap would run a script.",
        match=("nmap --script ./x.nse localhost",),
        spare=("nmap --script vuln localhost",),
    ),
    _rule(
        id="exec.split-filter",
        programs="split",
        options="--filter",
        value=(
            r"^(?!\s*['\"]?(?:exec\s+)?(?:/(?:usr/)?(?:local/)?bin/)?(?:ssh|cat|less|more|most"
            "|bat|delta|gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzop|brotli|true|false|:|vim?|nvim"
            "|nano|emacs|emacsclient|micro|ed|code|subl|hx|helix|firefox|chromium|xdg-open|open"
            r"|w3m|diff|meld|vimdiff|nvimdiff|kdiff3|opendiff)(?=\s|['\"]?$)(?![^\n]*(?:[;&|`]"
            r"|\$\(|ProxyCommand|LocalCommand|!)))."
        ),
        reason="split would run a command.",
        match=("split --filter='sh' big.txt",),
        spare=("split -l 1000 big.csv part_", "split --filter='gzip > $FILE.gz' big.txt"),
    ),
    _rule(
        id="exec.make-stdin",
        programs="make gmake",
        text=r"(?:^|\s)(?:-f\s*-|--file=-|--makefile=-|-f\s*/dev/stdin|--eval)(?:\s|=|$)",
        reason="make would run recipes that come from the command line.",
        match=(r"make -f - <<< $'all:\n\tid'",),
        spare=("make -f Makefile.ci test",),
    ),
    _rule(
        id="exec.make-shell",
        programs="make gmake",
        operand=r"^(?:SHELL|MAKEFLAGS|\.SHELLFLAGS)\s*=(?!/bin/(?:ba)?sh$)",
        reason="make would use another shell.",
        match=("make SHELL=./x all",),
        spare=("make SHELL=/bin/bash all",),
    ),
    _rule(
        id="exec.awk-system",
        programs="awk gawk mawk nawk",
        operand=r"^(?!\s*/[^/]*system[^/]*/\s*\{[^}|]*\}\s*(?:END\s*\{[^|]*\})?\s*$).*(?:system\s*\(|\||@load)",
        text=(
            r"\bsystem\s*\([^/)]|(?<![|/\\])\|\s*&?\s*(?:getline\b|\"(?!(?:sort|uniq|wc|head|tail"
            r"|cat|tr|column|less)\b)[^\"]|'[^'])|\"\s*\|\s*&?\s*getline|@load|\bcmd\s*\|"
        ),
        reason="The awk program runs a command.",
        match=("awk 'BEGIN { system(\"id\") }'", "awk '{ print $1 | \"sh\" }' cmds.txt"),
        spare=(
            r"awk '/system\(/ {n++} END {print n}' app.c",
            "awk -F'|' '{print $1}' f",
            "awk '{print $2 | \"sort\"}' f",
            'awk \'$1 == "a" || $2 == "b" {print}\' f',
        ),
    ),
    _rule(
        id="exec.awk-file",
        programs="awk gawk mawk",
        text=r"(?:^|\s)(?:-l|--load[= ]|-i|--include[= ])\s*\S*(?:/|\.so)",
        reason="awk would load a library.",
        match=("gawk -l ./x.so 'BEGIN{}'",),
        spare=("gawk -F: '{print}' f",),
    ),
    _rule(
        id="exec.sed-command",
        programs="sed gsed",
        text=(
            r"(?:^|[\s;{}\d$/'\"])e\s+\w|(?:^|\s)(?:-e\s*)?\S*s([/#|,@!])(?:(?!\1).)*\1(?:(?!\1)."
            r")*\1[gipmI0-9]*e[gipmI0-9]*(?=[\s;}'\"]|$)"
        ),
        reason="sed would run a command.",
        match=("sed -n '1e id' file", "sed 's/.*/id/e' file"),
        spare=("sed 's/e/E/g' words.txt", "sed -e 's/a/b/' -e 's/c/d/' in.txt", "sed -n '10,20p' app.py"),
    ),
    _rule(
        id="exec.expect",
        programs="expect",
        at_least=1,
        reason="It would run a program in another language.",
        match=("expect x.exp",),
        spare=("expect -v",),
    ),
    _rule(
        id="exec.sudoedit",
        programs="sudoedit",
        reason="It edits a system file.",
        match=("sudoedit /etc/hosts",),
        spare=("vim notes.txt",),
    ),
    _rule(
        id="exec.xterm",
        programs="xterm gnome-terminal konsole alacritty kitty",
        options="-e --command -x",
        reason="It would run a program in another terminal.",
        match=("xterm -e ./x",),
        spare=("xterm",),
    ),
    _rule(
        id="exec.tcpdump",
        programs="tcpdump",
        options="-z",
        reason="tcpdump would run a program.",
        match=("tcpdump -z ./x -w f",),
        spare=("tcpdump -i lo",),
    ),
    _rule(
        id="exec.npm-script-shell",
        programs="npm pnpm yarn",
        options="--script-shell",
        reason="npm would use another shell.",
        match=("npm run x --script-shell ./x",),
        spare=("npm run x",),
    ),
    _rule(
        id="exec.sql-shell",
        programs="mysql mariadb psql",
        text=r"\\!|(?:^|\s)system\s+\w|--pager=\S*sh\b",
        reason="The client would run a command.",
        match=(r"psql -c '\! id'",),
        spare=("psql -c 'SELECT 1'",),
    ),
    _rule(
        id="exec.git-ext",
        programs="git",
        operand="^(?:ext|fd)::",
        reason="git would run a command as its transport.",
        match=("git clone 'ext::sh -c id% >&2'",),
        spare=("git clone https://github.com/acme/lib",),
    ),
    _rule(
        id="exec.wget-askpass",
        programs="wget",
        options="--use-askpass",
        reason="wget would run a program.",
        match=("wget --use-askpass=./x https://x.example",),
        spare=("wget -q https://x.example",),
    ),
    _rule(
        id="exec.git-run-config",
        programs="git",
        options="-c --config --config-env",
        value=(
            r"^(?:core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy"
            r"|alternaterefscommand)|pager\.|sequence\.editor|alias\.[^=]*=!"
            r"|diff\.[^=]*(?:command|textconv|external)|difftool|mergetool|merge\.[^=]*driver"
            r"|filter\.|credential\.[^=]*helper|gpg\.[^=]*program|gpg\.program|ssh\.variant"
            r"|remote\.[^=]*(?:uploadpack|receivepack|vcs)|sendemail|browser|man\.|web\.browser"
            r"|protocol\.ext\.allow|uploadpack\.|include\.path|url\.)[^=]*=(?!\s*(?:cat|less|more"
            r"|true|false|ssh|delta|vim?|nano|)\s*$)"
        ),
        reason="This setting makes git run a command.",
        match=("git -c core.pager='sh -c id' log", "git -c core.sshCommand='nc x.example 1' fetch"),
        spare=("git -c user.name=x commit -m y", "git -c core.pager=cat log"),
    ),
    _rule(
        id="exec.curl-config",
        programs="curl",
        options="-K --config",
        reason="curl would read further options from a file.",
        match=("curl -K ./x",),
        spare=("curl -I https://x.example",),
    ),
)
