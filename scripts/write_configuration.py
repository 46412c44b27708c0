"""Writes the tables of the schema into ``docs/configuration.md``, below the line that says so."""

from __future__ import annotations

from pathlib import Path

from gateway import config_show

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
LINE = "<!-- written by `make docs` from gateway/config.py -->"

if __name__ == "__main__":
    head, line, _ = PAGE.read_text(encoding="utf-8").partition(LINE)
    PAGE.write_text(f"{head}{LINE}\n\n{config_show.manual()}", encoding="utf-8")
