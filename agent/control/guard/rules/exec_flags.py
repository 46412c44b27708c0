"""Options and variables that make a program run another one (A18, A21)."""

from __future__ import annotations

import re
from typing import NamedTuple

from agent.control.guard.expressions import Expression
from agent.control.guard.rules.model import Rule, VariableRule

#: What an option or a variable may name without a question: filters, pagers, editors, ssh.
HARMLESS = (
    r"^\s*['\"]?(?:exec\s+)?(?:/(?:usr/)?(?:local/)?bin/)?(?:ssh|cat|less|more|most|bat|delta|gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzop|brotli|true|false|:"
    r"|vim?|nvim|nano|emacs|emacsclient|micro|ed|code|subl|hx|helix|firefox|chromium|xdg-open|open|w3m|diff|meld|vimdiff|nvimdiff|kdiff3|opendiff)"
    r"(?=\s|['\"]?$)(?![^\n]*(?:[;&|`]|\$\(|ProxyCommand|LocalCommand|!))"
)
_NOT_HARMLESS = rf"^(?!{HARMLESS[1:]})."
_SSH_RUNS = r"^\s*(?:ProxyCommand|LocalCommand|KnownHostsCommand|RemoteCommand|PKCS11Provider|SecurityKeyProvider|ProxyUseFdpass|XAuthLocation)\b(?!\s*[= ]\s*none)"


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
        *_whole("--to-command", "-I", "--use-compress-program", "--info-script", "-F", "--new-volume-script", "--rsh-command"),
    ),
    "rsync": _whole("-e", "--rsh", "--rsync-path"),
    "ssh": (Payload("-o", Expression(r"\s*(?:Proxy|Local)Command\s*[= ]\s*(.+)", re.DOTALL | re.IGNORECASE)),),
    "scp": (Payload("-o", Expression(r"\s*(?:Proxy|Local)Command\s*[= ]\s*(.+)", re.DOTALL | re.IGNORECASE)), *_whole("-S")),
    "vim": (Payload("-c", _EDITOR), Payload("--cmd", _EDITOR)),
    "man": _whole("-P", "--pager"),
    "split": _whole("--filter"),
    "sort": _whole("--compress-program"),
    "zip": _whole("-T", "--unzip-command"),
    "gdb": tuple(Payload(name, Expression(r"(?:shell|!)\s*(.+)", re.DOTALL)) for name in ("-ex", "--ex", "--eval-command")),
    "git": tuple(
        Payload(name, Expression(r"(.+)", re.DOTALL)) for name in ("-x", "--exec", "--extcmd", "--upload-pack", "--receive-pack", "-u", "-O")
    )[:3],
    "rg": _whole("--pre"),
    "make": (Payload("--eval", Expression(r"\$\(shell (.+)\)", re.DOTALL)),),
}
for _same in ("bsdtar", "gtar"):
    PAYLOADS[_same] = PAYLOADS["tar"]
for _same in ("vi", "nvim", "view"):
    PAYLOADS[_same] = PAYLOADS["vim"]


def _flag(id_: str, programs: str, reason: str, **given: object) -> Rule:
    return Rule(id=f"exec.{id_}", cls="A18", category="exec-flag", programs=programs, reason=reason, **given)  # type: ignore[arg-type]


