"""What the text of an inline program visibly does, and shell text in options and variables of other programs.

An inline program asks whatever it does; it is looked into only for what is refused: a tree deleted, a disk written,
a shell command that would be refused on its own. Only literals count.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent.control.guard import shells
from agent.control.guard.command import Command, Redirect
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import EMPTY
from agent.control.guard.rules.exec_flags import PAYLOADS

if TYPE_CHECKING:
    from agent.control.guard.evaluate import Evaluator

_STRING = r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
_LITERAL = Expression(_STRING, re.DOTALL)
_HOME = Expression(
    r"os\.path\.expanduser\(\s*(['\"])~\1\s*\)|(?:pathlib\.)?Path\.home\(\)|os\.environ(?:\.get\()?[\[(]?\s*(['\"]"
    r")HOME\2\s*[\])]?|ENV\[(['\"])HOME\3\]"
    r"|process\.env\.HOME|os\.homedir\(\)|require\((['\"])os\4\)\.homedir\(\)|\$ENV\{HOME\}|Dir\.home"
    r"|getenv\((['\"])HOME\5\)"
)
_RUNS = Expression(
    r"(?:\b(?:os\.system|os\.popen|subprocess\.\w+|system|exec[lv]?p?e?|execSync|exec|spawnSync|spawn|execFileSync"
    r"|execFile|popen|Popen|check_output|check_call"
    r"|shell_exec|passthru|proc_open|os\.execute|io\.popen|IO\.popen|Open3\.\w+|run|call|do shell script|qx"
    r"|getoutput|getstatusoutput|Start-Process|sh)\b"
    r"|%x)[\s(\[{]*(?P<words>" + _STRING + r"(?:\s*,\s*\[?\s*" + _STRING + r")*)",
    re.DOTALL,
)
_BACKTICKS = Expression(r"(?:`|qx[{(/]|%x[{(\[])([^`{}()\[\]/]*(?:/[^`{}()\[\]/]*)*)(?:`|[})\]/])")
_TREES = Expression(
    r"\b(?:rmtree|rm_rf|rm_r|remove_entry_secure|remove_dir|rimraf|remove_tree|removeSync|rmSync|rmdirSync"
    r"|emptyDirSync|removeDirectory|rm|unlink"
    r"|remove|RemoveAll|Remove-Item|deltree)\b(?P<between>[\s(\[]*(?:-\w+\s+)*)(?P<path>" + _STRING + ")",
    re.DOTALL,
)
_SINGLE = frozenset(("unlink", "remove"))
_WRITES = Expression(
    r"\b(?:open|fopen|File\.open|File\.new)\s*\(?\s*(?P<path>" + _STRING + r")\s*,\s*['\"](?:[wax]|r\+|[bt+]*[wa])"
    r"|\b(?:writeFileSync|writeFile|appendFileSync|File\.write|file_put_contents|truncateSync)\s*\(?\s*(?P<other>"
    + _STRING
    + r")"
    r"|\bPath\(\s*(?P<third>" + _STRING + r")\s*\)\.(?:write_text|write_bytes|unlink|open\(\s*['\"]w)"
    r"|\bopen\s*\(?\s*(?:my\s*)?\$?\w+\s*,\s*['\"]\+?>>?\s*(?P<perl>[^'\"]+)['\"]",
    re.DOTALL,
)
_FORKS = Expression(
    r"\b(?:while|until|for|loop|forever)\b[^\n]{0,80}?\bfork\b|\bfork\s*(?:\(\s*\))?\s*(?:while|until|for)\b"
    r"|\bfork\s*\(\s*\)\s*(?:&&|\|\||;)\s*fork\s*\("
    r"|while\s*[(:]?\s*(?:1|True|true)\s*[):]?[\s\S]{0,80}?\bfork\b",
)
_KILLS = Expression(
    r"\b(?:os\.kill|os\.killpg|process\.kill|posix_kill|kill)\s*\(?\s*(?P<pid>-1|1|os\.getppid\(\)|process\.ppid"
    r"|posix_getppid\(\)|getppid(?:\(\))?)\s*[,)]"
    r"|\b(?:Process\.kill|kill)\s*\(?\s*['\":]?\w+['\"]?\s*,\s*(?P<other>-1|1|Process\.ppid|getppid(?:\(\))?)\b"
)


def scan(text: str, language: str, command: Command, evaluator: Evaluator) -> None:
    """Judge the visible deeds of a program text; findings go to the evaluator's judge."""
    if _FORKS.search(text):
        evaluator.judge.fact("process.fork-bomb", command, text)
    for match in _KILLS.finditer(text):
        pid = match["pid"] or match["other"]
        evaluator.judge.fact("process.kill-all" if pid in ("-1", "1") else "gateway.kill", command, text)
    home = command.state.lookup("HOME")
    text = _HOME.sub(lambda _: f"'{home}'", text)
    for match in _TREES.finditer(text):
        word = match[0].split("(")[0].split()[0].rstrip("([")
        flags = ["-f"] if word.rsplit(".", 1)[-1] in _SINGLE else ["-rf"]
        _run(["rm", *flags, "--", _unquote(match["path"])], command, evaluator)
    for match in _WRITES.finditer(text):
        path = match["perl"] or _unquote(match["path"] or match["other"] or match["third"])
        _write(path, command, evaluator)
    for match in _RUNS.finditer(text):
        words = [_unquote(one) for one in _LITERAL.findall(match["words"])]
        if len(words) > 1:
            _run(words, command, evaluator)
        else:
            _text(words[0], command, evaluator)
    if language in ("perl", "ruby", "php", "lua"):
        for match in _BACKTICKS.finditer(text):
            _text(match[1], command, evaluator)


def _unquote(literal: str) -> str:
    return re.sub(
        r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), literal[1:-1], flags=re.DOTALL
    )


def _run(argv: list[str], command: Command, evaluator: Evaluator) -> None:
    evaluator.nested(Command(argv, command.state.copy(), segment=command.segment, stdin=EMPTY, where=command.where))


def _text(text: str, command: Command, evaluator: Evaluator) -> None:
    shells.run_text(text, command, evaluator)


def _write(path: str, command: Command, evaluator: Evaluator) -> None:
    target = command.state.resolve(path)
    inner = Command(
        [],
        command.state.copy(),
        segment=command.segment,
        stdin=EMPTY,
        redirects=(Redirect(">", target),),
        where=command.where,
    )
    evaluator.judge.command(inner)


def option_payloads(command: Command, evaluator: Evaluator) -> None:
    """Evaluate shell text that options make a program run."""
    for option in PAYLOADS.get(command.name, ()):
        for value in command.values(option.name):
            match = option.payload.match(value)
            if match:
                _text(match[1], command, evaluator)
