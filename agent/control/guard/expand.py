"""From a word as written to the fields that the program gets, as far as the text tells."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent.control.guard.expressions import Expression
from agent.control.guard import braces, parameters, prepass
from agent.control.guard.exceptions import OverLimit
from agent.control.guard.marks import CHANNEL, ONE, SET, STAR, UNKNOWN, Stream
from agent.control.guard.state import State, Value

#: Characters that one word may become; longer ones are no word of a command.
MAX_CHARACTERS = 65_536

_PLAIN = Expression(r"[A-Za-z0-9_./:,@%+=-]*\Z")
_RUN = Expression(r"[^\\'\"`$*?\[<>~]+")
_DOUBLE_RUN = Expression(r"[^\\\"`$]+")
_NAME = Expression(r"[A-Za-z_]\w*|[0-9@*#?$!_-]")
_TILDE = Expression(r"~([A-Za-z_][\w.-]*|\+|-)?(?=/|\Z|:)")
#: bash looks for a tilde after the sign of anything that looks like an assignment.
_NAMED = Expression(r"[A-Za-z_]\w*=(?=~)")
_GLOB = str.maketrans({"*": STAR, "?": ONE, "[": SET})
_ANSI = Expression(r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.))", re.DOTALL)
_ANSI_NAMED = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))

#: Runs a command substitution and gives what it prints.
Substitute = Callable[[str, State], Stream]
#: Runs the command of a process substitution; gives the index of its channel. ``<`` reads from it.
OpenChannel = Callable[[str, str, State], int]


def ansi(text: str) -> str:
    """``$'...'`` escapes, as in C."""
    return _ANSI.sub(_ansi_one, text) if "\\" in text else text


def _ansi_one(match: re.Match[str]) -> str:
    named, octal, byte, short, long, control = match.groups()
    if named:
        return _ANSI_NAMED[named]
    if control:
        return chr(ord(control) & 0x1F)
    code = int(octal, 8) if octal else int(byte or short or long, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 and not 0xE000 <= code < 0xF900 else "\ufffd"


class Expander:
    """Expands words; substitutions go back to the evaluator."""

    def __init__(self, substitute: Substitute, open_channel: OpenChannel) -> None:
        self._substitute = substitute
        self._open_channel = open_channel

    def fields(self, raw: str, state: State) -> list[str]:
        """The fields of a word of a command: braces, tilde, expansions, splitting, quote removal.

        Raises:
            OverLimit: the word becomes too many or too long.
        """
        if _PLAIN.match(raw):
            return [raw]
        words = braces.expand(raw) if "{" in raw else [raw]
        found: list[str] = []
        for word in words:
            found += _Scan(self, state, splits=True).word(word)
            if len(found) > braces.MAX_FIELDS:
                raise OverLimit("a word expands to too many fields")
        return found

    def single(self, raw: str, state: State) -> str:
        """One text without splitting or globs: a value, a target, a here-string."""
        if _PLAIN.match(raw):
            return raw
        fields = _Scan(self, state, splits=False).word(raw)
        return " ".join(fields)

    def document(self, body: str, state: State) -> str:
        """A here-document's body whose delimiter was not quoted."""
        scan = _Scan(self, state, splits=False)
        scan.double(body, 0, ends=False)
        return "".join(scan.current)

    def substitute(self, text: str, state: State) -> str:
        value = self._substitute(text, state).value()
        return value.rstrip("\n")

    def channel(self, direction: str, text: str, state: State) -> str:
        return f"/dev/fd/{CHANNEL}{self._open_channel(direction, text, state)}{CHANNEL}"


