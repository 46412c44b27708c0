"""Where quotes, expansions and words end, by bash's rules."""

from __future__ import annotations

import abc

from agent.control.guard.exceptions import OverLimit, Unreadable
from agent.control.guard.expressions import Expression

#: Substitutions, groups and quotes inside one another. Deeper text is no longer a command a person would check.
MAX_NESTING = 50
#: How far ``((`` is looked ahead to tell arithmetic from two subshells.
_ARITHMETIC_REACH = 4_096
_PLAIN_RUN = Expression(r"[^\s\\'\"`$()<>;|&]+")
ASSIGNMENT = Expression(r"[A-Za-z_]\w*\+?=")
_IN_DOUBLE = Expression(r"[\\\"`$]")
_IN_BRACES = Expression(r"[\\\"'`$}]")
_PARAMETER_HEAD = Expression(r"[!#]?(?:\w+|[@*#?$!-])(?:\[[^\]]*\])?([^}]?)")


class Shared:
    """What the scanners of one text share: how deep they are and what they found already."""

    __slots__ = ("depth", "ends", "sums")

    def __init__(self) -> None:
        self.depth = 0
        self.ends: dict[int, int] = {}
        self.sums: dict[int, int | None] = {}

    def deeper(self) -> None:
        """Count one level of nesting."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise OverLimit("it is nested too deeply to be followed")


def end_of_backtick(source: str, start: int) -> int:
    """Index after the backtick that closes a substitution whose text begins at ``start``."""
    position = start
    while position < len(source):
        if source[position] == "\\":
            position += 2
        elif source[position] == "`":
            return position + 1
        else:
            position += 1
    raise Unreadable("a backtick is not closed")


def end_of_ansi(source: str, start: int) -> int:
    """Index after the quote that closes a ``$'...'`` string whose text begins at ``start``."""
    position = start
    while position < len(source):
        if source[position] == "\\":
            position += 2
        elif source[position] == "'":
            return position + 1
        else:
            position += 1
    raise Unreadable("a quote is not closed")


class Scanner(abc.ABC):
    """Finds ends of quotes and words in one text; lists of commands are its subclass's matter."""

    def __init__(self, source: str, shared: Shared) -> None:
        self.source = source
        self.shared = shared
        self.at_start = True

    @abc.abstractmethod
    def nested(self, start: int) -> int:
        """Index after the ``)`` that closes the list of commands that begins at ``start``."""

    def skip_word(self, position: int) -> int:
        """Index after the word that begins here."""
        source, start = self.source, position
        while position < len(source):
            run = _PLAIN_RUN.match(source, position)
            if run:
                position = run.end()
                continue
            char = source[position]
            if char in "<>" and source.startswith("(", position + 1):
                position = self.nested(position + 2)
            elif char == "(" and position > start and self._opens_in_word(start, position):
                position = self.nested(position + 1)
            elif char in " \t\n;|&<>()":
                break
            elif char in "\\'\"`$":
                position = self.skip_quoted(position)
            else:
                position += 1
        return position

    def _opens_in_word(self, start: int, position: int) -> bool:
        before = self.source[start:position]
        if before[-1] == "=":
            return ASSIGNMENT.fullmatch(before) is not None
        return before[-1] in "?*+@!" and not (self.at_start and before == "!")

    def skip_quoted(self, position: int) -> int:
        """Index after the quote, escape or expansion that begins here."""
        source = self.source
        char = source[position]
        if char == "\\":
            return min(position + 2, len(source))
        if char == "'":
            closing = source.find("'", position + 1)
            if closing < 0:
                raise Unreadable("a quote is not closed")
            return closing + 1
        if char == '"':
            return self.double(position + 1)
        if char == "`":
            return end_of_backtick(source, position + 1)
        return self._dollar(position, quoted=False)

    def _dollar(self, position: int, *, quoted: bool) -> int:
        source = self.source
        follows = source[position + 1 : position + 2]
        if follows == "(":
            if source.startswith("(", position + 2):
                end = self.arithmetic(position + 3)
                if end is not None:
                    return end
            return self.nested(position + 2)
        if follows == "{":
            return self.parameter(position + 2, quoted=quoted)
        if follows == "[":
            closing = source.find("]", position + 2)
            if closing < 0:
                raise Unreadable("an arithmetic expression is not closed")
            return closing + 1
        if follows == "'" and not quoted:
            return end_of_ansi(source, position + 2)
        return position + 1

    def double(self, position: int) -> int:
        """Index after the double quote that closes the string whose text begins here."""
        source = self.source
        while True:
            found = _IN_DOUBLE.search(source, position)
            if found is None:
                raise Unreadable("a quote is not closed")
            position = found.start()
            char = source[position]
            if char == '"':
                return position + 1
            if char == "\\":
                position += 2
            elif char == "`":
                position = end_of_backtick(source, position + 1)
            else:
                position = self._dollar(position, quoted=True)

    def arithmetic(self, position: int) -> int | None:
        """Index after the ``))`` of an arithmetic expression whose text begins here; None when it is two groups."""
        source = self.source
        known = self.shared.sums.get(position, -1)
        if known != -1:
            return known
        start, depth = position, 2
        self.shared.deeper()
        stop = min(len(source), position + _ARITHMETIC_REACH)
        end: int | None = None
        while position < stop:
            char = source[position]
            if char == ")":
                depth -= 1
                if depth <= 1:
                    end = position + 2 if source.startswith("))", position) else None
                    break
                position += 1
            elif char in "\\'\"`$":
                position = self.skip_quoted(position)
            else:
                depth += char == "("
                position += 1
        self.shared.depth -= 1
        self.shared.sums[start] = end
        return end

    def parameter(self, position: int, *, quoted: bool) -> int:
        """Index after the brace that closes the parameter expansion whose text begins here."""
        source = self.source
        self.shared.deeper()
        operator = _PARAMETER_HEAD.match(source, position)
        quotes = not quoted or (operator is not None and operator[1][:1] in ("#", "%", "/", "^", ","))
        while True:
            found = _IN_BRACES.search(source, position)
            if found is None:
                raise Unreadable("a parameter expansion is not closed")
            position = found.start()
            char = source[position]
            if char == "}":
                self.shared.depth -= 1
                return position + 1
            if char == "'" and not quotes:
                position += 1
            elif char == "$":
                position = self._dollar(position, quoted=quoted)
            else:
                position = self.skip_quoted(position)
