"""What a source's outline consists of, by kind of file: symbols, headings, keys or columns, each
with its line.

Source code, HTML, JSON, YAML and TOML are parsed by tree-sitter, which reads broken sources too;
Markdown, reStructuredText, tables, Perl and SQL by their lines; and everything else is searched for
lines that look like definitions. Equal text gives an equal outline, on every machine with the same
grammars, and nothing here raises on any input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from runtime.context.outlines.code import code
from runtime.context.outlines.data import data
from runtime.context.outlines.definitions import definitions, settings
from runtime.context.outlines.headings import markdown, restructured
from runtime.context.outlines.html import html
from runtime.context.outlines.items import ITEM_CHARS, MAX_ITEMS, Item, first
from runtime.context.outlines.languages import CODE, DATA, of_interpreter
from runtime.context.outlines.statements import perl, sql
from runtime.context.outlines.tables import table

__all__ = [
    "ITEM_CHARS",
    "MAX_ITEMS",
    "Item",
    "Outline",
    "is_code",
    "outline",
    "outline_by_lines",
]

Outline = Callable[[str, str], tuple[Item, ...]]
"""Makes the outline of a text with a suffix, as ``outline`` does."""

Finder = Callable[[str], Iterator[Item]]

_OTHERS: dict[str, Finder] = {
    ".html": html,
    ".htm": html,
    ".xhtml": html,
    ".pl": perl,
    ".pm": perl,
    ".t": perl,
    ".sql": sql,
    ".ddl": sql,
    ".md": markdown,
    ".markdown": markdown,
    ".rst": restructured,
    ".csv": lambda text: table(text, ","),
    ".tsv": lambda text: table(text, "\t"),
    ".ini": settings,
    ".cfg": settings,
    ".conf": settings,
    ".properties": settings,
}


def outline(text: str, suffix: str) -> tuple[Item, ...]:
    """The items of ``text``, whose lines end with ``\\n``, in order of their lines.

    A text without a suffix is known by its first line, if that names an interpreter.
    """
    # A text that its suffix misnames, or that the parser gave up, is searched line by line.
    return first(_finder(text, suffix)(text)) or outline_by_lines(text)


def outline_by_lines(text: str) -> tuple[Item, ...]:
    """The lines of ``text`` that look like definitions, whatever it is."""
    return first(definitions(text))


def is_code(path: str) -> bool:
    """Whether a file of this name is outlined by what it defines and uses by name."""
    return f".{path.rpartition('.')[2].lower()}" in CODE or path.endswith((".pl", ".pm"))


def _finder(text: str, suffix: str) -> Finder:
    suffix = suffix or of_interpreter(text)
    if suffix in CODE:
        return lambda text: code(text, CODE[suffix])
    if suffix in DATA:
        return lambda text: data(text, DATA[suffix])
    return _OTHERS.get(suffix, definitions)