class _Scan:
    """One pass over a word."""

    def __init__(self, expander: Expander, state: State, *, splits: bool) -> None:
        self.expander = expander
        self.state = state
        self.splits = splits
        self.done: list[str] = []
        self.current: list[str] = []
        self.open = False
        self.size = 0

    def word(self, raw: str) -> list[str]:
        position = 0
        named = _NAMED.match(raw)
        if named:
            self._keep(named[0])
            position = named.end()
        tilde = _TILDE.match(raw, position)
        if tilde:
            self._keep(self._home(tilde[1]))
            position = tilde.end()
        while position < len(raw):
            position = self._part(raw, position)
        self._close()
        return self.done

    def _home(self, user: str | None) -> str:
        assume = self.state.assume
        if user is None or user == assume.user:
            value = self.state.lookup("HOME")
            return value if isinstance(value, str) and user is None else assume.home
        if user == "+":
            return self.state.cwd
        if user == "-":
            return UNKNOWN
        return "/root" if user == "root" else f"/home/{user}"

    def _part(self, raw: str, position: int) -> int:
        run = _RUN.match(raw, position)
        if run:
            self._keep(run[0])
            return run.end()
        char = raw[position]
        if char == "\\":
            if raw[position + 1 : position + 2] != "\n":
                self._keep(raw[position + 1 : position + 2] or "\\")
            return position + 2
        if char == "'":
            end = raw.find("'", position + 1)
            end = len(raw) if end < 0 else end
            self._keep(raw[position + 1 : end])
            return end + 1
        if char == '"':
            return self.double(raw, position + 1, ends=True)
        if char == "`":
            end = prepass.end_of_backtick(raw, position + 1)
            self._substitution(_unescape(raw[position + 1 : end - 1], quoted=False), quoted=False)
            return end
        if char == "$":
            return self._dollar(raw, position, quoted=False)
        if char in "<>" and raw.startswith("(", position + 1):
            end = prepass.end_of_substitution(raw, position + 2)
            self._keep(self.expander.channel(char, raw[position + 2 : end - 1], self.state))
            return end
        self._keep(char.translate(_GLOB) if self.splits else char)
        return position + 1

    def double(self, raw: str, position: int, *, ends: bool) -> int:
        """Text inside double quotes, or a here-document's body (``ends`` false: no quote closes it)."""
        self.open = True
        while position < len(raw):
            run = _DOUBLE_RUN.match(raw, position)
            if run:
                self._keep(run[0])
                position = run.end()
                continue
            char = raw[position]
            if char == '"':
                if ends:
                    return position + 1
                self._keep(char)
                position += 1
            elif char == "\\":
                follows = raw[position + 1 : position + 2]
                if follows and follows in ('$`"\\' if ends else "$`\\"):
                    self._keep(follows)
                elif follows != "\n":
                    self._keep(f"\\{follows}")
                position += 2
            elif char == "`":
                end = prepass.end_of_backtick(raw, position + 1)
                self._substitution(_unescape(raw[position + 1 : end - 1], quoted=ends), quoted=True)
                position = end
            else:
                position = self._dollar(raw, position, quoted=True)
        return position

    def _dollar(self, raw: str, position: int, *, quoted: bool) -> int:
        follows = raw[position + 1 : position + 2]
        if follows == "(":
            return self._parenthesis(raw, position, quoted=quoted)
        if follows == "{":
            end = prepass.end_of_parameter(raw, position + 2, quoted=quoted)
            content = raw[position + 2 : end - 1]
            self._value(parameters.expand(content, self.state, self._operand(quoted)), quoted=quoted, whole=_whole(content))
            return end
        if follows == "[":
            end = raw.find("]", position)
            self._arithmetic(raw[position + 2 : end])
            return end + 1
        if follows == "'" and not quoted:
            end = prepass.end_of_ansi(raw, position + 2)
            self._keep(ansi(raw[position + 2 : end - 1]))
            return end
        if follows == '"' and not quoted:
            return self.double(raw, position + 2, ends=True)
        name = _NAME.match(raw, position + 1)
        if name is None:
            self._keep("$")
            return position + 1
        self._value(parameters.value_of(name[0], None, self.state), quoted=quoted, whole=name[0])
        return name.end()

    def _operand(self, quoted: bool) -> Callable[[str], str]:
        def expand(word: str) -> str:
            scan = _Scan(self.expander, self.state, splits=not quoted)
            if quoted and not any(char in word for char in "\"'"):
                scan.double(word, 0, ends=False)
                return "".join(scan.current)
            return " ".join(scan.word(word))

        return expand

    def _parenthesis(self, raw: str, position: int, *, quoted: bool) -> int:
        if raw.startswith("(", position + 2):
            end = prepass.end_of_arithmetic(raw, position + 3)
            if end is not None:
                self._arithmetic(raw[position + 3 : end - 2])
                return end
        end = prepass.end_of_substitution(raw, position + 2)
        self._substitution(raw[position + 2 : end - 1], quoted=quoted)
        return end

    def _arithmetic(self, text: str) -> None:
        """An expression's value is not computed; the substitutions in it run."""
        if "$(" in text or "`" in text:
            _Scan(self.expander, self.state, splits=False).double(text, 0, ends=False)
        self._keep(text.strip() if text.strip().isdigit() else UNKNOWN)

    def _substitution(self, text: str, *, quoted: bool) -> None:
        self._value(self.expander.substitute(text, self.state), quoted=quoted, whole="")

    def _value(self, value: Value, *, quoted: bool, whole: str) -> None:
        if isinstance(value, list):
            self._elements(value, quoted=quoted, joined=whole == "*")
        elif quoted or not self.splits:
            self._keep(value if isinstance(value, str) else str(value))
        else:
            self._split(str(value))

    def _elements(self, values: list[str], *, quoted: bool, joined: bool) -> None:
        if joined and quoted or not self.splits:
            self._keep(" ".join(values))
            return
        for index, one in enumerate(values):
            if index:
                self._close()
            if quoted:
                self._keep(one)
            else:
                self._split(one)

    def _split(self, value: str) -> None:
        separators = self.state.lookup("IFS")
        if not isinstance(separators, str) or not separators:
            separators = " \t\n" if separators != "" else ""
        value = value.translate(_GLOB)
        if not separators or not any(char in value for char in separators):
            if value:
                self._keep(value)
            return
        pieces = re.split(f"[{re.escape(separators)}]+", value)
        for index, piece in enumerate(pieces):
            if index:
                self._close()
            if piece:
                self._keep(piece)

    def _keep(self, text: str) -> None:
        self.size += len(text)
        if self.size > MAX_CHARACTERS:
            raise OverLimit("a word is too long")
        self.current.append(text)
        self.open = True

    def _close(self) -> None:
        if self.open:
            self.done.append("".join(self.current))
            self.current.clear()
            self.open = False


def _whole(content: str) -> str:
    return "*" if content == "*" or content.endswith("[*]") else "@"


def _unescape(text: str, *, quoted: bool) -> str:
    """The command of a backtick substitution: backslash keeps its meaning but before these."""
    if "\\" not in text:
        return text
    return re.sub(r'\\([`\\$"])' if quoted else r"\\([`\\$])", r"\1", text)
