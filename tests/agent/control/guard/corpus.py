"""The labelled commands, read once. They are judged and never run."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import NamedTuple

from agent.control.guard import Assumptions, Guard, Verdict
from gateway.cli.guard import assumptions_from_file

DATA = Path(__file__).parents[3] / "data"
ASSUME_FILE = DATA / "commands.assume.yaml"


class Row(NamedTuple):
    """One labelled command."""

    command: str
    label: str
    category: str
    why: str


@functools.cache
def rows() -> tuple[Row, ...]:
    """Every labelled command, in the file's order."""
    lines = (DATA / "commands.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Row(**json.loads(line)) for line in lines)


@functools.cache
def assume() -> Assumptions:
    """What the labels take for granted."""
    return assumptions_from_file(ASSUME_FILE)


@functools.cache
def guard() -> Guard:
    """A guard for the corpus's place."""
    return Guard(assume())


def verdict(command: str) -> Verdict:
    """The verdict under the corpus's assumptions."""
    return guard().judge(command).verdict


def rules(command: str) -> tuple[str, ...]:
    """The rules that a command meets."""
    return guard().judge(command).rules
