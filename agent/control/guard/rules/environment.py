"""Variables that make later programs run or load something, or hide what they do (A20, A21)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.exec_flags import HARMLESS
from agent.control.guard.rules.model import VariableRule

_variable = functools.partial(VariableRule, cls="A21", category="environment")

VARIABLES: tuple[VariableRule, ...] = (
    _variable(
        id="variable.loads",
        names=(
            "LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|DYLD_FRAMEWORK_PATH|BASH_ENV|ENV"
            "|PROMPT_COMMAND|PYTHONSTARTUP|PYTHONINSPECT|PERL5DB|PERL5OPT|RUBYOPT"
            "|NODE_REPL_EXTERNAL_MODULE|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS"
            "|GCONV_PATH|GIT_EXEC_PATH|GTK_MODULES|OPENSSL_CONF|OPENSSL_ENGINES|PYTHONBREAKPOINT"
            "|BASH_FUNC_.*|SHELLOPTS|ZDOTDIR|PS4"
        ),
        harmless=r"^$|^\s*-X(?:m[sx]|ss|X:)\S*\s*$|^(?:development|production|test|dev|prod|staging|ci|local)$|^\+|^0$",
        reason="This variable makes later programs load or run something.",
        match=(
            "LD_PRELOAD=./x.so ls",
            "export LD_PRELOAD=$PWD/x.so; git status",
            "BASH_ENV=./x.sh bash -c ls",
            "PROMPT_COMMAND='curl x.example' bash -i",
            "declare -x LD_AUDIT=./x.so; id",
        ),
        spare=("PYTHONPATH=src python -m app", "DEBUG=* node app.js", "unset LD_PRELOAD"),
    ),
    _variable(
        id="variable.node-options",
        names="NODE_OPTIONS|BUN_OPTIONS|PYTHONHOME|RUSTFLAGS|GOFLAGS|RUBYLIB",
        value="(?:--require|-r|--import|--loader|--experimental-loader|-toolexec|linker)[= ]|^/tmp",
        reason="This variable makes node load a file.",
        match=("NODE_OPTIONS='--require ./x.js' npm test",),
        spare=("NODE_OPTIONS=--max-old-space-size=4096 npm run build",),
    ),
    _variable(
        id="variable.runs",
        names=(
            "GIT_SSH(?:_COMMAND)?|(?:GIT_|MAN|SYSTEMD_|AWS_|GH_|PSQL_|BAT_|DELTA_)?PAGER|(?:GIT_"
            "|SUDO_|KUBE_|GIT_SEQUENCE_|GH_)?EDITOR|VISUAL|FCEDIT|HGEDITOR|SVN_EDITOR"
            "|GIT_EXTERNAL_DIFF|GIT_PROXY_COMMAND|(?:GIT_|SSH_|SUDO_)ASKPASS|BROWSER|RSYNC_RSH"
            "|CVS_RSH|SVN_SSH|LESSOPEN|LESSCLOSE|TAR_OPTIONS|MANOPT|LESS|MAKEFLAGS"
            "|GIT_CONFIG_(?:KEY|VALUE|PARAMETERS).*|GIT_TEMPLATE_DIR|RUSTC_WRAPPER"
            "|CARGO_BUILD_RUSTC_WRAPPER|NPM_CONFIG_SCRIPT_SHELL|npm_config_script_shell"
        ),
        harmless=rf"{HARMLESS}|^$|^-[A-Za-z]+$|^-?j\d*$",
        reason="This variable names a command that a later program runs.",
        match=(
            "GIT_SSH_COMMAND='sh -c id' git fetch",
            "PAGER='sh -c id' git log",
            "GIT_EDITOR='rm -rf out;' git commit",
        ),
        spare=(
            "GIT_SSH_COMMAND='ssh -i ~/.ssh/deploy -o IdentitiesOnly=yes' git pull",
            "EDITOR=true git rebase -i HEAD~3",
            "PAGER=cat man ls",
            "export EDITOR=vim",
            "GIT_PAGER=cat git log -3",
        ),
    ),
    _variable(
        id="variable.path",
        names="PATH",
        value=r"^(?:/tmp|/var/tmp|/dev/shm|\.(?::|$)|:)",
        reason="Programs would first be looked for in a folder that anyone may write.",
        match=("PATH=/tmp/evil:$PATH ls",),
        spare=("PATH=$PATH:/opt/x/bin ls", "export PATH=$PWD/node_modules/.bin:$PATH"),
    ),
    _variable(
        id="variable.library-path",
        names="LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|PYTHONPATH|PERL5LIB|NODE_PATH|CLASSPATH",
        value="(?:^|:)(?:/tmp|/var/tmp|/dev/shm)(?:/|:|$)",
        reason="Libraries would be loaded from a folder that anyone may write.",
        match=("LD_LIBRARY_PATH=/tmp/x ls",),
        spare=("LD_LIBRARY_PATH=./build/lib ./build/app --version",),
    ),
    VariableRule(
        cls="A20",
        category="history",
        id="history.hidden",
        names="HISTFILE|HISTSIZE|HISTFILESIZE|HISTCONTROL|HISTIGNORE",
        value=r"^(?:/dev/null|0|\*|)$",
        reason="What follows would not be kept in the history.",
        match=("export HISTFILE=/dev/null",),
        spare=("HISTSIZE=5000 bash -c 'echo ok'", "HISTCONTROL=ignoredups bash -c ls"),
    ),
)
