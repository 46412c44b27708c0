"""Static evaluation: walk a parsed command in the order in which bash would run it, and hand every simple command on.

Nothing is executed. Branches are all taken, loops run once for each value that stands in the text, functions run
when they are called (and once with unknown arguments when they are not). What a command would print is followed for
the few programs that only move text about, so that a word, a shell or a client that reads it is judged by what it
gets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from agent.control.guard import builtins, compound, contents, streams, unwrap
from agent.control.guard.command import HERE, Command, Redirect, Where, base_name
from agent.control.guard.exceptions import OverLimit, Unreadable
from agent.control.guard.expand import Expander
from agent.control.guard.expressions import Expression
from agent.control.guard.marks import EMPTY, NOTHING_KNOWN, Stream, has_mark
from agent.control.guard.parse import Unit, parse
from agent.control.guard.state import State

if TYPE_CHECKING:
    from tree_sitter import Node

#: Wrappers, shells and substitutions inside one another.
MAX_DEPTH = 14
#: Simple commands of one text, loops and calls counted as often as they run.
MAX_COMMANDS = 5_000
#: Statements inside statements (``if`` in ``while`` in ``case``...).
MAX_TREE = 60

#: Rounds of all loops and calls of functions together.
MAX_REPEATS = 512

#: Redirections that stand after a list or a pipeline and belong to its last command: resolved when that one runs.
Pending = tuple["Node", ...]


class Judge(Protocol):
    """Takes what the evaluation finds."""

    def command(self, command: Command) -> None:
        """Judge a simple command."""

    def fact(self, name: str, command: Command, resolved: str = "") -> None:
        """Note something that no argument list shows; ``name`` is one of the rules' facts."""


_ASSIGN = Expression(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)


