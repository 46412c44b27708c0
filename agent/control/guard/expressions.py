"""Regular expressions that are compiled when they are first used, so that importing the guard costs little."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator


class Expression:
    """Stands for a compiled pattern; the first use compiles it and puts its methods here."""

    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    findall: Callable[..., list[str]]
    split: Callable[..., list[str]]
    sub: Callable[..., str]

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        if name not in self.__annotations__:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        for method in self.__annotations__:
            self.__dict__[method] = getattr(compiled, method)
        return self.__dict__[name]
