"""``ostiary doctor``."""

from __future__ import annotations

import click

from gateway import checkup
from gateway.checkup import State
from gateway.cli import control
from gateway.cli.context import CliContext
from gateway.cli.output import json_option, plain, print_json
from gateway.config_loader import Loaded
from gateway.exceptions import ConfigError, GatewayError

_MARKS = {State.GOOD: "ok  ", State.NOTE: "note", State.BAD: "BAD "}


@click.command()
@json_option
@click.pass_obj
def doctor(context: CliContext, as_json: bool) -> int:
    """Look for what is missing or broken, and say how to fix it; exit 1 if anything is bad."""
    findings = list(checkup.examine(context.home, _loaded(context), unready=_unready(context)))
    bad = [finding for finding in findings if finding.state is State.BAD]
    if as_json:
        entries = [
            {"check": finding.check, "state": finding.state.value, "text": finding.text, "fix": finding.fix or None}
            for finding in findings
        ]
        print_json({"ok": not bad, "findings": entries})
        return 1 if bad else 0
    for finding in findings:
        click.echo(f"{_MARKS[finding.state]}  {finding.check:<9} {plain(finding.text)}")
        for line in finding.fix.splitlines():
            click.echo(f"{'':17}{plain(line)}")
    click.echo(f"{len(bad)} of {len(findings)} are bad" if bad else "all is well")
    return 1 if bad else 0


def _loaded(context: CliContext) -> Loaded | ConfigError:
    try:
        return context.loaded
    except ConfigError as error:
        return error


def _unready(context: CliContext) -> dict[str, str] | None:
    """What the running daemon says of parts that do not work; None where none runs."""
    try:
        ready = control.request(context.home.control_sock, "GET", "/readyz", timeout_s=5, accept={503})
    except GatewayError:
        return None
    return {str(one["part"]): str(one["reason"]) for one in ready["reasons"]}
