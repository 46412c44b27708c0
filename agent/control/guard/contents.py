"""What files hold, as far as the command itself tells."""

from __future__ import annotations

import re

from agent.control.guard import paths
from agent.control.guard.marks import EMPTY, LOCAL, OF_GATEWAY, Stream
from agent.control.guard.state import State

#: Longer texts are not followed.
MAX_TEXT = 65_536


def file_content(path: str, state: State) -> Stream:
    """What reading a file gives: what this command wrote there, or local content."""
    if paths.is_channel(path):
        index = re.search(r"\d+", path.rsplit("/", 1)[-1])
        channels = state.world.channels
        if index and int(index[0]) < len(channels):
            return channels[int(index[0])]
    known = state.world.files.get(path)
    if known is not None:
        return known
    assume = state.assume
    if path == assume.gateway_pid_file:
        return Stream(None, frozenset((OF_GATEWAY,)))
    if path in ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"):
        return state.stdin
    if path == "/dev/null":
        return EMPTY
    return Stream(None, frozenset((LOCAL,)))
