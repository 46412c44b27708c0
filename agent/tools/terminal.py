"""The tool ``terminal``: one shell script in a fresh sandbox, through the gate."""

from __future__ import annotations

from typing import Annotated

import msgspec

from agent.control.gate import Gate
from agent.control.request import CommandRequest
from agent.exceptions import ToolArgumentsInvalid
from agent.tools.arguments import Arguments, tool_of
from agent.tools.outcomes import shell_result
from agent.tools.registry import Invocation, Tool, ToolResult

#: Longest script, in bytes of UTF-8; what a person is shown on a card must stay readable.
MAX_SCRIPT_BYTES = 65_536
#: As much of the intent as the audit keeps, in characters.
INTENT_CHARS = 200

_DESCRIPTION = """\
Run a shell script (bash) in a fresh sandbox and get its output and exit status.
It starts in {workspace}, the person's own workspace, which is also HOME; what it writes there stays.
Nothing else lives on from one call to the next: no `cd`, no variable, no background job. Put what belongs together \
into one script.
It cannot reach the network, the host's services or other people's files, and it cannot get more rights (no sudo).
It is stopped after timeout_s seconds (default {default:g}, at most {maximum:g}). Long output is cut in the middle.
What could do harm is shown to a person first and runs only when they approve it. What is refused or denied stays so: \
do not try it again in other words."""


class TerminalArguments(Arguments, frozen=True):
    """What the model gives."""

    script: Annotated[
        str, msgspec.Meta(min_length=1, max_length=MAX_SCRIPT_BYTES, description="The script, as for `bash -c`.")
    ]
    intent: Annotated[
        str, msgspec.Meta(max_length=2_000, description="What the person wants from it, in a few words.")
    ] = ""
    workdir: (
        Annotated[str, msgspec.Meta(max_length=4_096, description="Where it starts, if not in the workspace.")] | None
    ) = None
    timeout_s: Annotated[int, msgspec.Meta(ge=1, description="Seconds after which it is stopped.")] | None = None


def terminal_tool(gate: Gate, *, default_timeout_s: int = 120, max_timeout_s: int = 1_200) -> Tool:
    """The tool; its calls go to ``gate`` as the command ``terminal``.

    Args:
        gate: the way to the system.
        default_timeout_s: limit of a run where the model gives none.
        max_timeout_s: the highest limit that it may give.
    """
    default_s = min(default_timeout_s, max_timeout_s)

    async def handle(invocation: Invocation) -> ToolResult:
        arguments = msgspec.convert(invocation.arguments, TerminalArguments)
        request = _request(invocation.request_id, arguments, arguments.timeout_s or default_s)
        return shell_result(await gate.run(request, invocation.caller, invocation.activity, invocation.my_turn))

    description = _DESCRIPTION.format(workspace="/workspace", default=default_s, maximum=max_timeout_s)
    return tool_of("terminal", description, _bounded(max_timeout_s), handle, gated=True)


def _request(request_id: str, arguments: TerminalArguments, timeout_s: int) -> CommandRequest:
    if len(arguments.script.encode()) > MAX_SCRIPT_BYTES:
        raise ToolArgumentsInvalid(
            f"terminal was not run: the script is longer than {MAX_SCRIPT_BYTES} bytes. Write its data to a file with "
            "write_file first, or split it."
        )
    args = {"script": arguments.script}
    if arguments.workdir:
        args["workdir"] = arguments.workdir
    return CommandRequest(
        request_id=request_id,
        intent=arguments.intent[:INTENT_CHARS],
        command="terminal",
        args=args,
        timeout_ms=timeout_s * 1_000,
    )


def _bounded(max_timeout_s: int) -> type[TerminalArguments]:
    """The arguments with the configured bound in their schema, so that the model is told before it errs."""
    limit = Annotated[int, msgspec.Meta(ge=1, le=max_timeout_s, description="Seconds after which it is stopped.")]
    bounded = msgspec.defstruct(
        "TerminalArguments", [("timeout_s", limit | None, None)], bases=(TerminalArguments,), kw_only=True
    )
    assert issubclass(bounded, TerminalArguments)
    return bounded
