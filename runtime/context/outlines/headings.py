"""Outlines of prose: the headings of Markdown and of reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runtime.context.outlines.definitions import numbered
from runtime.context.outlines.items import Item

_HEADING = re.compile(r" {0,3}(#{1,6})\s+(\S.*)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_SETEXT = re.compile(r" {0,3}(=+|-+)\s*$")
_UNDERLINE = re.compile(r"([=\-`:.'\"~^_*+#<>!$%&(),/;?@\[\\\]{|}])\1{2,}\s*$")


def markdown(text: str) -> Iterator[Item]:
    """Headings in both spellings, those in fenced code left out."""
    fence, before = "", ""
    for number, line in numbered(text):
        marker = _FENCE.match(line)
        # A fence ends at its own mark: one of the other kind is text in it.
        if marker and (not fence or marker[1] == fence):
            fence = "" if fence else marker[1]
        elif not fence:
            heading, rule = _HEADING.match(line), _SETEXT.match(line)
            if heading:
                yield Item(number, len(heading[1]) - 1, heading[2].rstrip().rstrip("#"))
            elif (
                rule
                and before.strip()
                # Below a list, a quote or a table a row of dashes is a rule, and no heading's
                # underline.
                and not before.lstrip().startswith(("-", "*", "+", ">", "|", "#"))
            ):
                yield Item(number - 1, 0 if rule[1][0] == "=" else 1, before)
        before = line


def restructured(text: str) -> Iterator[Item]:
    """Underlined titles; their levels are in the order in which their marks first come."""
    levels: list[str] = []
    before = ""
    for number, line in numbered(text):
        title = before.strip()
        mark = _UNDERLINE.match(line)
        # The line above a title that has one on both sides is none itself.
        if mark and title and not _UNDERLINE.match(before) and len(line.rstrip()) >= len(title):
            if mark[1] not in levels:
                levels.append(mark[1])
            yield Item(number - 1, levels.index(mark[1]), title)
        before = line
