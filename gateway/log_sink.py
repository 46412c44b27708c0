"""Writes log lines in a thread of its own, so that a slow target costs lines and never time."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable
from typing import Protocol

#: Lines that may wait for a slow target.
QUEUE_LINES = 10_000

#: Seconds that closing waits for the target to take what is left.
CLOSE_S = 2.0


class Writer(Protocol):
    """Where finished lines go."""

    def write(self, text: str, /) -> object:
        """Write one line with its end."""
        ...


class Sink:
    """Writes lines in a thread of its own."""

    def __init__(
        self, target: Writer, *, on_drop: Callable[[int], None] | None = None, size: int = QUEUE_LINES
    ) -> None:
        self._target = target
        self._on_drop = on_drop
        self._queue: queue.Queue[str | None] = queue.Queue(size)
        self._thread = threading.Thread(target=self._work, name="log-writer", daemon=True)
        self._closing = threading.Event()
        self._unsaid = 0
        self.dropped = 0

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def put(self, line: str) -> None:
        """Take a line; never waits."""
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            self.dropped += 1
            self._unsaid += 1
            if self._on_drop is not None:
                self._on_drop(1)

    def close(self, limit_s: float = CLOSE_S) -> None:
        """Write what is left, as far as the target takes it in time."""
        self._closing.set()
        with contextlib.suppress(queue.Full):  # the thread sees the event once the target takes lines again
            self._queue.put_nowait(None)
        self._thread.join(limit_s)

    def _work(self) -> None:
        while (line := self._next()) is not None:
            if self._unsaid and self._queue.empty():
                lost, self._unsaid = self._unsaid, 0
                line = f"{line}\n{lost} log lines were dropped: the target of the log was too slow"
            try:
                self._target.write(line + "\n")
            except (OSError, ValueError):  # a closed target: there is nowhere left to say so
                self.dropped += 1

    def _next(self) -> str | None:
        if self._closing.is_set():
            try:
                return self._queue.get_nowait()
            except queue.Empty:
                return None
        return self._queue.get()


class Descriptor:
    """A target that writes to a file descriptor without Python's buffers and their lock.

    A thread that hangs in a buffered write would hold that lock until the interpreter aborts at its end.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, text: str, /) -> object:
        """Write all of ``text``."""
        data = text.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._descriptor, data) :]
        return None