class Evaluator:
    """Evaluates one command; made for it and thrown away."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.expander = Expander(self._substitute, self._channel)
        self.commands = 0
        #: Workspace files that are run as a program or a script, in order.
        self.scripts: dict[str, None] = {}
        self.depth = 0
        self._tree = 0
        self._repeats = 0
        self.where = HERE
        self._running: list[str] = []
        self._called: set[tuple[int, int]] = set()
        #: Functions defined so far, by where their bodies stand.
        self.defined: dict[tuple[int, int], tuple[Unit, Node, State]] = {}

    # -- texts ---------------------------------------------------------------------------------------------------------

    def run(self, text: str, state: State) -> Stream:
        """Evaluate a whole command, and the functions that it defines and never calls."""
        out = self.text(text, state)
        while left := [key for key in self.defined if key not in self._called]:
            for key in left:
                self._called.add(key)
                self.statement(*self.defined[key])
        return out

    def text(self, text: str, state: State, where: Where | None = None) -> Stream:
        """Evaluate shell text in a state.

        Raises:
            Unreadable: it cannot be followed to its end.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise OverLimit("it wraps too many commands in one another")
        before = self.where
        if where is not None:
            self.where = where
        try:
            unit = parse(text)
            return self.sequence(unit, unit.parts(unit.root), state)
        finally:
            self.depth -= 1
            self.where = before

    def argv(self, argv: list[str], like: Command, where: Where | None = None, stdin: Stream | None = None) -> Stream:
        """Evaluate a command that a wrapper starts with these fields."""
        return self.nested(
            Command(
                argv,
                like.state,
                segment=like.segment,
                stdin=like.stdin if stdin is None else stdin,
                piped=like.piped if stdin is None else stdin is not EMPTY,
                assigns=like.assigns,
                where=where or like.where,
            )
        )

    def nested(self, command: Command) -> Stream:
        """Evaluate a command inside another one.

        Raises:
            OverLimit: too many of them are wrapped in one another.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise OverLimit("it wraps too many commands in one another")
        try:
            return self.simple(command)
        finally:
            self.depth -= 1

    def _substitute(self, text: str, state: State) -> Stream:
        return self.text(text, state.copy())

    def _channel(self, direction: str, text: str, state: State) -> int:
        inner = state.copy()
        world = state.world
        if direction == ">":
            inner.stdin = NOTHING_KNOWN
        world.channels.append(self.text(text, inner))
        return len(world.channels) - 1

    # -- statements ----------------------------------------------------------------------------------------------------

    def sequence(self, unit: Unit, nodes: list[Node], state: State) -> Stream:
        """Evaluate statements one after the other."""
        out = EMPTY
        for node in nodes:
            if node.type not in compound.SKIPPED:
                out = out.plus(self.statement(unit, node, state))
        return out

    def statement(self, unit: Unit, node: Node, state: State, pending: Pending = ()) -> Stream:
        """Evaluate one statement; ``pending`` redirections belong to its last command."""
        handler = _STATEMENTS.get(node.type)
        if handler is None:
            raise Unreadable("a part of it was not understood")
        self._tree += 1
        if self._tree > MAX_TREE:
            raise OverLimit("it is nested too deeply to be followed")
        try:
            if not pending or node.type in _PASS_ON:
                return handler(self, unit, node, state, pending)
            return self._group(handler, unit, node, state, pending)
        finally:
            self._tree -= 1

    def _group(self, handler: _Handler, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
        """A compound command with redirections of its own."""
        redirects, extra, stdin = self._redirects(unit, pending, state)
        if extra:
            raise Unreadable("a part of it was not understood")
        self._emit([], {}, state, " ".join(unit.written(one) for one in pending), redirects, None)
        before = state.stdin
        if stdin is not None:
            state.stdin = stdin
        out = handler(self, unit, node, state, ())
        state.stdin = before
        return self._store(out, state, redirects)

    def _redirected(self, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
        parts = unit.parts(node)
        found = tuple(part for part in parts if part.type in _REDIRECTS)
        body = next((part for part in parts if part.type not in _REDIRECTS), None)
        if body is not None:
            return self.statement(unit, body, state, (*found, *pending))
        redirects, argv, stdin = self._redirects(unit, (*found, *pending), state)
        fields = [one for raw in argv for one in self.expander.fields(raw, state)]
        return self._emit(fields, {}, state, unit.written(node), redirects, stdin)

    def _redirects(
        self, unit: Unit, nodes: Pending, state: State
    ) -> tuple[tuple[Redirect, ...], list[str], Stream | None]:
        """Resolve redirections: themselves, words after their targets that belong to the command, and its input."""
        found: list[Redirect] = []
        words: list[str] = []
        stdin: Stream | None = None
        for node in nodes:
            one, extra, given = self._redirect(unit, node, state)
            found.append(one)
            words += extra
            stdin = given if given is not None else stdin
        return tuple(found), words, stdin

    def _redirect(self, unit: Unit, node: Node, state: State) -> tuple[Redirect, list[str], Stream | None]:
        operator, descriptor = "", ""
        words: list[str] = []
        for part in unit.parts(node):
            if part.type == "file_descriptor":
                descriptor = unit.raw(part)
            elif not operator:
                operator = part.type
            else:
                words.append(unit.raw(part))
        if not words:
            return Redirect(operator, "", descriptor), [], None
        raw, extra = words[0], words[1:]
        document = unit.document(raw)
        if document is not None:
            body = self.expander.document(document.body, state) if document.expands else document.body
            return Redirect("<<", "", descriptor), extra, Stream(body)
        target = self.expander.single(raw, state)
        if operator == "<<<":
            return Redirect("<<<", "", descriptor), extra, Stream(f"{target}\n")
        if operator.endswith("&") and (target.isdigit() or target == "-"):
            return Redirect(operator, "", descriptor), extra, None
        path = state.resolve(target)
        given = contents.file_content(path, state) if operator in ("<", "<>") and descriptor in ("", "0") else None
        return Redirect(operator, path, descriptor), extra, given

    # -- compound commands ---------------------------------------------------------------------------------------------

    def repeat(self) -> None:
        """Count one round of a loop or one call of a function."""
        self._repeats += 1
        if self._repeats > MAX_REPEATS:
            raise OverLimit("its loops run too often to be followed")

    def call(self, name: str, command: Command) -> Stream:
        """Run a function's body with a command's arguments."""
        unit, body = command.state.functions[name]
        self._called.add((id(unit), body.start_byte))
        state = command.state
        if self.depth >= MAX_DEPTH or name in self._running:
            return NOTHING_KNOWN
        self.repeat()
        self.depth += 1
        self._running.append(name)
        positional, stdin = state.positional, state.stdin
        state.positional, state.stdin = command.argv[1:], command.stdin
        try:
            return self.statement(unit, body, state)
        finally:
            state.positional, state.stdin = positional, stdin
            self._running.pop()
            self.depth -= 1

    # -- simple commands -----------------------------------------------------------------------------------------------

    def _command(self, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
        raws: list[str] = []
        assigns: list[str] = []
        inside: list[Node] = []
        text = unit.written(node)
        for part in unit.parts(node):
            kind = part.type
            if kind in _REDIRECTS:
                inside.append(part)
            elif kind == "variable_assignment":
                (assigns if node.type == "command" else raws).append(self._assignment(unit, part))
            else:
                raws.append(unit.raw(part))
        if pending:
            text = f"{text} {' '.join(unit.written(one) for one in pending)}"
        redirects, extra, stdin = (
            self._redirects(unit, (*inside, *pending), state) if inside or pending else ((), [], None)
        )
        raws += extra
        if raws and raws[0] in state.aliases:
            return self._alias(raws, state, redirects, stdin)
        state.choices, state.pick = 1, 0
        out = self._expanded(raws, assigns, state, text, redirects, stdin)
        for pick in range(1, min(state.choices, 8)):
            state.pick = pick
            self._expanded(raws, assigns, state, text, redirects, stdin)
        state.pick = 0
        return out

    def _expanded(
        self,
        raws: list[str],
        assigns: list[str],
        state: State,
        text: str,
        redirects: tuple[Redirect, ...],
        stdin: Stream | None,
    ) -> Stream:
        argv: list[str] = []
        for raw in raws:
            argv += self.expander.fields(raw, state)
        values: dict[str, str] = {}
        for raw in assigns:
            self._assign(raw, state, values if argv else None)
        return self._emit(argv, values, state, text, redirects, stdin)

    def _alias(self, raws: list[str], state: State, redirects: tuple[Redirect, ...], stdin: Stream | None) -> Stream:
        inner = state.copy()
        text = f"{inner.aliases.pop(raws[0])} {' '.join(raws[1:])}"
        if stdin is not None:
            inner.stdin = stdin
        return self._store(self.text(text, inner), state, redirects)

    def _assignment(self, unit: Unit, node: Node) -> str:
        """``name=value`` as written."""
        parts = unit.parts(node)
        text = unit.source[node.start_byte : node.end_byte].decode()
        if len(parts) < 3:
            return text
        head = unit.source[node.start_byte : parts[-1].start_byte].decode()
        raw = unit.raw(parts[-1])
        return raw if head == "_=" and "[" in raw else f"{head}{raw}"

    def _assignments(self, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
        raws = [
            self._assignment(unit, part)
            for part in ([node] if node.type == "variable_assignment" else unit.parts(node))
        ]
        state.choices, state.pick = 1, 0
        for raw in raws:
            self._assign(raw, state, None)
        names = [match[1] for raw in raws if (match := _ASSIGN.match(raw))]
        values = {name: value for name in names if isinstance(value := state.variables.get(name), str)}
        redirects, _, _ = self._redirects(unit, pending, state) if pending else ((), [], None)
        self._emit([], values, state, unit.written(node), redirects, None)
        return EMPTY

    def _assign(self, raw: str, state: State, local: dict[str, str] | None) -> None:
        match = _ASSIGN.match(raw)
        if match is None:
            self.expander.single(raw, state)
            return
        name, plus, value = match.groups()
        if value.startswith("("):
            elements: list[str] = []
            for word in unwrap.split_words(value[1:-1]):
                elements += self.expander.fields(word, state)
            state.assign(name, elements, append=bool(plus))
            return
        text = self.expander.single(value, state)
        if local is None:
            state.assign(name, text, append=bool(plus))
        else:
            local[name] = text

    def _emit(
        self,
        argv: list[str],
        assigns: dict[str, str],
        state: State,
        text: str,
        redirects: tuple[Redirect, ...],
        stdin: Stream | None,
    ) -> Stream:
        command = Command(
            argv,
            state,
            segment=text,
            stdin=state.stdin if stdin is None else stdin,
            piped=stdin is not None or state.stdin is not EMPTY,
            assigns=assigns,
            redirects=redirects,
            where=self.where,
        )
        return self.simple(command)

    def simple(self, command: Command) -> Stream:
        """Judge one simple command, follow what it starts, and say what it prints."""
        self.commands += 1
        if self.commands > MAX_COMMANDS:
            raise OverLimit("it has too many commands to be followed")
        state = command.state
        name = command.argv[0] if command.argv else ""
        if name in state.functions and not command.inert:
            return self._store(self.call(name, command), state, command.redirects)
        if name in state.world.hashed:
            command.name = base_name(state.world.hashed[name])
        self.judge.command(command)
        out = unwrap.follow(command, self)
        if out is None:
            out = builtins.run(command, self)
        if out is None:
            out = streams.output(command)
        return self._store(out, state, command.redirects)

    def _store(self, out: Stream, state: State, redirects: tuple[Redirect, ...]) -> Stream:
        """Put what was printed where redirections send it; what is left goes on."""
        for one in redirects:
            if one.writes and one.descriptor in ("", "1"):
                if not has_mark(one.path):
                    before = state.world.files.get(one.path) if ">>" in one.operator else None
                    state.world.files[one.path] = before.plus(out) if before else out
                return EMPTY
        return out


_Handler = Callable[[Evaluator, Unit, "Node", State, Pending], Stream]
_REDIRECTS = frozenset(("file_redirect", "herestring_redirect"))
_STATEMENTS: dict[str, _Handler] = {
    "command": Evaluator._command,
    "declaration_command": Evaluator._command,
    "unset_command": Evaluator._command,
    "test_command": Evaluator._command,
    "list": compound.listed,
    "pipeline": compound.pipeline,
    "redirected_statement": Evaluator._redirected,
    "subshell": compound.subshell,
    "compound_statement": compound.block,
    "do_group": compound.block,
    "negated_command": compound.negated,
    "if_statement": compound.conditional,
    "while_statement": compound.while_loop,
    "for_statement": compound.for_loop,
    "case_statement": compound.case,
    "function_definition": compound.function,
    "variable_assignment": Evaluator._assignments,
    "variable_assignments": Evaluator._assignments,
}
#: Statements that hand redirections after them to their last command.
_PASS_ON = frozenset(
    (
        "command",
        "declaration_command",
        "unset_command",
        "test_command",
        "list",
        "pipeline",
        "redirected_statement",
        "negated_command",
        "variable_assignment",
        "variable_assignments",
    )
)
