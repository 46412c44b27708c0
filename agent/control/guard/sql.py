"""SQL text: which statements destroy, and where a command hands SQL to a client."""

from __future__ import annotations

import re

from agent.control.guard import contents
from agent.control.guard.command import Command
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import literal

#: Options of each client that carry SQL, options that name a file of it, and whether the last operand is SQL.
CLIENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], bool]] = {
    "psql": (("-c", "--command"), ("-f", "--file"), False),
    "pgcli": (("-e", "--execute"), (), False),
    "mysql": (("-e", "--execute", "--init-command"), (), False),
    "mariadb": (("-e", "--execute", "--init-command"), (), False),
    "mycli": (("-e", "--execute"), (), False),
    "sqlite3": (("-cmd",), ("-init",), True),
    "sqlite": ((), (), True),
    "duckdb": (("-c", "-s"), ("-init", "-f"), True),
    "usql": (("-c", "--command"), ("-f", "--file"), False),
    "sqlcmd": (("-Q", "-q"), ("-i",), False),
    "sqlplus": ((), (), True),
    "isql": ((), ("-i",), False),
    "cockroach": (("-e", "--execute"), ("-f", "--file"), False),
    "clickhouse-client": (("-q", "--query"), ("--queries-file",), False),
    "clickhouse": (("-q", "--query"), ("--queries-file",), False),
    "snowsql": (("-q", "--query"), ("-f", "--filename"), False),
    "bq": ((), (), True),
    "trino": (("--execute",), ("-f", "--file"), False),
    "presto": (("--execute",), ("-f", "--file"), False),
    "hive": (("-e",), ("-f",), False),
    "beeline": (("-e",), ("-f",), False),
    "impala-shell": (("-q",), ("-f",), False),
    "spark-sql": (("-e",), ("-f",), False),
    "wrangler": (("--command",), ("--file",), False),
    "turso": ((), (), True),
    "litecli": (("-e", "--execute"), (), False),
    "dbeaver": ((), (), False),
    "osqueryi": ((), (), True),
    "sql": ((), (), True),
}
_WORDS = frozenset(("drop", "truncate", "delete", "update", "alter", "grant", "revoke"))
_STRIP = Expression(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
_LINE_COMMENT = Expression(r"^\s*#[^\n]*", re.MULTILINE)
_SPLIT = Expression(r";|\\g[a-z]*|^\s*go\s*$", re.IGNORECASE | re.MULTILINE)
_WHERE = Expression(r"\bwhere\b(.*)", re.IGNORECASE | re.DOTALL)
_TRUE = Expression(
    r"^\s*(?:\(\s*)*(?:(\d+)\s*=\s*\1|true|not\s+false|not\s+0|[1-9]\d*|''\s*=\s*''|(\w+)\s*=\s*\2|1\s*<>?\s*[02-9]"
    r"|\w+\s+is\s+not\s+null\s+or\s+\w+\s+is\s+null|\w+\s+like\s+''%'')"
    r"(?:\s*\))*\s*(?:$|limit\b|returning\b|or\b)",
    re.IGNORECASE,
)
_OR_TRUE = Expression(r"\bor\s+(?:(\d+)\s*=\s*\1|true|''\s*=\s*'')", re.IGNORECASE)
_DESTROYS = Expression(
    r"^\s*(?:explain\s+analyze\s+)?(?:"
    r"drop\s+\w|truncate\b(?!\s*\()|detach\s+partition|purge\s|flush\s+(?:tables|privileges)|shutdown\b|kill\s"
    r"|alter\s+(?:table|database|schema|view|type|domain|materialized|sequence|index|extension|column|if"
    r")\b.*\bdrop\b|alter\s+(?:user|role|login|system|default\s+privileges)\b"
    r"|(?:grant|revoke|deny)\b|create\s+(?:or\s+replace\s+)?(?:user|role|login|extension|server|language"
    r"|function\s.*\blanguage\s+'?c\b|event\s+trigger|subscription)\b"
    r"|drop\b|reassign\s+owned|set\s+password|copy\b.*\b(?:to|from)\s+(?:program\b|'')|load\s+data\b"
    r"|select\b.*\binto\s+(?:out|dump)file\b"
    r"|(?:exec(?:ute)?\s+)?(?:master\.*)?xp_cmdshell|exec\s+sp_configure|reset\s+master|change\s+master"
    r"|rename\s+table|attach\s+database|vacuum\s+into|pragma\s+writable_schema"
    r"|optimize\s+table\s.*\bfinal|replace\s+into\s+mysql\.|(?:select|do)\b.*\b(?:pg_read_file|pg_read_binary_file"
    r"|pg_ls_dir|lo_import|lo_export|pg_terminate_backend|pg_cancel_backend|pg_reload_conf|load_extension|load_file"
    r"|sys_exec|sys_eval|pg_write_file|dblink)\b"
    r")",
    re.IGNORECASE | re.DOTALL,
)
_CHANGES = Expression(
    r"\b(?:delete\s+(?:\w+\s+)?from\s+\S+|update\s+(?:only\s+)?[\w.\"`\[\]\ue000-\ue00b]+(?:\s+(?:as\s+)?\w+"
    r")?\s+set\b)",
    re.IGNORECASE,
)
_SHELL = Expression(
    r"(?:^|\n|\s)\\!\s*\S|^\s*\.(?:shell|system|import\s+['\"]?\||output\s*\||once\s*\||load|read\s*\|)\b"
    r"|\\copy\b.*\bprogram\b|\\o\s*\||\\g\s*\||^\s*system\s+\w",
    re.IGNORECASE | re.MULTILINE,
)
_CONDITION_ENDS = Expression(r"\b(?:returning|order\s+by|limit)\b.*", re.IGNORECASE | re.DOTALL)


def destroys(text: str) -> bool:
    """Whether a statement drops, empties, changes without a condition, gives rights, or leaves the database."""
    if _SHELL.search(text):
        return True
    plain = _LINE_COMMENT.sub("", _STRIP.sub(lambda match: "''" if match[0][0] == "'" else " ", text))
    return any(_one(statement) for statement in _SPLIT.split(plain))


def _one(statement: str) -> bool:
    if _DESTROYS.match(statement):
        return True
    change = _CHANGES.search(statement)
    if change is None:
        return False
    if re.match(r"\s*(?:insert|create\s+trigger|comment|create\s+rule)\b", statement, re.IGNORECASE):
        return False
    where = _WHERE.search(statement, change.end())
    if where is None:
        return True
    condition = _CONDITION_ENDS.sub("", where[1])
    return _TRUE.match(condition) is not None or _OR_TRUE.search(condition) is not None or not condition.strip()


def given_to(command: Command) -> str | None:
    """The SQL that a command hands to a client, or is itself; None when there is none."""
    name = command.name
    if name in _WORDS and len(command.argv) > 1:
        if name == "truncate" and not re.match(r"(?i)table$", command.argv[1]):
            return None
        return literal(" ".join(command.argv))
    client = CLIENTS.get(name)
    if client is None:
        return None
    carries, files, last = client
    texts = command.values(*carries) if carries else []
    operands = command.operands[1:] if name in ("sqlite3", "sqlite", "duckdb") else command.operands
    if last:
        texts += operands
    if name in ("cockroach", "wrangler", "turso"):
        texts += [one for one in operands if " " in one]
    for file in command.values(*files) if files else []:
        content = command.state.world.files.get(command.state.resolve(file))
        texts.append(content.text or "" if content else "")
    for one in command.operands:
        if one.startswith("@"):
            content = command.state.world.files.get(command.state.resolve(one[1:]))
            texts.append(content.text or "" if content else "")
    if command.piped and command.stdin.text:
        texts.append(command.stdin.text)
    elif command.redirects:
        for redirect in command.redirects:
            if redirect.operator == "<" and redirect.path:
                texts.append(contents.file_content(redirect.path, command.state).text or "")
    return literal(";\n".join(texts)) if texts else None
