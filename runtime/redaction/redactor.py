"""Masking secrets in what is about to enter a job: known values, then known shapes, then the job's own patterns."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, AnyStr

from runtime.redaction.key import redaction_key
from runtime.redaction.marks import MARK, RAW_MARK, mark_of
from runtime.redaction.rules import Redaction
from runtime.redaction.shapes import SHAPES

SHORTEST = 12
"""A variable's value with fewer characters is no key, and masking it would hit ordinary words."""

SHORTEST_NAMED = 4
"""The same for variables that a job names itself."""

_SECRET = re.compile(r"(key|token|secret|password|passwd|credentials?|authorization|cookie)$", re.IGNORECASE)


class Redactor:
    """Masks by ``rules`` with the secrets of ``environment``. ``key`` is asked for when there is something to mask.

    The same text, rules, environment and key give the same result; marks are never masked again.
    """

    def __init__(self, rules: Redaction, environment: Mapping[str, str], key: Callable[[], bytes]) -> None:
        named = ((name, environment[name]) for name in rules.env if len(environment.get(name, "")) >= SHORTEST_NAMED)
        values: dict[str, str] = {}
        for name, value in (*named, *_secrets(environment)):
            values.setdefault(value, name)
            values.setdefault(json.dumps(value)[1:-1], name)
        # The longest first: one value may be part of another.
        self._values = sorted(values.items(), key=lambda item: (-len(item[0]), item[0]))
        self._patterns = [(f"pattern-{n}", _compiled(text)) for n, text in enumerate(rules.patterns, 1)]
        self._key = key

    def text(self, text: str) -> str:
        """``text`` with every secret replaced by its mark."""
        for value, name in self._values:
            if value in text:
                text = text.replace(value, self._mark(name, value))
        for shape in SHAPES:
            if shape.hint in text:
                text = self._masked(text, shape.name, shape.pattern, MARK)
        return self._by_patterns(text)

    def data(self, data: bytes) -> bytes:
        """``data`` with every secret in it that is UTF-8 replaced by its mark. Without secrets it is not copied."""
        for value, name in self._values:
            raw = _encoded(value)
            if raw in data:
                data = data.replace(raw, _encoded(self._mark(name, value)))
        for shape in SHAPES:
            if shape.hint.encode() in data:
                data = self._masked(data, shape.name, shape.raw, RAW_MARK)
        if self._patterns:
            # Only a text's own patterns are asked: what \w is depends on the letters, not on their bytes.
            text = data.decode("utf-8", "surrogateescape")
            masked = self._by_patterns(text)
            data = data if masked == text else _encoded(masked)
        return data

    def value(self, value: Any) -> Any:
        """A value of JSON's kinds, or bytes, or tuples, with every text in it masked, at any depth, keys included."""
        match value:
            case str():
                return self.text(value)
            case bytes():
                return self.data(value)
            case list():
                return [self.value(item) for item in value]
            case tuple() if type(value) is tuple:
                return tuple(self.value(item) for item in value)
            case dict():
                return {self.value(key): self.value(item) for key, item in value.items()}
            case _:
                return value

    def _by_patterns(self, text: str) -> str:
        for name, pattern in self._patterns:
            text = self._masked(text, name, pattern, MARK)
        return text

    def _masked(self, text: AnyStr, name: str, pattern: re.Pattern[AnyStr], mark: re.Pattern[AnyStr]) -> AnyStr:
        """``text`` with what ``pattern`` finds masked, but where there are marks already."""
        pieces: list[AnyStr] = []
        done, marks = 0, None
        for found in pattern.finditer(text):
            start, stop = found.span()
            if marks is None:
                marks = [place.span() for place in mark.finditer(text)]
            if start == stop or any(a < stop and start < b for a, b in marks):
                continue
            pieces += (text[done:start], self._mark(name, found[0]))
            done = stop
        if not pieces:
            return text
        pieces.append(text[done:])
        return text[:0].join(pieces)

    def _mark(self, name: str, value: AnyStr) -> AnyStr:
        if isinstance(value, bytes):
            return _encoded(mark_of(name, value, self._key()))
        return mark_of(name, _encoded(value), self._key())


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # A lone surrogate that stands for no byte: JSON can spell one.
        return text.encode("utf-8", "surrogatepass")


def redactor_of(rules: Redaction) -> Redactor:
    """The redactor of this process's environment."""
    return Redactor(rules, os.environ, redaction_key)


def _secrets(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables whose name ends like that of a secret. The path of a key's file is none."""
    for name, value in environment.items():
        if _SECRET.search(name) and len(value) >= SHORTEST and not Path(value).is_absolute():
            yield name, value


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