RULES: tuple[Rule, ...] = (
    _flag("tar-action", "tar bsdtar gtar", "tar would run a command.", options="--checkpoint-action --to-command --info-script --new-volume-script -F --rsh-command --rmt-command",
          match=("tar cf /dev/null x --checkpoint=1 --checkpoint-action=exec=sh", "tar xf a.tar --to-command='sh -c id'"), spare=("tar tf a.tar",)),
    _flag("tar-compressor", "tar bsdtar gtar", "tar would run a command as its compressor.", options="-I --use-compress-program", value=_NOT_HARMLESS,
          match=("tar -I 'sh -c id' -xf a.tar",), spare=("tar -I zstd -xf a.tar",)),
    _flag("zip-test", "zip", "zip would run a command.", text=r"(?:^|\s)(?:-TT|--unzip-command)(?:\s|=|$)", match=("zip out.zip f -T -TT 'sh #'",), spare=("zip -r out.zip src -x '*.pyc'",)),
    _flag("sort-compressor", "sort", "sort would run a program.", options="--compress-program", value=_NOT_HARMLESS, match=("sort --compress-program=./x.sh big.txt",), spare=("sort --compress-program=gzip big.txt",)),
    _flag("rg-pre", "rg", "ripgrep would run a program on every file.", options="--pre --hostname-bin", match=("rg --pre ./x.sh pattern",), spare=("rg -n pre src",)),
    _flag("man-pager", "man", "man would run a command as its pager.", options="-P --pager -H", value=_NOT_HARMLESS, match=("man -P 'sh -c id' ls",), spare=("man -P cat ls", "man -k checkpoint")),
    _flag("editor-command", "vim vi nvim view ex", "The editor would run a command.", text=r"(?:^|\s)(?:-c|--cmd|-S)?\s*\+?:?(?:silent\s+)?(?:!|py3?(?:thon)?\s|lua\s|ruby\s|perl\s|call system|r\s*!|terminal)",
          match=("vim -c ':!git push -f' -c ':q'",), spare=("vim -c ':set nu' -c ':q' file", "vim +/DROP schema.sql")),
    _flag("editor-script", "vim vi nvim ex", "The editor would run a script.", options="-S -u --luamod -l", without="--clean", value=r"^(?!NONE$|NORC$)", match=("vim -S x.vim f",), spare=("vim -u NONE f",)),
    _flag("emacs-eval", "emacs emacsclient", "The editor would run a program.", options="--eval -e --execute -l --load --script", match=("emacsclient --eval '(kill-emacs)'",), spare=("emacsclient f.txt",)),
    _flag("rsync-shell", "rsync", "rsync would run a command as its remote shell.", options="-e --rsh --rsync-path", value=_NOT_HARMLESS, match=("rsync -e 'sh -c id' a b:c",), spare=("rsync -e 'ssh -p 22' h:a b",)),
    _flag("ssh-command", "ssh scp sftp mosh", "ssh would run a command here.", options="-o", value=_SSH_RUNS, match=("ssh -o ProxyCommand='sh -c id' host", "ssh -o PermitLocalCommand=yes -o LocalCommand='rm -rf out' host"), spare=("ssh -o ConnectTimeout=5 web1 true",)),
    _flag("ssh-program", "scp sftp", "scp would run a program as its ssh.", options="-S -D", value=_NOT_HARMLESS, match=("scp -S ./x.sh host:b .",), spare=("scp -S ssh host:b .",)),
    _flag("ssh-config", "ssh scp sftp", "ssh would read settings that may run commands.", options="-F", value=r"^(?!/dev/null$|none$|~?/?.*\.ssh/config$)", match=("ssh -F ./cfg host true",), spare=("ssh -F /dev/null host true",)),
    _flag("ssh-library", "ssh-keygen ssh-add ssh", "It would load a library.", options="-D -s -I -w", value=r"(?:^|/)[\w.-]+\.(?:so|dylib)", match=("ssh-keygen -D ./x.so",), spare=("ssh-keygen -lf k.pub",)),
    _flag("gdb-shell", "gdb lldb", "The debugger would run a command or a program text.", text=r"(?:^|\s)(?:-ex|--ex|--eval-command|-o|--one-line)[\s=]+['\"]?(?:shell|!|python|py|source|call|print\s+\w*system|platform shell|script)", match=("gdb -batch -ex 'shell rm -rf out'",), spare=("gdb -batch -ex bt ./core",)),
    _flag("gdb-script", "gdb lldb", "The debugger would run a script.", options="-x --command -s --source -P", match=("gdb -x x.gdb ./a",), spare=("gdb ./a core",)),
    _flag("git-difftool", "git", "git would run a command.", verbs=("difftool", "mergetool"), options="-x --extcmd", value=_NOT_HARMLESS, match=("git difftool -y -x 'rm -f' HEAD~1",), spare=("git difftool -y HEAD~1",)),
    _flag("git-pack", "git", "git would run a command.", options="--upload-pack --receive-pack --exec -O --open-files-in-pager", value=r".", text=r"--(?:upload-pack|receive-pack|open-files-in-pager)|(?:^|\s)-O\w|fetch-pack|archive.*--exec", match=("git clone --upload-pack='sh -c id' x y",), spare=("git grep -n O src",)),
    _flag("less-command", "less more most", "The pager would run a command.", text=r"(?:^|\s)\++['\"]?!", match=("less +'!id' file",), spare=("less +F app.log", "less +G build.log")),
    _flag("openssl-engine", "openssl", "openssl would load a library.", text=r"(?:^|\s)(?:engine\b.*\.(?:so|dylib)|-(?:engine|provider-path)\s+\S*/)", match=("openssl engine -t -c ./x.so dynamic",), spare=("openssl rand -hex 16",)),
    _flag("nmap-script", "nmap", "nmap would run a script.", options="--script --script-args-file", value=r"[/.~]|\.nse", match=("nmap --script ./x.nse localhost",), spare=("nmap --script vuln localhost",)),
    _flag("split-filter", "split", "split would run a command.", options="--filter", value=_NOT_HARMLESS, match=("split --filter='sh' big.txt",), spare=("split -l 1000 big.csv part_", "split --filter='gzip > $FILE.gz' big.txt")),
    _flag("make-stdin", "make gmake", "make would run recipes that come from the command line.", text=r"(?:^|\s)(?:-f\s*-|--file=-|--makefile=-|-f\s*/dev/stdin|--eval)(?:\s|=|$)", match=("make -f - <<< $'all:\\n\\tid'",), spare=("make -f Makefile.ci test",)),
    _flag("make-shell", "make gmake", "make would use another shell.", operand=r"^(?:SHELL|MAKEFLAGS|\.SHELLFLAGS)\s*=(?!/bin/(?:ba)?sh$)", match=("make SHELL=./x all",), spare=("make SHELL=/bin/bash all",)),
    _flag("awk-system", "awk gawk mawk nawk", "The awk program runs a command.", text=r"\bsystem\s*\([^/)]|(?<![|/\\])\|\s*&?\s*(?:getline\b|\"(?!(?:sort|uniq|wc|head|tail|cat|tr|column|less)\b)[^\"]|'[^'])|\"\s*\|\s*&?\s*getline|@load|\bcmd\s*\|", operand=r"^(?!\s*/[^/]*system[^/]*/\s*\{[^}|]*\}\s*(?:END\s*\{[^|]*\})?\s*$).*(?:system\s*\(|\||@load)",
          match=("awk 'BEGIN { system(\"id\") }'", "awk '{ print $1 | \"sh\" }' cmds.txt"), spare=("awk '/system\\(/ {n++} END {print n}' app.c", "awk -F'|' '{print $1}' f", "awk '{print $2 | \"sort\"}' f", "awk '$1 == \"a\" || $2 == \"b\" {print}' f")),
    _flag("awk-file", "awk gawk mawk", "awk would load a library.", text=r"(?:^|\s)(?:-l|--load[= ]|-i|--include[= ])\s*\S*(?:/|\.so)", match=("gawk -l ./x.so 'BEGIN{}'",), spare=("gawk -F: '{print}' f",)),
    _flag("sed-command", "sed gsed", "sed would run a command.", text=r"(?:^|[\s;{}\d$/'\"])e\s+\w|(?:^|\s)(?:-e\s*)?\S*s([/#|,@!])(?:(?!\1).)*\1(?:(?!\1).)*\1[gipmI0-9]*e[gipmI0-9]*(?=[\s;}'\"]|$)", match=("sed -n '1e id' file", "sed 's/.*/id/e' file"), spare=("sed 's/e/E/g' words.txt", "sed -e 's/a/b/' -e 's/c/d/' in.txt", "sed -n '10,20p' app.py")),
    _flag("expect", "expect", "It would run a program in another language.", at_least=1, match=("expect x.exp",), spare=("expect -v",)),
    _flag("env-split", "sudoedit", "It edits a system file.", match=("sudoedit /etc/hosts",), spare=("vim notes.txt",)),
    _flag("xterm", "xterm gnome-terminal konsole alacritty kitty", "It would run a program in another terminal.", options="-e --command -x", match=("xterm -e ./x",), spare=("xterm",)),
    _flag("tcpdump", "tcpdump", "tcpdump would run a program.", options="-z", match=("tcpdump -z ./x -w f",), spare=("tcpdump -i lo",)),
    _flag("npm-script-shell", "npm pnpm yarn", "npm would use another shell.", options="--script-shell", match=("npm run x --script-shell ./x",), spare=("npm run x",)),
    _flag("pip-build", "mysql mariadb psql", "The client would run a command.", text=r"\\!|(?:^|\s)system\s+\w|--pager=\S*sh\b", match=("psql -c '\\! id'",), spare=("psql -c 'SELECT 1'",)),
    _flag("git-ext", "git", "git would run a command as its transport.", operand=r"^(?:ext|fd)::", match=("git clone 'ext::sh -c id% >&2'",), spare=("git clone https://github.com/acme/lib",)),
    _flag("wget-askpass", "wget", "wget would run a program.", options="--use-askpass", match=("wget --use-askpass=./x https://x.example",), spare=("wget -q https://x.example",)),
    _flag("git-run-config", "git", "This setting makes git run a command.", options="-c --config --config-env",
          value=r"^(?:core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy|alternaterefscommand)|pager\.|sequence\.editor|alias\.[^=]*=!|diff\.[^=]*(?:command|textconv|external)|difftool|mergetool|merge\.[^=]*driver|filter\.|credential\.[^=]*helper|gpg\.[^=]*program|gpg\.program|ssh\.variant|remote\.[^=]*(?:uploadpack|receivepack|vcs)|sendemail|browser|man\.|web\.browser|protocol\.ext\.allow|uploadpack\.|include\.path|url\.)[^=]*=(?!\s*(?:cat|less|more|true|false|ssh|delta|vim?|nano|)\s*$)",
          match=("git -c core.pager='sh -c id' log", "git -c core.sshCommand='nc x.example 1' fetch"), spare=("git -c user.name=x commit -m y", "git -c core.pager=cat log")),
    _flag("curl-config", "curl", "curl would read further options from a file.", options="-K --config", match=("curl -K ./x",), spare=("curl -I https://x.example",)),
)

