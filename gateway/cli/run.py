"""``ostiary run``."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import sys
from collections.abc import Iterator

import click
import structlog

from agent.control.redact import Redactor
from agent.control.sandbox.process import install_child_watcher
from gateway import daemon, logs
from gateway.cli.context import CliContext
from gateway.exceptions import GatewayError
from gateway.home import HomeError
from gateway.metrics import Metrics
from gateway.store.exceptions import DatabaseTooNew, StoreError
from gateway.web.exceptions import WebError, WebRefused

log = structlog.get_logger(__name__)

#: Errors whose message is all that a person needs.
TOLD = (GatewayError, HomeError, StoreError, WebError)

#: Those that another start will not mend, so that a service manager should not try.
FOR_GOOD = (DatabaseTooNew, WebRefused)


@click.command()
@click.pass_obj
def run(context: CliContext) -> int:
    """Run the daemon in the foreground; prints a one-time link to the page, logs to standard error."""
    loaded = context.loaded
    if sys.__stderr__ is not None:
        # the service manager aborts a daemon whose event loop has frozen; then one must see where
        faulthandler.enable(sys.__stderr__)
    gc.freeze()  # the modules stay: from now on the collector need not look at them again and again
    redactor = Redactor(loaded.secrets())
    metrics = Metrics()
    with logs.setup(loaded.config.log, redactor, on_drop=metrics.log_dropped):
        for sentence in loaded.ineffective():
            log.warning("setting_without_effect", detail=sentence)
        install_child_watcher()
        try:
            with asyncio.Runner() as runner:
                return runner.run(daemon.serve(loaded.config, context.home, redactor=redactor, metrics=metrics))
        except Exception as error:  # noqa: BLE001 - the last place where it can be told
            return _told(error)


def _told(error: Exception) -> int:
    """Say why the daemon ended; the exit status."""
    reasons = list(_leaves(error))
    if not all(isinstance(reason, TOLD) for reason in reasons):
        log.critical("daemon_failed", exc_info=error)
        return 1
    for reason in reasons:
        log.error("daemon_ended", reason=str(reason))
    return 78 if any(isinstance(reason, FOR_GOOD) for reason in reasons) else 1


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors that a group of groups comes to."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
