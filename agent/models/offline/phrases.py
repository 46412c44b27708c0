"""What the offline model says, in English or Chinese."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from agent.models.base import ToolCall, ToolMessage
from agent.models.offline.words import WORDS, Word

#: Characters of output in one answer, shared by its calls.
SHOWN_CHARS = 16_000
_SHOWN_LEAST = 1_000
_HEAD_CHARS = 120

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_BACKTICKS = re.compile(r"`{3,}")


def is_chinese(text: str) -> bool:
    """Whether the message has a Chinese character."""
    return _HAN.search(text) is not None


def help_text(words: Sequence[Word], *, chinese: bool) -> str:
    """What works now, and that this is no language model."""
    if chinese:
        lines = ["我是离线解释器，不是语言模型，只认识下面这些写法："]
        lines += [f"- {word.chinese}" for word in words] or ["- （现在没有可用的工具）"]
        return "\n".join([*lines, "", "要与语言模型对话，请在配置中设置 `model.provider`。"])
    lines = ["I am an offline interpreter, not a language model. I understand only this:"]
    lines += [f"- {word.english}" for word in words] or ["- (no tool is available now)"]
    return "\n".join([*lines, "", "To talk to a language model, set `model.provider` in the configuration."])


def strange_line(line: str, words: Sequence[Word], *, chinese: bool) -> str:
    """A line that looks like a call but is none: nothing of the message was run."""
    shown = _fenced(_short(line))
    first = "这一行我不认识，所以整条消息都没有运行：" if chinese else "I do not know this line, so nothing was run:"
    return f"{first}\n{shown}\n\n{help_text(words, chinese=chinese)}"


def too_many(limit: int, *, chinese: bool) -> str:
    """More calls than one message may have."""
    if chinese:
        return f"一条消息最多 {limit} 次调用，所以什么都没有运行。请分成几条消息。"
    return f"One message may hold at most {limit} calls, so nothing was run. Send them in several messages."


def results_text(calls: Sequence[ToolCall], results: Sequence[ToolMessage]) -> str:
    """What the tools gave, in the order of the calls; several are told apart by their command lines."""
    by_id = {result.call_id: result for result in results}
    pairs = [(call, by_id[call.id]) for call in calls if call.id in by_id]
    limit = max(_SHOWN_LEAST, SHOWN_CHARS // max(1, len(pairs)))
    return "\n\n".join(_one(call, result, limit, with_head=len(pairs) > 1) for call, result in pairs)


def pieces(text: str) -> list[str]:
    """The text in the portions in which it streams: lines, long ones in parts."""
    return re.findall(r"[^\n]{1,60}\n?|\n", text)


def _one(call: ToolCall, result: ToolMessage, limit: int, *, with_head: bool) -> str:
    word = next((word for word in WORDS if word.tool == call.name), None)
    text = _bounded(result.text.strip("\n"), limit)
    head = _head(call, word) if with_head else ""
    if result.ok and (word is None or word.output):
        return _fenced(f"{head}\n{text}" if head else text)
    return f"{_fenced(head)}\n{text}" if head else text


def _head(call: ToolCall, word: Word | None) -> str:
    if word is None:
        return call.name
    return _short(word.head(msgspec.json.decode(call.arguments, type=dict)))


def _short(line: str) -> str:
    first, _, rest = line.partition("\n")
    return f"{first[:_HEAD_CHARS]} …" if rest or len(first) > _HEAD_CHARS else first


def _bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _fenced(text: str) -> str:
    """As a code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"