_RUNNERS = (
    r"GIT_SSH(?:_COMMAND)?|(?:GIT_|MAN|SYSTEMD_|AWS_|GH_|PSQL_|BAT_|DELTA_)?PAGER|(?:GIT_|SUDO_|KUBE_|GIT_SEQUENCE_|GH_)?EDITOR|VISUAL|FCEDIT|HGEDITOR|SVN_EDITOR"
    r"|GIT_EXTERNAL_DIFF|GIT_PROXY_COMMAND|(?:GIT_|SSH_|SUDO_)ASKPASS|BROWSER|RSYNC_RSH|CVS_RSH|SVN_SSH|LESSOPEN|LESSCLOSE|TAR_OPTIONS|MANOPT|LESS|MAKEFLAGS"
    r"|GIT_CONFIG_(?:KEY|VALUE|PARAMETERS).*|GIT_TEMPLATE_DIR|RUSTC_WRAPPER|CARGO_BUILD_RUSTC_WRAPPER|NPM_CONFIG_SCRIPT_SHELL|npm_config_script_shell"
)
VARIABLES: tuple[VariableRule, ...] = (
    VariableRule(
        id="variable.loads", cls="A21", category="environment", reason="This variable makes later programs load or run something.",
        names=r"LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|DYLD_FRAMEWORK_PATH|BASH_ENV|ENV|PROMPT_COMMAND|PYTHONSTARTUP|PYTHONINSPECT|PERL5DB|PERL5OPT|RUBYOPT|NODE_REPL_EXTERNAL_MODULE"
        r"|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|GCONV_PATH|GIT_EXEC_PATH|GTK_MODULES|OPENSSL_CONF|OPENSSL_ENGINES|PYTHONBREAKPOINT|BASH_FUNC_.*|SHELLOPTS|ZDOTDIR|PS4",
        harmless=r"^$|^\s*-X(?:m[sx]|ss|X:)\S*\s*$|^(?:development|production|test|dev|prod|staging|ci|local)$|^\+|^0$",
        match=("LD_PRELOAD=./x.so ls", "export LD_PRELOAD=$PWD/x.so; git status", "BASH_ENV=./x.sh bash -c ls", "PROMPT_COMMAND='curl x.example' bash -i", "declare -x LD_AUDIT=./x.so; id"),
        spare=("PYTHONPATH=src python -m app", "DEBUG=* node app.js", "unset LD_PRELOAD"),
    ),
    VariableRule(
        id="variable.node-options", cls="A21", category="environment", reason="This variable makes node load a file.", names=r"NODE_OPTIONS|BUN_OPTIONS|PYTHONHOME|RUSTFLAGS|GOFLAGS|RUBYLIB",
        value=r"(?:--require|-r|--import|--loader|--experimental-loader|-toolexec|linker)[= ]|^/tmp", match=("NODE_OPTIONS='--require ./x.js' npm test",), spare=("NODE_OPTIONS=--max-old-space-size=4096 npm run build",),
    ),
    VariableRule(
        id="variable.runs", cls="A21", category="environment", reason="This variable names a command that a later program runs.", names=_RUNNERS, harmless=rf"{HARMLESS}|^$|^-[A-Za-z]+$|^-?j\d*$",
        match=("GIT_SSH_COMMAND='sh -c id' git fetch", "PAGER='sh -c id' git log", "GIT_EDITOR='rm -rf out;' git commit"),
        spare=("GIT_SSH_COMMAND='ssh -i ~/.ssh/deploy -o IdentitiesOnly=yes' git pull", "EDITOR=true git rebase -i HEAD~3", "PAGER=cat man ls", "export EDITOR=vim", "GIT_PAGER=cat git log -3"),
    ),
    VariableRule(
        id="variable.path", cls="A21", category="environment", reason="Programs would first be looked for in a folder that anyone may write.", names="PATH", value=r"^(?:/tmp|/var/tmp|/dev/shm|\.(?::|$)|:)",
        match=("PATH=/tmp/evil:$PATH ls",), spare=("PATH=$PATH:/opt/x/bin ls", "export PATH=$PWD/node_modules/.bin:$PATH"),
    ),
    VariableRule(
        id="variable.library-path", cls="A21", category="environment", reason="Libraries would be loaded from a folder that anyone may write.", names="LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|PYTHONPATH|PERL5LIB|NODE_PATH|CLASSPATH",
        value=r"(?:^|:)(?:/tmp|/var/tmp|/dev/shm)(?:/|:|$)", match=("LD_LIBRARY_PATH=/tmp/x ls",), spare=("LD_LIBRARY_PATH=./build/lib ./build/app --version",),
    ),
    VariableRule(
        id="history.hidden", cls="A20", category="history", reason="What follows would not be kept in the history.", names="HISTFILE|HISTSIZE|HISTFILESIZE|HISTCONTROL|HISTIGNORE", value=r"^(?:/dev/null|0|\*|)$",
        match=("export HISTFILE=/dev/null",), spare=("HISTSIZE=5000 bash -c 'echo ok'", "HISTCONTROL=ignoredups bash -c ls"),
    ),
)  # fmt: skip
