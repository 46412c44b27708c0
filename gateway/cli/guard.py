"""``ostiary guard``: what the guard says about a command.

It judges the text alone: policy, bans and grants are not asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from agent.control.guard import Assumptions, Finding, Guard, Judgement, Verdict

#: Lines of ``--jsonl`` longer than this are an error and not read further.
MAX_LINE = 1_048_576

_TEXTS = ("user", "home", "workdir", "gateway_name", "gateway_home", "gateway_pid_variable", "gateway_pid_file")
_LISTS = ("scratch", "audit_paths", "policy_paths", "secret_paths")


def assumptions_from_file(path: str | Path) -> Assumptions:
    """Read what the guard takes for granted from a YAML file; keys that are missing keep their defaults.

    Raises:
        click.UsageError: the file cannot be read, is no mapping, or has a key or a value that is not known.
    """
    import yaml  # noqa: PLC0415 - only --assume pays for it

    try:
        given = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from error
    if not isinstance(given, dict):
        raise click.UsageError(f"{path} must hold keys and values, as in: user: agent")
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key in _TEXTS and isinstance(value, str):
            values[key] = value
        elif key in _LISTS and isinstance(value, list) and all(isinstance(one, str) for one in value):
            values[key] = tuple(value)
        elif key in (*_TEXTS, *_LISTS):
            raise click.UsageError(f"{path}: {key} must be {'a text' if key in _TEXTS else 'a list of texts'}")
        else:
            raise click.UsageError(f"{path}: {key} is not known; known are {', '.join((*_TEXTS, *_LISTS))}")
    return Assumptions(**values)


def live_assumptions(ctx_obj: object) -> Assumptions:
    """What the live configuration says; defaults where no configuration was loaded."""
    live = getattr(ctx_obj, "assumptions", None)
    found = live() if callable(live) else None
    return found if isinstance(found, Assumptions) else Assumptions()


def _guard_of(context: click.Context, assume: str | None) -> Guard:
    return Guard(assumptions_from_file(assume) if assume else live_assumptions(context.obj))


@click.group("guard", help="Ask the guard about a command.")
def guard() -> None:
    """The group; its commands never run what they are given."""


_assume = click.option(
    "--assume", metavar="FILE", type=click.Path(dir_okay=False), help="YAML: user, home, workdir, gateway names."
)


@guard.command("check")
@click.argument("command", required=False)
@click.option("--jsonl", is_flag=True, help='Read {"command": ...} lines from standard input.')
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_assume
@click.pass_context
def check(context: click.Context, command: str | None, *, jsonl: bool, as_json: bool, assume: str | None) -> None:
    """Print the verdict on COMMAND: safe, approve or refuse. Exit 0 when safe, else 1."""
    if jsonl == (command is not None):
        raise click.UsageError("give either COMMAND or --jsonl")
    judge = _guard_of(context, assume)
    if command is None:
        context.exit(0 if _check_lines(judge, click.get_binary_stream("stdin"), click.get_text_stream("stdout")) else 1)
    judgement = judge.judge(command)
    click.echo(json.dumps(summary(command, judgement)) if as_json else judgement.verdict.label)
    context.exit(0 if judgement.verdict is Verdict.SAFE else 1)


@guard.command("explain")
@click.argument("command")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_assume
@click.pass_context
def explain(context: click.Context, command: str, *, as_json: bool, assume: str | None) -> None:
    """Print every finding on COMMAND. Exit 0 when safe, else 1."""
    judgement = _guard_of(context, assume).judge(command)
    if as_json:
        findings = [finding_data(one) for one in judgement.findings]
        click.echo(
            json.dumps({**summary(command, judgement), "findings": findings, "scripts": list(judgement.scripts)})
        )
    else:
        click.echo("\n".join(_explained(judgement)))
    context.exit(0 if judgement.verdict is Verdict.SAFE else 1)


def summary(command: str, judgement: Judgement) -> dict[str, Any]:
    """The line that ``--jsonl`` prints for a command."""
    return {
        "command": command,
        "verdict": judgement.verdict.label,
        "category": judgement.category,
        "rules": list(judgement.rules),
        "why": judgement.why,
    }


def finding_data(finding: Finding) -> dict[str, Any]:
    """One finding as plain data."""
    return {
        "rule": finding.rule,
        "class": finding.cls,
        "category": finding.category,
        "verdict": finding.verdict.label,
        "reason": finding.reason,
        "segment": finding.segment,
        "resolved": finding.resolved,
        "alternative": finding.alternative,
        "shape": finding.shape.text() if finding.shape else None,
        "paths": list(finding.paths),
        "grantable": finding.grantable,
    }


def _explained(judgement: Judgement) -> Iterator[str]:
    yield f"verdict: {judgement.verdict.label}"
    for finding in judgement.findings:
        yield ""
        yield f"{finding.rule} ({finding.cls}, {finding.category}): {finding.verdict.label}"
        yield f"  {finding.reason}"
        yield f"  segment: {_shown(finding.segment)}"
        if finding.resolved:
            yield f"  comes to: {_shown(finding.resolved)}"
        if finding.alternative:
            yield f"  instead: {finding.alternative}"
        if finding.shape:
            yield f"  shape: {_shown(finding.shape.text())}"
        for path in finding.paths:
            yield f"  path: {_shown(path)}"
        if not finding.grantable:
            yield "  always: never offered"
    for script in judgement.scripts:
        yield f"script: {_shown(script)}"


def _shown(text: str) -> str:
    """Text with what a terminal would obey or hide written out."""
    return "".join(one if one.isprintable() or one == " " else one.encode("unicode_escape").decode() for one in text)


def _check_lines(judge: Guard, source: Iterable[bytes], out: TextIO) -> bool:
    """Judge JSON lines in order; whether all of them could be read."""
    good = True
    for number, line in enumerate(source, start=1):
        command, error = _command_of(line)
        if command is None:
            good = False
            out.write(json.dumps({"line": number, "error": error}) + "\n")
        else:
            out.write(json.dumps(summary(command, judge.judge(command))) + "\n")
    out.flush()
    return good


def _command_of(line: bytes) -> tuple[str | None, str]:
    if len(line) > MAX_LINE:
        return None, f"the line is longer than {MAX_LINE} bytes"
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        return None, f"not JSON: {error}"
    command = data.get("command") if isinstance(data, dict) else None
    if not isinstance(command, str):
        return None, 'expected {"command": "..."}'
    return command, ""
