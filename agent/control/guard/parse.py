"""From a command's text to a tree of its structure."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import tree_sitter
import tree_sitter_bash

from agent.control.guard import prepass
from agent.control.guard.exceptions import Unreadable
from agent.control.guard.marks import CLOSE, OPEN

_language = tree_sitter.Language(tree_sitter_bash.language())
_local = threading.local()

#: What may stand between two nodes of the tree without being lost.
_BETWEEN = b" \t\n;&"


@dataclass(frozen=True, slots=True)
class Unit:
    """A parsed text: the tree and what its marks stand for."""

    script: prepass.Script
    source: bytes
    root: tree_sitter.Node

    def raw(self, node: tree_sitter.Node) -> str:
        """A word as it was written."""
        text = self.source[node.start_byte : node.end_byte].decode()
        if text[:1] == OPEN and text[-1:] == CLOSE and text[1] != "h":
            return self.script.words[int(text[1:-1])]
        return text

    def document(self, text: str) -> prepass.HereDocument | None:
        """The here-document that a redirection's target stands for."""
        return self.script.documents[int(text[2:-1])] if text[:2] == f"{OPEN}h" else None

    def written(self, node: tree_sitter.Node) -> str:
        """A statement as it was written."""
        return self.script.written(self.source[node.start_byte : node.end_byte].decode())

    def parts(self, node: tree_sitter.Node) -> list[tree_sitter.Node]:
        """The children of a node.

        Raises:
            Unreadable: text of the node belongs to none of them; the grammar lost something.
        """
        children = node.children
        position = node.start_byte
        for child in children:
            if child.start_byte > position and self.source[position : child.start_byte].strip(_BETWEEN):
                raise Unreadable("a part of it was not understood")
            position = child.end_byte
        if self.source[position : node.end_byte].strip(_BETWEEN):
            raise Unreadable("a part of it was not understood")
        return children


def parse(text: str) -> Unit:
    """Parse shell text.

    Raises:
        Unreadable: it is no valid command.
    """
    script = prepass.lift(text)
    source = script.text.encode()
    parser = getattr(_local, "parser", None)
    if parser is None:
        parser = _local.parser = tree_sitter.Parser(_language)
    root = parser.parse(source).root_node
    if root.has_error:
        raise Unreadable("it is not valid shell text")
    return Unit(script, source, root)
