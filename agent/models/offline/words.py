"""What the offline model understands: a table of words, each for one tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Arguments = dict[str, Any]

#: A line that starts so is one call; lines of other kinds continue the call before them.
LINE_HEADS = ("$ ", "!")

_PATH = r"""(?:"(?P<double>[^"\n]+)"|'(?P<single>[^'\n]+)'|(?P<bare>[^\s"']\S*))"""
_READ = re.compile(rf"(?:read|读取?)\s+{_PATH}", re.IGNORECASE)
_WRITE = re.compile(rf"(?:write|写入?)\s+{_PATH}\s(?P<text>.+)", re.IGNORECASE | re.DOTALL)
_LIST = re.compile(rf"(?:list|列出)(?:\s+{_PATH})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Word:
    """One entry of the table; active where its tool is among those that the request shows.

    Attributes:
        tool: the tool that it calls.
        read: arguments for the tool, or None where the text is not this word. A word with a ``line_head`` gets what
            stands behind the head, others the whole message.
        head: the call as a person would type it, to tell results of several calls apart.
        english: its line in the help.
        chinese: the same in Chinese.
        line_head: one of :data:`LINE_HEADS`; empty for a word that is a whole message.
        output: whether the result is a program's output, which is shown as it stands.
    """

    tool: str
    read: Callable[[str], Arguments | None]
    head: Callable[[Mapping[str, Any]], str]
    english: str
    chinese: str
    line_head: str = ""
    output: bool = True


def _path(match: re.Match[str]) -> str | None:
    return match["double"] or match["single"] or match["bare"]


def _terminal(text: str) -> Arguments | None:
    return {"script": text} if text.strip() else None


def _read_file(text: str) -> Arguments | None:
    match = _READ.fullmatch(text)
    return {"path": _path(match)} if match else None


def _write_file(text: str) -> Arguments | None:
    match = _WRITE.fullmatch(text)
    return {"path": _path(match), "content": match["text"]} if match else None


def _list_files(text: str) -> Arguments | None:
    match = _LIST.fullmatch(text)
    if match is None:
        return None
    path = _path(match)
    return {} if path is None else {"path": path}


#: In the order in which they are tried.
WORDS: tuple[Word, ...] = (
    Word(
        tool="terminal",
        read=_terminal,
        head=lambda arguments: f"$ {arguments.get('script', '')}",
        english="`$ COMMAND` runs a command in the sandbox; each line that starts with `$ ` is one call, other lines "
        "continue the one before",
        chinese="`$ 命令` 在沙箱中运行命令；每个以 `$ ` 开头的行是一次调用，其他行接续上一次调用",
        line_head="$ ",
    ),
    Word(
        tool="read_file",
        read=_read_file,
        head=lambda arguments: f"read {arguments.get('path', '')}",
        english="`read PATH` shows a file of the workspace",
        chinese="`读取 路径`（或 `read 路径`）显示工作区中的文件",
    ),
    Word(
        tool="write_file",
        read=_write_file,
        head=lambda arguments: f"write {arguments.get('path', '')}",
        english="`write PATH TEXT` writes a file of the workspace",
        chinese="`写入 路径 内容`（或 `write 路径 内容`）写入工作区中的文件",
        output=False,
    ),
    Word(
        tool="list_files",
        read=_list_files,
        head=lambda arguments: f"list {arguments.get('path', '')}".rstrip(),
        english="`list [PATH]` lists a folder of the workspace",
        chinese="`列出 [路径]`（或 `list [路径]`）列出工作区中的目录",
    ),
)
