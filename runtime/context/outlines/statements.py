"""Outlines of Perl and SQL by their lines: there is no grammar of all of SQL's dialects, and none
of Perl worth its size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runtime.context.outlines.definitions import numbered
from runtime.context.outlines.items import VALUE_CHARS, Item, one_line

_POD = re.compile(r"=[a-zA-Z]")
_PACKAGE = re.compile(r"\s{0,12}((?:package|class|role)\s+[\w:]+[^;{]{0,80})")
_SUB = re.compile(r"\s{0,12}((?:(?:my|our|async)\s+)?(?:sub|method)\s+\w[^{;]{0,160})")
_GLOBAL = re.compile(r"\s{0,12}((?:our\s+[$@%(]|use\s+constant\b)[^;]{0,160})")
_NO_CODE = ("__END__", "__DATA__")

_CREATE = re.compile(
    r"\s{0,12}((?:CREATE|ALTER)\s+(?:OR\s+\w+\s+)?(?:[A-Z]+\s+){0,3}?"
    r"(TABLE|VIEW|FUNCTION|PROCEDURE|TRIGGER|INDEX|TYPE|DOMAIN|SCHEMA|SEQUENCE|DATABASE"
    r"|EXTENSION|POLICY|ROLE)\b"
    r"[^;]{1,160})",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"\s{1,24}([\w\"`\[\]]{1,80}\s+[A-Za-z][^;]{0,160})")
_NO_COLUMN = re.compile(
    r"\s*(?:PRIMARY|FOREIGN|UNIQUE|CHECK|CONSTRAINT|KEY|INDEX|EXCLUDE|LIKE)\b", re.IGNORECASE
)


def perl(text: str) -> Iterator[Item]:
    """Packages, with their subroutines, global variables and constants below them; no
    documentation, no data.
    """
    level, in_pod, above = 0, False, ""
    for number, line in numbered(text):
        if line.rstrip() in _NO_CODE:
            return
        if _POD.match(line):
            in_pod = not line.startswith("=cut")
            continue
        if in_pod:
            continue
        if package := _PACKAGE.match(line):
            level = 1
            yield Item(number, 0, package[1].rstrip(), above)
        elif match := _SUB.match(line):
            yield Item(number, level, match[1].rstrip(), above)
        elif match := _GLOBAL.match(line):
            yield Item(number, level, one_line(match[1], VALUE_CHARS), above)
        # The first line's comment names the interpreter.
        above = _comment(line, "#") if number else ""


def sql(text: str) -> Iterator[Item]:
    """What is created or altered, and the columns of tables."""
    in_table, above = False, ""
    for number, line in numbered(text):
        if made := _CREATE.match(line):
            # Only a list of columns is read as one: what is made from a query has none.
            in_table = made[2].upper() == "TABLE" and line.rstrip().endswith("(")
            yield Item(number, 0, made[1].rstrip().rstrip("(").rstrip(), above)
        elif in_table and line.lstrip().startswith(")"):
            in_table = False
        elif in_table and not _NO_COLUMN.match(line) and (column := _COLUMN.match(line)):
            yield Item(
                number,
                1,
                one_line(column[1].split("--")[0].rstrip().rstrip(","), VALUE_CHARS),
                above,
            )
        above = _comment(line, "--")


def _comment(line: str, mark: str) -> str:
    """What a line of comment says, or ``""``."""
    line = line.strip()
    return line.lstrip(mark[0]).strip() if line.startswith(mark) else ""
