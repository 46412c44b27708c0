"""What platforms share about text: UTF-16 lengths, the markdown tree, and splitting that keeps formatting whole."""

from __future__ import annotations

from adapters.text.parse import clean, parse
from adapters.text.source import to_source
from adapters.text.split import SMALLEST_LIMIT, Chunk, Renderer, split_markdown
from adapters.text.tree import Document
from adapters.text.units import cut_utf16, utf16_len

__all__ = [
    "SMALLEST_LIMIT",
    "Chunk",
    "Document",
    "Renderer",
    "clean",
    "cut_utf16",
    "parse",
    "split_markdown",
    "to_source",
    "utf16_len",
]
