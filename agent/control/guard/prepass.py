"""The pre-pass: one quote-aware scan that leaves a grammar nothing to lose.

tree-sitter-bash reads structure well and words badly: backticks, brace expansions, here-documents that share a line
and much else end in an error or, worse, in a tree without the command. So words never reach it. This scan follows
bash's own rules for quotes, substitutions, comments, continued lines and here-documents, and writes the command
again with every word that is not plain replaced by a numbered mark. What is left are operators, keywords and plain
words; what was lifted out is kept as written and expanded by :mod:`agent.control.guard.expand`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agent.control.guard.exceptions import Unreadable
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import CLOSE, OPEN
from agent.control.guard.quoting import ASSIGNMENT, Scanner, Shared

_PLAIN_WORD = Expression(r"[A-Za-z0-9_./:,@%+=-]+(?=[ \t\n;|&<>()]|\Z)")

_BLANKS = Expression(r"(?:[ \t]|\\\n)+")

_SUBSCRIPT = Expression(r"[A-Za-z_]\w*\[")


_OPERATOR = Expression(r"<<<|<<-|<<|<>|<&|>>|>\||>&|&>>|&>|&&|\|\||\|&|;;&|;;|;&|[<>;|&]")
_DELIMITER = Expression(r"(?:[^\s\\'\"`$()<>;|&]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$(?=['\"])|\$)+", re.DOTALL)
_COPROC = Expression(r"\s+[A-Za-z_]\w*(?=\s+[{(])")
_TIME = Expression(r"[ \t]+(?:-p[ \t]+)?(?!-)")
_FOR_HEAD = Expression(r"[ \t]*\(\(")

_STAYS_AT_START = frozenset(("then", "do", "else", "elif", "if", "while", "until", "{"))
_RESERVED = _STAYS_AT_START | frozenset(
    ("!", "}", "fi", "done", "esac", "in", "case", "for", "select", "function", "time")
)


@dataclass(frozen=True, slots=True)
class HereDocument:
    """A here-document taken out of the text.

    Attributes:
        delimiter: as it ends the body.
        body: as written, leading tabs dropped for ``<<-``.
        expands: whether the shell expands the body (its delimiter was not quoted).
    """

    delimiter: str
    body: str
    expands: bool


@dataclass(slots=True)
class Script:
    """A command without its words.

    Attributes:
        text: operators, keywords, plain words and marks.
        words: what each mark stands for, as written.
        documents: the here-documents, by number.
    """

    text: str = ""
    words: list[str] = field(default_factory=list)
    documents: list[HereDocument] = field(default_factory=list)

    def written(self, text: str) -> str:
        """A part of :attr:`text` with its words put back."""
        return _MARK.sub(self._restore, text) if OPEN in text else text

    def _restore(self, match: re.Match[str]) -> str:
        if match[1]:
            return f"<{self.documents[int(match[2])].delimiter}"
        return self.words[int(match[2])]


_MARK = Expression(f"{OPEN}(h?)(\\d+){CLOSE}")


def lift(source: str) -> Script:
    """Replace the words of a command by marks.

    Raises:
        Unreadable: a quote, bracket or substitution is not closed.
        OverLimit: the nesting is too deep.
    """
    lexer = _Lexer(source, Shared())
    lexer.commands(0, nested=False)
    lexer.script.text = "".join(lexer.out)
    return lexer.script


def end_of_substitution(source: str, start: int) -> int:
    """Index after the ``)`` that closes the command substitution whose text begins at ``start``."""
    return _Lexer(source, Shared()).nested(start)


def end_of_arithmetic(source: str, start: int) -> int | None:
    """Index after the ``))`` of an arithmetic expression that begins at ``start``; None when it is none."""
    return _Lexer(source, Shared()).arithmetic(start)


def end_of_parameter(source: str, start: int, *, quoted: bool) -> int:
    """Index after the ``}`` of a parameter expansion whose text begins at ``start``."""
    return _Lexer(source, Shared()).parameter(start, quoted=quoted)


def end_of_word(source: str, start: int) -> int:
    """Index after the word that begins at ``start``."""
    return _Lexer(source, Shared()).skip_word(start)


def end_of_part(source: str, start: int) -> int:
    """Index after the quote, escape or expansion that begins at ``start``."""
    return _Lexer(source, Shared()).skip_quoted(start)


class _Lexer(Scanner):
    """Scans one list of commands; substitutions in it are scanned by further ones."""

    def __init__(self, source: str, shared: Shared) -> None:
        super().__init__(source, shared)
        self.script = Script()
        self.out: list[str] = []
        self.pending: list[tuple[int, str, bool, bool]] = []
        self.after_redirect = False
        self.names_function = False
        #: Words of a loop's head that still come: its variable, then ``in``.
        self.loop_head = 0
        #: Open groups: ``(`` or ``case``; of a case, whether patterns are being read.
        self.groups: list[list[object]] = []

    # -- lists of commands ---------------------------------------------------------------------------------------------

    def nested(self, start: int) -> int:
        known = self.shared.ends.get(start)
        if known is not None:
            return known
        self.shared.deeper()
        end = _Lexer(self.source, self.shared).commands(start, nested=True)
        self.shared.depth -= 1
        self.shared.ends[start] = end
        return end

    def commands(self, position: int, *, nested: bool) -> int:
        source, length = self.source, len(self.source)
        while position < length:
            char = source[position]
            if char in " \t" or source.startswith("\\\n", position):
                blanks = _BLANKS.match(source, position)
                position = blanks.end() if blanks else position + 1
                self.out.append(" ")
            elif char == "\n":
                self.out.append("\n")
                position = self._bodies(position + 1)
                self._restart()
            elif char == "#":
                newline = source.find("\n", position)
                position = length if newline < 0 else newline
            elif char in "<>" and source.startswith("(", position + 1):
                position = self._word(position)
            elif char in "<>&|;":
                position = self._operator(position)
            elif char == "(":
                position = self._open(position)
            elif char == ")":
                if nested and not self.groups:
                    return position + 1
                self._close()
                position += 1
            else:
                position = self._word(position)
        if nested or self.groups:
            raise Unreadable("a bracket or a case is not closed")
        self._bodies(length)
        return length

    def _restart(self) -> None:
        self.at_start = True
        self.after_redirect = False

    def _operator(self, position: int) -> int:
        match = _OPERATOR.match(self.source, position)
        operator = match[0] if match else self.source[position]
        position += len(operator)
        if operator in ("<<", "<<-"):
            return self._here(position, strips=operator == "<<-")
        if operator in (";;&", ";&"):
            operator = ";;"
        if operator == ";;" and self.groups and self.groups[-1][0] == "case":
            self.groups[-1][1] = "patterns"
        if operator == "<>":
            operator = ">|"
        self.out.append(operator)
        if "<" in operator or ">" in operator:
            self.after_redirect = True
        else:
            self._restart()
        return position

    def _open(self, position: int) -> int:
        group = self.groups[-1] if self.groups else None
        if group is not None and group[0] == "case" and group[1] == "patterns":
            self.out.append("(")
            return position + 1
        if self.at_start and self.source.startswith("((", position):
            end = self.arithmetic(position + 2)
            if end is not None:
                self.out.append("test ")
                self._mark(self.source[position + 2 : end - 2])
                self.at_start = False
                return end
        self.shared.deeper()
        self.groups.append(["(", None])
        self.out.append("(")
        self._restart()
        return position + 1

    def _close(self) -> None:
        if not self.groups:
            raise Unreadable("a bracket is closed that was not opened")
        if self.groups[-1][0] == "case":
            self.groups[-1][1] = "commands"
        else:
            self.groups.pop()
            self.shared.depth -= 1
        self.out.append(")")
        self._restart()

    # -- here-documents ------------------------------------------------------------------------------------------------

    def _here(self, position: int, *, strips: bool) -> int:
        blanks = _BLANKS.match(self.source, position)
        position = blanks.end() if blanks else position
        match = _DELIMITER.match(self.source, position)
        if match is None:
            raise Unreadable("a here-document has no delimiter")
        raw = match[0]
        quoted = any(char in raw for char in "\\'\"")
        number = len(self.script.documents)
        self.script.documents.append(HereDocument("", "", expands=False))
        self.pending.append((number, _unquote(raw), strips, not quoted))
        self.out.append(f"<{OPEN}h{number}{CLOSE}")
        return match.end()

    def _bodies(self, position: int) -> int:
        for number, delimiter, strips, expands in self.pending:
            lines: list[str] = []
            while position < len(self.source):
                newline = self.source.find("\n", position)
                end = len(self.source) if newline < 0 else newline
                line = self.source[position:end]
                position = min(end + 1, len(self.source))
                if strips:
                    line = line.lstrip("\t")
                if line == delimiter:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            self.script.documents[number] = HereDocument(delimiter, body, expands)
        self.pending.clear()
        return position

    # -- words ---------------------------------------------------------------------------------------------------------

    def _mark(self, raw: str) -> None:
        self.out.append(f"{OPEN}{len(self.script.words)}{CLOSE}")
        self.script.words.append(raw)

    def _word(self, position: int) -> int:  # noqa: PLR0911 - one way out a case
        source = self.source
        plain = _PLAIN_WORD.match(source, position)
        if plain and source.startswith("=(", plain.end() - 1):
            plain = None
        end = plain.end() if plain else self.skip_word(position)
        raw = source[position:end]
        at_start, target = self.at_start, self.after_redirect
        self.after_redirect = False
        if target:
            self._emit(raw, plain=plain is not None)
            return end
        if self.names_function:
            self.names_function = False
            self.out.append(raw)
            return end
        case = self.groups[-1] if self.groups and self.groups[-1][0] == "case" else None
        if case is not None and self._in_case(case, raw, at_start=at_start):
            self.out.append(raw)
            return end
        if at_start:
            special = self._at_start(raw, end)
            if special is not None:
                return special
            assignment = ASSIGNMENT.match(raw)
            if assignment:
                self.out.append(assignment[0])
                self._emit(raw[assignment.end() :], plain=plain is not None)
                return end
            subscript = _SUBSCRIPT.match(raw)
            if (subscript and "]=" in raw) or (subscript and "]+=" in raw):
                self.out.append("_=")
                self._mark(raw)
                return end
        self.at_start = False
        head, self.loop_head = self.loop_head, max(0, self.loop_head - 1)
        if (raw == "in" and head == 1) or head == 2:
            self.out.append(raw)
        else:
            self._emit(raw, plain=plain is not None and raw not in _RESERVED)
        return end

    def _emit(self, raw: str, *, plain: bool) -> None:
        if plain:
            self.out.append(raw)
        elif raw:
            self._mark(raw)

    def _in_case(self, case: list[object], raw: str, *, at_start: bool) -> bool:
        if case[1] == "in" and raw == "in":
            case[1] = "patterns"
            self._restart()
            return True
        if raw == "esac" and (case[1] == "patterns" or at_start):
            self.groups.pop()
            self.at_start = False
            return True
        if case[1] == "patterns":
            self.at_start = False
        return False

    def _at_start(self, raw: str, end: int) -> int | None:  # noqa: PLR0911 - one way out a case
        """Handle a keyword in command position; the index to go on from, or None for an ordinary word."""
        source = self.source
        if raw in _STAYS_AT_START:
            self.out.append(raw)
            return end
        if raw == "!":
            return end  # the grammar takes a keyword after it for a program; what it negates runs either way
        if raw == "[[":
            return self._double_bracket(end)
        if raw == "[":
            self.out.append("test")
        elif raw == "time":
            skipped = _TIME.match(source, end)
            if skipped is None:
                return None
            return skipped.end()
        elif raw == "coproc":
            named = _COPROC.match(source, end)
            return named.end() if named else end
        elif raw == "case":
            self.groups.append(["case", "in"])
            self.out.append(raw)
        elif raw == "for" and (head := _FOR_HEAD.match(source, end)):
            return self._arithmetic_for(head.end())
        elif raw == "function":
            self.out.append(raw)
            self.names_function = True
            return end
        elif raw in ("for", "select", "}", "fi", "done"):
            self.out.append(raw)
            self.loop_head = 2 if raw in ("for", "select") else 0
        else:
            return None
        self.at_start = False
        return end

    def _arithmetic_for(self, position: int) -> int:
        end = self.arithmetic(position)
        if end is None:
            raise Unreadable("a loop's head is not closed")
        self.out.append("for _ in ")
        self._mark(self.source[position : end - 2])
        rest = self.source[end:].lstrip(" \t")
        if rest[:1] not in (";", "\n"):
            self.out.append(";")
        self._restart()
        return end

    def _double_bracket(self, position: int) -> int:
        start = position
        while position < len(self.source):
            char = self.source[position]
            if self.source.startswith("]]", position) and self.source[position - 1] in " \t\n":
                self.out.append("test ")
                self._mark(self.source[start:position].strip())
                self.at_start = False
                return position + 2
            if char in " \t\n;|&()<>":
                position += 1
            else:
                position = self.skip_word(position)
        raise Unreadable("[[ is not closed")


def _unquote(raw: str) -> str:
    """A here-document's delimiter without its quotes."""
    parts = re.findall(r"\\(.)|'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\$(?=['\"])|([^\\'\"])", raw, re.DOTALL)
    return "".join("".join(part) for part in parts)
