"""Outlines of everything else, by its lines: what looks like a definition, and the keys of
settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runtime.context.outlines.items import VALUE_CHARS, Item, one_line

_DEFINITION = re.compile(
    r"\s{0,12}(?:(?:export|default|public|private|protected|internal|static|final"
    r"|abstract|async|pub(?:\([a-z]{1,9}\))?"
    r"|unsafe|extern|virtual|override|sealed|partial|declare|inline|const)\s+){0,6}"
    r"(?:class|interface|struct|enum|trait|impl|fn|func|function|def|module|namespace"
    r"|type|record|protocol|object"
    r"|macro_rules!|package|union)\b\s*[\w$(<*]"
)
_C_FUNCTION = re.compile(r"[A-Za-z_][\w:<>,*&~\[\] ]{0,120}\([^;]{0,160}$")
_CONTROL = re.compile(r"\s*(?:if|for|while|switch|return|else|catch|do|elif|except|with|print)\b")
_KEY = re.compile(r"( {0,8})(?:- )?([\w.\-/]{1,80}|\"[^\"]{1,80}\"|'[^']{1,80}')\s*[:=](?:\s|$)")
_SECTION = re.compile(r"\[{1,2}[^\[\]]{1,120}\]{1,2}\s*(?:[#;].*)?$")

LINE_CHARS = 300
"""So much of a line is looked at: the patterns here cost more than linear time."""


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines, each short enough for the patterns here."""
    for number, line in enumerate(text.split("\n")):
        yield number, line[:LINE_CHARS]


def definitions(text: str) -> Iterator[Item]:
    """Lines that define something in one of many languages."""
    for number, line in numbered(text):
        indent = len(line) - len(line.lstrip())
        if _DEFINITION.match(line) or (
            indent == 0
            and _C_FUNCTION.match(line)
            and line.rstrip().endswith(("{", ")"))
            and not _CONTROL.match(line)
        ):
            yield Item(number, min(indent // 2, 3), line.rstrip().rstrip("{").rstrip())


def settings(text: str) -> Iterator[Item]:
    """Sections and keys of INI-like files."""
    in_section = 0
    for number, line in numbered(text):
        if _SECTION.match(line):
            in_section = 1
            yield Item(number, 0, line)
            continue
        match = _KEY.match(line)
        if match and len(match[1]) <= 4:
            yield Item(number, in_section + len(match[1]) // 2, one_line(line, VALUE_CHARS))
