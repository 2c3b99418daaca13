"""Which jobs an expression such as ``status=failed and cost>1`` means.

A comparison is a field, an operator and a number or a text (in quotes where it is not one word);
comparisons are joined by ``and``, ``or``, ``not`` and parentheses. Texts are compared whole, or
with ``~`` by whether the field holds them. Nothing else is understood, and nothing is executed.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from runtime.base import standings
from runtime.base.errors import InputError
from runtime.job.stops import JobStatus

Row = Mapping[str, Any]
Test = Callable[[Row], bool]

NUMBERS = {"turns": "turns", "tokens": "tokens", "cost": "cost_usd"}
TEXTS = {"status": "status", "reason": "reason", "job": "id", "batch": "batch"}
FIELDS = ", ".join((*TEXTS, *NUMBERS))
STATUSES = (
    *standings.UNDER_WAY,
    *(status.value for status in JobStatus if status is not JobStatus.RUNNING),
    *(standings.OPEN, standings.DAMAGED),
)

MOST_CHARACTERS = 2_000
# The parser calls itself, three functions a level: this is far within Python's own limit.
MOST_DEPTH = 50

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "~": operator.contains,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'[^']*'|\"[^\"]*\")|(?P<sign><=|>=|!=|==|[=<>~()])|(?P<word>[^\s'\"()=<>!~]+))"
)


def where(text: str) -> Test:
    """The test that ``text`` describes, of a row as ``holdfast ls --json`` has it.

    Raises:
        InputError: if it is none; the error says where, and what was expected.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"--where: expected at most {MOST_CHARACTERS} characters")
    parser = _Parser(text)
    test = parser.either(0)
    if parser.at < len(parser.tokens):
        parser.expected("'and', 'or' or the end")
    return test


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.tokens: list[tuple[str, str, int]] = []
        place = 0
        while text[place:].strip():
            match = _TOKEN.match(text, place)
            if match is None:
                start = place + len(text[place:]) - len(text[place:].lstrip())
                raise InputError(
                    f"--where: column {start + 1}: {text[start]!r} is not understood in {text!r}"
                )
            kind = str(match.lastgroup)
            self.tokens.append((kind, match[kind], match.start(kind)))
            place = match.end()

    def either(self, depth: int) -> Test:
        tests = [self.both(depth)]
        while self.takes("or"):
            tests.append(self.both(depth))
        return tests[0] if len(tests) == 1 else lambda row: any(test(row) for test in tests)

    def both(self, depth: int) -> Test:
        tests = [self.one(depth)]
        while self.takes("and"):
            tests.append(self.one(depth))
        return tests[0] if len(tests) == 1 else lambda row: all(test(row) for test in tests)

    def one(self, depth: int) -> Test:
        if depth > MOST_DEPTH:
            self.expected("less that is nested")
        if self.takes("not"):
            test = self.one(depth + 1)
            return lambda row: not test(row)
        if self.takes("("):
            test = self.either(depth + 1)
            if not self.takes(")"):
                self.expected("')'")
            return test
        return self.comparison()

    def comparison(self) -> Test:
        field = self.next("word", f"a field ({FIELDS})")
        if field not in NUMBERS and field not in TEXTS:
            # Back to the word that was taken, so that the error shows where it stands.
            self.at -= 1
            self.expected(f"a field ({FIELDS})")
        sign = self.next("sign", "an operator (=, !=, <, <=, >, >=, ~)")
        if sign not in _OPERATORS:
            self.at -= 1
            self.expected("an operator (=, !=, <, <=, >, >=, ~)")
        compare = _OPERATORS[sign]
        if field in NUMBERS:
            if sign == "~":
                self.at -= 1
                self.expected(f"=, !=, <, <=, > or >= ({field} is a number)")
            number, key = self.number(), NUMBERS[field]
            return lambda row: compare(row[key], number)
        if sign not in {"=", "==", "!=", "~"}:
            self.at -= 1
            self.expected(f"=, != or ~ ({field} is a text)")
        text, key = self.value(), TEXTS[field]
        if field == "status" and sign != "~" and text not in STATUSES:
            # 'status!=faild' would mean every job.
            self.at -= 1
            self.expected(f"a status ({', '.join(STATUSES)})")
        return lambda row: compare(row[key], text)

    def number(self) -> float:
        word = self.next("word", "a number")
        try:
            number = float(word.removeprefix("$").replace(",", ""))
        except ValueError:
            number = math.nan
        if math.isnan(number):
            self.at -= 1
            self.expected("a number")
        return number

    def value(self) -> str:
        kind = self.tokens[self.at][0] if self.at < len(self.tokens) else ""
        if kind == "text":
            return self.next("text", "a text")[1:-1]
        return self.next("word", "a text")

    def takes(self, word: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at][:2] in {
            ("word", word),
            ("sign", word),
        }:
            self.at += 1
            return True
        return False

    def next(self, kind: str, what: str) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != kind:
            self.expected(what)
        self.at += 1
        return self.tokens[self.at - 1][1]

    def expected(self, what: str) -> NoReturn:
        if self.at >= len(self.tokens):
            raise InputError(f"--where: expected {what} at the end of {self.text!r}")
        _, got, place = self.tokens[self.at]
        raise InputError(f"--where: column {place + 1}: expected {what}, got {got!r}")
