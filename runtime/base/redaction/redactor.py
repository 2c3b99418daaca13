"""Masking secrets in what is about to enter a job: known values, then known shapes, then the job's
own patterns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from runtime.base.environment import environment
from runtime.base.redaction.key import redaction_key
from runtime.base.redaction.looking import texts_of
from runtime.base.redaction.marks import RAW_MARK, mark_of
from runtime.base.redaction.patterns import compiled
from runtime.base.redaction.rules import Redaction
from runtime.base.redaction.shapes import has_shape, mask_shapes
from runtime.base.redaction.variables import secret_variables

SHORTEST_NAMED = 4
"""The fewest characters of a variable's value that is masked, where a job names that itself."""


class Redactor:
    """Masks by ``rules`` with the secrets of ``environment``.

    ``key`` is asked for when there is something to mask.

    The same text, rules, environment and key give the same result; marks are never masked again.
    """

    def __init__(
        self, rules: Redaction, environment: Mapping[str, str], key: Callable[[], bytes]
    ) -> None:
        own = ((name, environment.get(name, "").strip()) for name in rules.env)
        named = ((name, value) for name, value in own if len(value) >= SHORTEST_NAMED)
        values: dict[str, str] = {}
        for name, value in (*named, *secret_variables(environment)):
            values.setdefault(value, name)
            # As it stands in JSON, and as it stands in a URL.
            values.setdefault(json.dumps(value)[1:-1], name)
            values.setdefault(quote(value, safe="", errors="surrogateescape"), name)
        # The longest first: one value may be part of another.
        longest = sorted(values.items(), key=lambda item: (-len(item[0]), item[0]))
        self._values = [(_encoded(value)[0], name) for value, name in longest]
        self._patterns = [
            (f"pattern-{n}", compiled(text)) for n, text in enumerate(rules.patterns, 1)
        ]
        self._key = key

    def text(self, text: str) -> str:
        """``text`` with every secret replaced by its mark."""
        raw, errors = _encoded(text)
        masked = self.data(raw)
        return text if masked is raw else masked.decode("utf-8", errors)

    def data(self, data: bytes) -> bytes:
        """``data`` with every secret in it that is UTF-8 replaced by its mark.

        Without secrets it is not copied.
        """
        # Known values first: their marks tell the variable, and no shape masks a mark again.
        for value, name in self._values:
            if value in data:
                data = data.replace(value, self._mark(name, value))
        data = mask_shapes(data, self._mark)
        for name, pattern in self._patterns:
            data = self._masked(data, name, pattern)
        return data

    def value(self, value: Any) -> Any:
        """A value of JSON's kinds, or bytes, or tuples, with every text in it masked, at any depth,
        keys included.

        Without secrets it is not copied.
        """
        # A job's own patterns may ask for a text's end.
        if not self._patterns and self._is_clean(texts_of(value, _raw)):
            return value
        return self._each(value)

    def _is_clean(self, texts: bytes) -> bool:
        return not any(secret in texts for secret, _ in self._values) and not has_shape(texts)

    def _each(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case bytes():
                return self.data(value)
            case list():
                return [self._each(item) for item in value]
            # A named tuple is made from its fields, and not from one iterable.
            case tuple() if type(value) is tuple:
                return tuple(self._each(item) for item in value)
            case dict():
                return {self._each(key): self._each(item) for key, item in value.items()}
            case _:
                return value

    def _masked(self, data: bytes, name: str, pattern: Any) -> bytes:
        """``data`` with what ``pattern`` finds masked, but where there are marks already.

        Both are looked at once, in order.
        """
        pieces: list[bytes] = []
        done, marks = 0, RAW_MARK.finditer(data)
        mark = next(marks, None)
        for match in pattern.finditer(data):
            start, stop = match.span()
            while mark is not None and mark.end() <= start:
                mark = next(marks, None)
            # A pattern may match nothing at all, or a part of a mark.
            if start == stop or (mark is not None and mark.start() < stop):
                continue
            pieces += (data[done:start], self._mark(name, match[0]))
            done = stop
        return b"".join([*pieces, data[done:]]) if pieces else data

    def _mark(self, name: str, value: bytes) -> bytes:
        return mark_of(name, value, self._key()).encode()


def _encoded(text: str) -> tuple[bytes, str]:
    """The text in UTF-8, and how lone surrogates were encoded."""
    try:
        return text.encode("utf-8", "surrogateescape"), "surrogateescape"
    except UnicodeEncodeError:
        # A lone surrogate that stands for no byte: JSON can spell one.
        return text.encode("utf-8", "surrogatepass"), "surrogatepass"


def _raw(text: str) -> bytes:
    return _encoded(text)[0]


_MOST_MADE = 64
_made: dict[Redaction, tuple[Mapping[str, str], Redactor]] = {}
"""The redactors of the environment that each was made for."""


def redactor_of(rules: Redaction) -> Redactor:
    """The redactor of this process's environment."""
    # Compared whole: a variable may be set at any time, and finding the secrets takes far longer.
    variables = environment()
    made = _made.get(rules)
    if made is None or made[0] != variables:
        # Rules may be as many as jobs: now and then all are made anew.
        if len(_made) >= _MOST_MADE:
            _made.clear()
        made = _made[rules] = (variables, Redactor(rules, variables, redaction_key))
    return made[1]
