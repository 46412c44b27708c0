"""``ostiary run``."""

from __future__ import annotations

import asyncio
import importlib
import sys
from typing import Protocol

import click
import structlog

from agent.control.redact import Redactor
from gateway import logs
from gateway.cli.context import CliContext, HomeLike
from gateway.config import Config
from gateway.metrics import Metrics

log = structlog.get_logger(__name__)


class Serve(Protocol):
    """The daemon: :func:`gateway.daemon.serve`."""

    async def __call__(self, settings: Config, home: HomeLike, *, redactor: Redactor, metrics: Metrics) -> int:
        """Run until told to stop; the exit status."""
        ...


@click.command()
@click.pass_obj
def run(context: CliContext) -> int:
    """Run the daemon in the foreground; prints a one-time link to the page, logs to standard error."""
    loaded = context.loaded
    redactor = Redactor(loaded.secrets())
    metrics = Metrics()
    with logs.setup(loaded.config.log, redactor, on_drop=metrics.log_dropped):
        for sentence in loaded.ineffective():
            log.warning("setting_without_effect", detail=sentence)
        serve: Serve = importlib.import_module("gateway.daemon").serve
        _watch_children_by_descriptor()
        with asyncio.Runner() as runner:
            return runner.run(serve(loaded.config, context.home, redactor=redactor, metrics=metrics))


def _watch_children_by_descriptor() -> None:
    """Until 3.11 asyncio waits for each child in a thread of its own; from 3.12 on it does this by itself."""
    if sys.version_info < (3, 12):
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
