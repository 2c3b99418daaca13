"""What two errors have in common: their words without what is of one of them alone."""

from __future__ import annotations

import re

from runtime.base.controls import clean

_SPECIFIC = (
    # In brackets: an address of IPv6, or what was masked.
    (
        re.compile(r"\b[a-z][a-z0-9+.-]*://(?:\[[^\s\]]*\]|[^\s'\"<>,;)\[\]])+", re.IGNORECASE),
        "<url>",
    ),
    (re.compile(r"\bsha\d+:[0-9a-f]+…?", re.IGNORECASE), "<digest>"),
    (
        re.compile(
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE
        ),
        "<id>",
    ),
    (re.compile(r"(?<![\w/.~])(?:~|\.{1,2})?/[^\s'\"<>,;:)\]]+"), "<path>"),
    (re.compile(r"(?<![\w/])[\w.-]+(?:/[\w.-]+)+"), "<path>"),
    (re.compile(r"\b\w[\w-]*\.(?:py|md|txt|json|jsonl|yaml|yml|toml|csv|parquet|rst)\b"), "<path>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b", re.IGNORECASE), "<digest>"),
    (re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{16,}\b"), "<id>"),
    (re.compile(r"\b(?:req|call|msg|chatcmpl|run|resp|toolu)[_-][\w-]+"), "<id>"),
    (re.compile(r"\d[\d,_]*(?:\.\d+)?"), "<n>"),
)
"""What is of one error alone, the longest first, and what stands in its place."""

LEAST_NAME = 3
"""Characters of a name below which it may be a word of the text, as one of letters alone may be."""

_TURN = re.compile(r"\bturn (\d+)(?: of the record)?: ")
"""The turn of an error, as a job's reason begins."""

KIND_CHARS = 300
"""Characters of a kind."""


def turn_of_error(text: str) -> int | None:
    """The turn that the text names as the error's, if it does."""
    match = _TURN.search(text)
    return int(match[1]) if match else None


def kind_of_error(text: str, *names: str) -> str:
    """The text on one line without its turn, numbers, paths, URLs, ids and digests, and without
    terminal control sequences; ``names`` are others that go, such as the job's own.
    """
    # The beginning tells the kind, and the patterns take long over a long text. A control sequence
    # whose numbers had gone would be none that could be told from text.
    line = clean(text[: 20 * KIND_CHARS])
    line = " ".join(_TURN.sub("", line, count=1).split())
    # The longest first: one name may be part of another.
    for name in sorted(names, key=len, reverse=True):
        if len(name) >= LEAST_NAME and not name.isalpha():
            line = re.sub(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-])", "<job>", line)
    for pattern, place in _SPECIFIC:
        line = pattern.sub(place, line)
    return line if len(line) <= KIND_CHARS else line[: KIND_CHARS - 1] + "…"
