"""The log: structlog and the standard library's loggers in one stream, redacted, never blocking the event loop.

Lines are rendered and redacted where they are logged; a thread of its own writes them. When the target is slow the
queue fills up, further lines are dropped and counted, and the loop goes on.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

import msgspec
import structlog
from structlog.typing import EventDict, ExcInfo

from agent.control.redact import MASK, Redactor, is_secret_name
from gateway.config import Log
from gateway.log_sink import Descriptor, Sink, Writer

#: Longest text of one field.
FIELD_CHARS = 16_384

#: Depth to which nested fields are shown.
FIELD_DEPTH = 6

#: Libraries that log addresses or every request at INFO, which is where tokens leak from.
QUIET = (
    "aiohttp",
    "aiohttp.access",
    "asyncio",
    "httpx",
    "httpcore",
    "httpx2",
    "httpcore2",
    "aiosqlite",
    "urllib3",
    "telegram",
)

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x2028, 0x2029)
}
_CONTROL_BUT_LAYOUT = {code: text for code, text in _CONTROL.items() if code not in (0x09, 0x0A)}

_PLAIN = frozenset({str, int, float, bool, type(None)})


class _Lines:
    """What structlog calls with a finished line."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def msg(self, line: str) -> None:
        self._sink.put(line)

    debug = info = warning = error = critical = exception = log = fatal = failure = msg


class Cleaner:
    """Makes every field plain, bounded, free of secrets and of control characters."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, event: EventDict) -> EventDict:
        """The event as it may be written."""
        return event if self._harmless(event) else {self._text(key): self._field(key, event[key]) for key in event}

    def _harmless(self, event: EventDict) -> bool:
        """Whether nothing has to be changed, found in one look at all fields together (a fifth of the time).

        No pattern reaches over a blank what it would not find without it, so a secret in a field is one here too.
        """
        texts: list[str] = []
        for key, value in event.items():
            if type(value) not in _PLAIN or (value and not isinstance(value, bool) and is_secret_name(key)):
                return False
            texts += (key, value if isinstance(value, str) else repr(value))
        joined = " ".join(texts)
        return len(joined) <= FIELD_CHARS and joined.isprintable() and self._redactor(joined) == joined

    def _field(self, key: str, value: object) -> object:
        if key == "exception" and isinstance(value, str):
            return self._text(value, _CONTROL_BUT_LAYOUT)
        if is_secret_name(key) and value is not None and not isinstance(value, bool):
            return MASK
        return self._plain(value, 0)

    def _plain(self, value: object, depth: int) -> object:
        match value:
            case None | bool():
                return value
            case int() | float():
                return value if self._redactor.known(text := repr(value)) == text else MASK
            case str():
                return self._text(value)
            case Mapping() if depth < FIELD_DEPTH:
                return {self._text(str(key)): self._nested(str(key), item, depth) for key, item in value.items()}
            case list() | tuple() | set() | frozenset() if depth < FIELD_DEPTH:
                return [self._plain(item, depth + 1) for item in value]
            case _:
                return self._text(_shown(value))

    def _nested(self, key: str, value: object, depth: int) -> object:
        if is_secret_name(key) and value is not None and not isinstance(value, bool):
            return MASK
        return self._plain(value, depth + 1)

    def _text(self, text: str, escapes: Mapping[int, str] = _CONTROL) -> str:
        clean = self._redactor.bounded(text, FIELD_CHARS).translate(escapes)
        # a lone surrogate (bytes of a path, a broken escape of a client) cannot be written as UTF-8
        return clean if clean.isascii() else clean.encode("utf-8", "backslashreplace").decode()


class _Bridge(logging.Handler):
    """Brings the standard library's records into the same lines."""

    def __init__(self, render: Callable[[EventDict], str], sink: Sink) -> None:
        super().__init__()
        self._render = render
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event: EventDict = {"event": record.getMessage(), "level": record.levelname.lower(), "logger": record.name}
            if record.exc_info and record.exc_info[1] is not None:
                event["exception"] = _traceback(record.exc_info)
            self._sink.put(self._render(event))
        except Exception:  # noqa: BLE001 - a library's broken log call must not break the library
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        self._sink.put(self._render({"event": "log_record_broken", "level": "error", "logger": record.name}))


@contextmanager
def setup(
    config: Log,
    redactor: Redactor,
    *,
    on_drop: Callable[[int], None] | None = None,
    stream: TextIO | None = None,
) -> Iterator[Sink]:
    """Log to ``stream`` (standard error) inside the block, and as before after it.

    Args:
        config: format and level.
        redactor: knows the configured secrets.
        stream: where lines go; a terminal gets colours.
        on_drop: called in the logging thread with the number of lines that a slow target has cost.
    """
    stream = stream if stream is not None else sys.stderr
    colours = _is_terminal(stream)
    console = config.format == "console" or (config.format == "auto" and colours)
    render = _renderer(redactor, console=console, colours=colours)
    sink = Sink(_target(stream), on_drop=on_drop)
    before = structlog.get_config()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            lambda _logger, _name, event: render(_with_traceback(event)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(config.level),
        logger_factory=lambda *_: _Lines(sink),
        cache_logger_on_first_use=False,
    )
    sink.start()
    try:
        with _standard_library(_Bridge(render, sink), config.level):
            yield sink
    finally:
        structlog.configure(**before)
        sink.close()


@contextmanager
def _standard_library(bridge: logging.Handler, level: str) -> Iterator[None]:
    root = logging.getLogger()
    handlers, old_level = root.handlers[:], root.level
    quiet = {name: logging.getLogger(name).level for name in QUIET}
    root.handlers[:] = [bridge]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.handlers[:] = handlers
        root.setLevel(old_level)
        for name, value in quiet.items():
            logging.getLogger(name).setLevel(value)


def _renderer(redactor: Redactor, *, console: bool, colours: bool) -> Callable[[EventDict], str]:
    clean = Cleaner(redactor)
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    pretty = structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback)

    def render(event: EventDict) -> str:
        event = stamp(None, "", clean(event))
        event = {**{name: event.pop(name) for name in ("timestamp", "level", "event") if name in event}, **event}
        line = pretty(None, "", event) if console else msgspec.json.encode(event).decode()
        # fields are clean by now; this catches a secret that only their joining has made
        return redactor.known(line)

    return render


def _with_traceback(event: EventDict) -> EventDict:
    """Put the traceback into ``exception``, once."""
    given = event.pop("exc_info", None)
    if given:
        if isinstance(given, BaseException):
            info: ExcInfo | tuple[None, None, None] = (type(given), given, given.__traceback__)
        else:
            info = given if isinstance(given, tuple) else sys.exc_info()
        if info[1] is not None:
            event["exception"] = _traceback(info)
    return event


def _traceback(info: tuple[object, ...]) -> str:
    error = info[1]
    return "".join(traceback.format_exception(error)).rstrip() if isinstance(error, BaseException) else ""


def _shown(value: object) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - a log line must not fail for what it logs
        return f"<{type(value).__name__}, not printable: {type(error).__name__}>"


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _target(stream: TextIO) -> Writer:
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return stream
    stream.flush()
    return Descriptor(descriptor)
