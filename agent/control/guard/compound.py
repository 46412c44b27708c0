"""Compound commands: lists, pipelines, loops, branches and functions, each part in the order in which bash runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.control.guard.command import Command
from agent.control.guard.exceptions import OverLimit, Unreadable
from agent.control.guard.marks import EMPTY, UNKNOWN, Stream
from agent.control.guard.parse import Unit
from agent.control.guard.state import State

if TYPE_CHECKING:
    from tree_sitter import Node

    from agent.control.guard.evaluate import Evaluator, Pending

#: Values for which one loop's body is looked at.
MAX_ROUNDS = 64
#: Node types that are no statement.
SKIPPED = frozenset(
    (
        ";",
        "&",
        "\n",
        "&&",
        "||",
        "|",
        "|&",
        ";;",
        ";&",
        ";;&",
        "{",
        "}",
        "(",
        ")",
        "then",
        "do",
        "done",
        "fi",
        "in",
        "comment",
    )
)


def block(evaluator: Evaluator, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
    """A brace group or a loop's body."""
    del pending
    return evaluator.sequence(unit, unit.parts(node), state)


def subshell(evaluator: Evaluator, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
    """Commands in brackets: variables and directory are their own."""
    return block(evaluator, unit, node, state.copy(), pending)


def negated(evaluator: Evaluator, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
    """A command after ``!``."""
    return evaluator.statement(unit, unit.parts(node)[-1], state, pending)


def listed(evaluator: Evaluator, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
    """Commands joined by ``&&`` and ``||``; redirections belong to the last."""
    items: list[Node] = []
    while node.type == "list":
        parts = unit.parts(node)
        items.extend(reversed(parts[1:]))
        node = parts[0]
    items.append(node)
    items.reverse()
    out = EMPTY
    for index, item in enumerate(items):
        if item.type not in SKIPPED:
            last = index == len(items) - 1
            out = out.plus(evaluator.statement(unit, item, state, pending if last else ()))
    return out


def pipeline(evaluator: Evaluator, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
    """Commands joined by ``|``: each reads what the one before prints."""
    parts = [part for part in unit.parts(node) if part.type not in SKIPPED]
    flow: Stream | None = None
    for index, part in enumerate(parts):
        inner = state.copy()
        if flow is not None:
            inner.stdin = flow
        flow = evaluator.statement(unit, part, inner, pending if index == len(parts) - 1 else ())
    return flow or EMPTY


def conditional(evaluator: Evaluator, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
    """``if``: every branch runs, and what they leave behind is merged."""
    del pending
    out = EMPTY
    branches: list[State] = []
    condition: list[Node] = []
    body: list[Node] | None = None
    otherwise = False
    clauses: list[Node] = []
    for part in unit.parts(node):
        if part.type in ("elif_clause", "else_clause"):
            clauses.append(part)
            otherwise = otherwise or part.type == "else_clause"
        elif part.type == "then":
            body = []
        elif part.type not in ("if", "fi"):
            (condition if body is None else body).append(part)
    out = out.plus(evaluator.sequence(unit, condition, state))
    for parts in (
        body or [],
        *([one for one in unit.parts(clause) if one.type not in ("elif", "else")] for clause in clauses),
    ):
        branch = state.copy()
        out = out.plus(evaluator.sequence(unit, parts, branch))
        branches.append(branch)
    state.merge(branches if otherwise else [state.copy(), *branches])
    return out


def while_loop(evaluator: Evaluator, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
    """``while`` and ``until``: once, or once a line where the loop reads known text."""
    del pending
    parts = [part for part in unit.parts(node) if part.type not in ("while", "until")]
    reads = bool(parts) and b"read" in unit.source[node.start_byte : parts[-1].start_byte]
    text = state.stdin.text
    if not reads or text is None or "\n" not in text:
        return evaluator.sequence(unit, parts, state)
    whole = state.stdin
    out = EMPTY
    lines = list(dict.fromkeys(text.splitlines()))
    if len(lines) > MAX_ROUNDS:
        raise OverLimit("a loop has too many values to be followed")
    for line in lines:
        evaluator.repeat()
        state.stdin = Stream(f"{line}\n", whole.traits)
        out = out.plus(evaluator.sequence(unit, parts, state))
    state.stdin = whole
    return out


def for_loop(evaluator: Evaluator, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
    """``for`` and ``select``: once a value."""
    del pending
    name = ""
    values: list[str] | None = None
    body: Node | None = None
    for part in unit.parts(node):
        if part.type == "variable_name" and not name:
            name = unit.raw(part)
        elif part.type == "in":
            values = []
        elif part.type in ("do_group", "compound_statement"):
            body = part
        elif part.type not in ("for", "select", ";", "\n") and values is not None:
            values += evaluator.expander.fields(unit.raw(part), state)
    if values is None:
        values = list(state.positional) if state.positional is not None else [UNKNOWN]
    rounds = list(dict.fromkeys(values))
    if len(rounds) > MAX_ROUNDS:
        raise OverLimit("a loop has too many values to be followed")
    out = EMPTY
    for value in rounds or [UNKNOWN]:
        evaluator.repeat()
        state.assign(name, value)
        if body is not None:
            out = out.plus(evaluator.statement(unit, body, state))
    return out


def case(evaluator: Evaluator, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
    """``case``: every branch runs."""
    del pending
    out = EMPTY
    branches: list[State] = []
    for part in unit.parts(node):
        if part.type == "case_item":
            branch = state.copy()
            out = out.plus(_case_item(evaluator, unit, part, branch))
            branches.append(branch)
        elif part.type not in ("case", "esac", "in", ";", "\n"):
            evaluator.expander.single(unit.raw(part), state)
    if branches:
        state.merge([state.copy(), *branches])
    return out


def _case_item(evaluator: Evaluator, unit: Unit, node: Node, state: State) -> Stream:
    parts = unit.parts(node)
    close = next((index for index, part in enumerate(parts) if part.type == ")"), -1)
    for part in parts[:close]:
        if part.type not in ("|", "("):
            evaluator.expander.single(unit.raw(part), state)
    return evaluator.sequence(unit, parts[close + 1 :], state)


def function(evaluator: Evaluator, unit: Unit, node: Node, state: State, pending: Pending) -> Stream:
    """A definition; the body runs when it is called."""
    del pending
    name = ""
    body: Node | None = None
    for part in unit.parts(node):
        if part.type == "word" and not name:
            name = unit.raw(part)
        elif part.type not in ("function", "(", ")"):
            body = part
    if body is None:
        raise Unreadable("a function has no body")
    state.functions[name] = (unit, body)
    evaluator.defined[id(unit), body.start_byte] = (unit, body, state.copy())
    if multiplies(unit, body, name):
        evaluator.judge.fact(
            "process.fork-bomb", Command([name], state, segment=unit.written(node), stdin=EMPTY, where=evaluator.where)
        )
    return EMPTY


def multiplies(unit: Unit, body: Node, name: str) -> bool:
    """Whether a function starts itself more than once at a time: a fork bomb."""
    calls, apart = 0, False
    todo = [body]
    looped = False
    while todo:
        node = todo.pop()
        if node.type == "command_name" and unit.raw(node) == name:
            calls += 1
        apart = apart or node.type in ("|", "|&", "&")
        looped = looped or node.type in ("while_statement", "for_statement")
        todo.extend(node.children)
    return apart and (calls > 1 or (calls == 1 and looped))
