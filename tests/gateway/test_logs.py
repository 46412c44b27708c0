from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from agent.control.redact import MASK, Redactor
from gateway import logs
from gateway.config import Log
from gateway.log_sink import Descriptor, Sink

log = structlog.get_logger("test")

Lines = Callable[[], list[str]]


@contextmanager
def logging_to(
    *secrets: str, form: Literal["json", "console"] = "json", level: Literal["debug", "info"] = "debug"
) -> Iterator[io.StringIO]:
    """Log into memory; complete once the block has ended."""
    stream = io.StringIO()
    with logs.setup(Log(format=form, level=level), Redactor(secrets), stream=stream):
        yield stream


def one(stream: io.StringIO) -> dict[str, object]:
    """The one line, decoded."""
    (line,) = stream.getvalue().splitlines()
    value = json.loads(line)
    assert isinstance(value, dict)
    return value


def boom() -> None:
    raise ValueError("boom hunter2hunter2")


class TestLines:
    def test_json(self) -> None:
        with logging_to() as stream:
            log.info("message_accepted", session="a", queued=2)
        line = one(stream)
        assert list(line)[:3] == ["timestamp", "level", "event"]
        assert str(line.pop("timestamp")).endswith("Z")
        assert line == {"event": "message_accepted", "level": "info", "session": "a", "queued": 2}

    def test_console(self) -> None:
        with logging_to(form="console") as stream:
            log.warning("message_refused", reason="two words")
        assert "message_refused" in stream.getvalue()
        assert "reason='two words'" in stream.getvalue()

    def test_auto_is_json_away_from_a_terminal(self) -> None:
        stream = io.StringIO()
        with logs.setup(Log(), Redactor(), stream=stream):
            log.info("x")
        assert one(stream)["event"] == "x"

    def test_level(self) -> None:
        with logging_to(level="info") as stream:
            log.debug("no")
            logging.getLogger("x").debug("no")
            log.info("yes")
        assert one(stream)["event"] == "yes"

    def test_context_is_bound(self) -> None:
        with logging_to() as stream, structlog.contextvars.bound_contextvars(request_id="r1"):
            log.info("x")
        assert one(stream)["request_id"] == "r1"

    @pytest.mark.parametrize("form", ["json", "console"])
    def test_exception_is_formatted_once(self, form: Literal["json", "console"]) -> None:
        with logging_to("hunter2hunter2", form=form) as stream:
            try:
                boom()
            except ValueError:
                log.exception("failed")
        text = stream.getvalue()
        assert text.count("Traceback") == 1
        assert f"ValueError: boom {MASK}" in text

    def test_exception_given_as_value(self) -> None:
        with logging_to() as stream:
            log.error("failed", exc_info=KeyError("k"))
        assert str(one(stream)["exception"]).endswith("KeyError: 'k'")

    def test_one_event_is_one_line(self) -> None:
        """What arrives cannot forge a second line, nor reach the terminal as a control sequence."""
        with logging_to(form="console") as stream:
            log.info("x", text="a\nb\x1b[31mred\x9b\u202eabc\u2028")
            log.info("y\n2026 [info] forged")
        assert len(stream.getvalue().splitlines()) == 2
        assert not set(stream.getvalue()) & {"\x1b", "\x9b", "\u202e"}

    @pytest.mark.parametrize(
        "value", [10**40, float("nan"), "\ud800", b"\xff", {1: {2: {3: {4: {5: {6: {7: 8}}}}}}}, {1, 2}, object(), None]
    )
    @pytest.mark.parametrize("form", ["json", "console"])
    def test_any_value_can_be_logged(self, value: object, form: Literal["json", "console"]) -> None:
        with logging_to(form=form) as stream:
            log.info("x", value=value)
        assert "value" in stream.getvalue()

    def test_a_value_that_cannot_be_printed(self) -> None:
        class Broken:
            def __str__(self) -> str:
                raise RuntimeError

        with logging_to() as stream:
            log.info("x", value=Broken())
        assert "not printable" in str(one(stream)["value"])

    def test_huge_fields_are_cut(self) -> None:
        with logging_to() as stream:
            log.info("x", value="y" * 1_000_000)
        assert len(stream.getvalue()) < logs.FIELD_CHARS + 500


