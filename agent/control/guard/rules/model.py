"""The forms that rules take. A rule is data: what it matches, why it matters, and examples that are run as tests."""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.control.guard.verdict import Verdict

if TYPE_CHECKING:
    from agent.control.guard.command import Command

#: Classes whose findings are never granted for good: remote code, sending, inline programs, the unreadable.
NEVER_GRANTED = frozenset(("A7", "A13", "A17", "A19"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What every rule says about itself.

    Attributes:
        id: dotted id.
        cls: class of the labelling rules.
        category: category of the corpus.
        reason: a short plain sentence.
        alternative: a safer way; empty where there is none.
        verdict: what it leads to.
        match: commands that it must find.
        spare: commands that it must leave alone.
    """

    id: str
    cls: str
    category: str
    reason: str
    alternative: str = ""
    verdict: Verdict = Verdict.APPROVE
    match: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Reason):
    """A rule over one command's program, verbs, options and operands. All that is given must hold.

    Attributes:
        programs: base names, separated by blanks; ``*`` as in file names.
        verbs: leading operands, any of these; words separated by blanks, ``*`` as in file names.
        options: any of these is given.
        without: none of these is given.
        first: the first operand matches this expression.
        operand: an operand matches this expression.
        value: an option of ``options`` has a value that matches this expression.
        text: the arguments, joined by blanks, match this expression.
        at_least: so many operands are given.
        at_most: no more operands are given; negative for any number.
        always: it holds even with a switch that makes the program do nothing.
    """

    programs: str
    verbs: tuple[str, ...] = ()
    options: str = ""
    without: str = ""
    first: str = ""
    operand: str = ""
    value: str = ""
    text: str = ""
    at_least: int = 0
    at_most: int = -1
    always: bool = False

    @property
    def heads(self) -> frozenset[str]:
        """First words of the verbs; empty when any operand may lead."""
        heads = frozenset(one.split(maxsplit=1)[0] for one in self.verbs)
        return frozenset() if any("*" in one for one in heads) else heads

    def holds(self, command: Command) -> bool:  # noqa: PLR0911 - one way out a case
        """Whether a command is what this rule is about; its program is."""
        operands = command.operands
        if len(operands) < self.at_least or 0 <= self.at_most < len(operands):
            return False
        if self.verbs and not any(_leads(words, operands) for words in _split_verbs(self.verbs)):
            return False
        if self.options and not _options_hold(self, command):
            return False
        if self.without and command.has(*self.without.split()):
            return False
        if self.first and not (operands and _compiled(self.first).search(operands[0])):
            return False
        if self.operand and not any(_compiled(self.operand).search(one) for one in operands):
            return False
        return not self.text or _compiled(self.text).search(" ".join(command.argv[1:])) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRule(Reason):
    """A rule over what is done to a path, by whatever program.

    Attributes:
        kinds: kinds of effect, separated by blanks.
        places: classes of place, any of these: those of :class:`agent.control.guard.paths.Place`, and ``outside``
            (neither workspace nor scratch), ``glob``, ``computed`` (not known, or fed by another program), ``socket``.
        spares: programs to which it does not apply.
        inside: it also holds for a path inside a disposable container.
    """

    kinds: str
    places: str
    spares: str = ""
    inside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableRule(Reason):
    """A rule over a variable that is set for later programs.

    Attributes:
        names: an expression for the whole name.
        harmless: values that match are left alone.
        value: only values that match are meant; empty for any.
    """

    names: str
    harmless: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Reason):
    """Something that the evaluation noticed itself."""


@functools.lru_cache(maxsize=1_024)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.IGNORECASE | re.DOTALL)


@functools.lru_cache(maxsize=1_024)
def _split_verbs(verbs: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(one.split()) for one in verbs)


def _leads(words: tuple[str, ...], operands: list[str]) -> bool:
    if len(operands) < len(words):
        return False
    for word, operand in zip(words, operands, strict=False):
        if word != operand and ("*" not in word or not fnmatch.fnmatchcase(operand, word)):
            return False
    return True


def _options_hold(rule: Rule, command: Command) -> bool:
    names = rule.options.split()
    if not rule.value:
        return command.has(*names)
    return any(_compiled(rule.value).search(value) for value in command.values(*names))
