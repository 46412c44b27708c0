"""From what the gate says to what the model is told."""

from __future__ import annotations

from agent.control.request import CommandResult, CommandStatus
from agent.tools.registry import ToolResult

NO_OUTPUT = "(no output)"
EMPTY = "(empty)"


def shell_result(result: CommandResult) -> ToolResult:
    """Of a shell command: a status other than 0 is an answer, no failure of the tool; it stands on the last line."""
    if result.status is not CommandStatus.RAN:
        return ToolResult(result.text.strip() or f"It was not run: {result.status.value}.", ok=False)
    lines = [result.text.rstrip("\n")] if result.text.strip() else []
    if result.exit_code:
        lines.append(f"exit status {result.exit_code}")
    return ToolResult("\n".join(lines) or NO_OUTPUT)


def file_result(result: CommandResult) -> ToolResult:
    """Of a file command: a status other than 0 means that it did not work, and the text says why."""
    worked = result.status is CommandStatus.RAN and not result.exit_code
    if worked or result.text.strip():
        return ToolResult(result.text or EMPTY, ok=worked)
    why = f"exit status {result.exit_code}" if result.exit_code else result.status.value
    return ToolResult(f"It did not work: {why}.", ok=False)