class TestStandardLibrary:
    def test_records_are_captured(self) -> None:
        with logging_to("hunter2hunter2") as stream:
            logging.getLogger("some.library").warning("got %s", "hunter2hunter2")
        line = one(stream)
        assert (line["event"], line["logger"], line["level"]) == (f"got {MASK}", "some.library", "warning")

    @pytest.mark.parametrize("name", ["httpx", "httpcore.http11", "aiohttp.access", "asyncio"])
    def test_talkative_libraries_are_quiet(self, name: str) -> None:
        with logging_to() as stream:
            logging.getLogger(name).info("GET https://api.telegram.org/bot1:x/getMe")
        assert stream.getvalue() == ""

    def test_broken_record(self) -> None:
        with logging_to() as stream:
            logging.getLogger("x").warning("%d", "no number")
        assert one(stream)["event"] == "log_record_broken"

    def test_warnings_are_captured(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            with logging_to() as stream:
                warnings.warn("careful", stacklevel=1)
        assert one(stream)["logger"] == "py.warnings"

    def test_everything_is_as_before_afterwards(self) -> None:
        root = logging.getLogger()
        before = (root.handlers[:], root.level, logging.getLogger("httpx").level, structlog.get_config())
        with logging_to():
            pass
        assert before == (root.handlers, root.level, logging.getLogger("httpx").level, structlog.get_config())
        assert not [thread for thread in threading.enumerate() if thread.name == "log-writer"]


class TestSecrets:
    @given(secret=st.text(min_size=6, max_size=40), form=st.sampled_from(["json", "console"]), data=st.data())
    def test_no_configured_secret_survives(
        self, secret: str, form: Literal["json", "console"], data: st.DataObject
    ) -> None:
        around = data.draw(st.text(max_size=10))
        with logging_to(secret, form=form) as stream:
            log.info(secret, value=secret, nested={"a": [around + secret, {secret: 1}]}, pair=(secret, around))
            logging.getLogger("x").warning("%s %r", secret, secret)
            log.info("number", n=int(secret) if secret.isascii() and secret.isdigit() else 0)
            log.error("failed", exc_info=ValueError(secret))
        # the mask itself can make text that was not there; it says nothing of the secret
        assert secret not in stream.getvalue().replace(MASK, "\0")

    def test_fields_named_for_a_secret(self) -> None:
        with logging_to() as stream:
            log.info("x", password="p", headers={"Authorization": "q"}, token=None, api_key=12)
        line = one(stream)
        assert (line["password"], line["headers"], line["api_key"]) == (MASK, {"Authorization": MASK}, MASK)
        assert line["token"] is None


class _Stuck:
    """A target that takes nothing until it is let go."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.reached = threading.Event()
        self.free = threading.Event()

    def write(self, text: str, /) -> object:
        self.reached.set()
        self.free.wait(30)
        self.lines.append(text)
        return None


class TestSink:
    def test_a_stuck_target_costs_lines_and_no_time(self) -> None:
        target = _Stuck()
        drops: list[int] = []
        sink = Sink(target, on_drop=drops.append, size=10)
        sink.start()
        sink.put("first")
        assert target.reached.wait(30)
        for number in range(15):
            sink.put(str(number))
        assert sink.dropped == sum(drops) == 5
        target.free.set()
        sink.close(30)
        assert [line.split("\n")[0] for line in target.lines] == ["first", *map(str, range(10))]
        assert "5 log lines were dropped" in target.lines[-1]

    def test_closing_does_not_wait_for_ever(self) -> None:
        target = _Stuck()
        sink = Sink(target)
        sink.start()
        sink.put("x")
        assert target.reached.wait(30)
        sink.close(0.01)
        assert target.lines == []
        target.free.set()
        sink.close(30)
        assert target.lines == ["x\n"]

    def test_a_closed_target_is_no_error(self) -> None:
        read, write = os.pipe()
        os.close(read)
        sink = Sink(Descriptor(write))
        sink.start()
        sink.put("x")
        sink.close(30)
        os.close(write)
        assert sink.dropped == 1

    def test_a_process_ends_while_its_log_is_stuck(self) -> None:
        """A full pipe on standard error neither stops the program nor its end."""
        program = """
import structlog
from agent.control.redact import Redactor
from gateway import log_sink, logs
from gateway.config import Log
log_sink.CLOSE_S = 0.1
with logs.setup(Log(), Redactor()) as sink:
    for _ in range(2000):
        structlog.get_logger().info("x", text="y" * 1000)
    sink.close(0.1)
print("done", flush=True)
"""
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() == b"done\n"
        assert process.wait(30) == 0
        process.stdout.close()
        process.stderr.close()


def test_setup_is_a_context_manager() -> None:
    manager: AbstractContextManager[Sink] = logs.setup(Log(), Redactor(), stream=io.StringIO())
    with manager as sink:
        assert sink.dropped == 0
