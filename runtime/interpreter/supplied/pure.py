"""Functions of the standard library that the host computes for a statement: pure, bounded in their
input and in what they make of it, with plain results.
"""

from __future__ import annotations

import codecs
import difflib
import fnmatch
import html
import keyword
import shlex
import statistics
import textwrap
import urllib.parse
import zlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from importlib.util import find_spec, module_from_spec
from typing import Any

from runtime.base.characters import as_literal
from runtime.interpreter.echo import text_of
from runtime.interpreter.supplied import oldest

FUNCTION = "holdfast_pure"
"""The call's name in the interpreter; its first argument names the function."""

FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "html": ("escape", "unescape"),
    "keyword": ("iskeyword",),
    "shlex": ("split", "quote", "join"),
    "statistics": (
        "correlation",
        "covariance",
        "fmean",
        "geometric_mean",
        "harmonic_mean",
        "mean",
        "median",
        "median_high",
        "median_low",
        "mode",
        "multimode",
        "pstdev",
        "pvariance",
        "quantiles",
        "stdev",
        "variance",
    ),
    "textwrap": ("dedent", "fill", "indent", "shorten", "wrap"),
    "zlib": ("adler32", "crc32"),
}
"""Modules of which each function is the host's."""

CONSTANTS: Mapping[str, Mapping[str, str]] = {"statistics": {"StatisticsError": "ValueError"}}
"""What else such a module has, as the interpreter's Python. What the host raises arrives as its
built-in base.
"""

_MOST_CHARS = 200_000
_MOST_ITEMS = 20_000
_MOST_COMPARED = 400_000
"""Pairs of lines, or of characters, that a comparison may have to look at: its time is a multiple
of that.
"""


_MOST_MADE = 2_000_000
"""Characters of a result: more than any escaping makes of the longest input."""

_MOST_WIDTH = 10_000
"""Of an indentation, of a tab."""

_USUAL_BITS = 1_024
"""Of a number that counts as a value alone; a longer one counts as its digits do."""


class Refused(Exception):
    """The input, or what is to be made of it, is larger than what the host computes at once."""


def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function's value.

    Raises:
        Refused: if the input is too large.
        Exception: whatever the function raises.
    """
    # First, since the host computes in the workflow's thread and nothing stops it there.
    within_bounds(args, kwargs)
    module, _, short = name.rpartition(".")
    if module == "textwrap":
        _wrapped(short, *args, **kwargs)
    if name == "statistics.quantiles":
        _counted(*args, **kwargs)
    return function(name)(*args, **kwargs)


def function(name: str) -> Callable[..., Any]:
    """What computes the function's value.

    Raises:
        KeyError: if the host computes no such function.
    """
    module, _, short = name.rpartition(".")
    if short in FUNCTIONS.get(module, ()) and name not in _OTHERS:
        computes: Callable[..., Any] = getattr(_MODULES[module], short)
        return computes
    return _OTHERS[name]


def within_bounds(
    args: tuple[Any, ...], kwargs: dict[str, Any], usual_bits: float = _USUAL_BITS
) -> None:
    """Refuse more characters or values than the host computes with at once; a number of more than
    ``usual_bits`` counts as its digits do.
    """
    chars = items = 0
    stack: list[Any] = [*args, *kwargs.values()]
    while stack:
        one = stack.pop()
        items += 1
        if isinstance(one, str | bytes):
            chars += len(one)
        elif isinstance(one, int) and one.bit_length() > usual_bits:
            chars += one.bit_length() // 3
        elif isinstance(one, dict):
            stack += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            stack += one
        if items > _MOST_ITEMS or chars > _MOST_CHARS:
            raise Refused(
                f"at most {_MOST_CHARS:,} characters and {_MOST_ITEMS:,} values: give it a part at"
                " a time"
            )


def too_long(arguments: Any) -> bool:
    """Whether the host would compute for longer than a statement may: exactly with decimals that
    have more digits together, written out, than a text may have characters.
    """
    digits, stack = 0, [arguments]
    while stack:
        one = stack.pop()
        if isinstance(one, Decimal):
            # Infinities and what is no number have none.
            digits += abs(one.adjusted()) + len(one.as_tuple().digits) if one.is_finite() else 0
        elif isinstance(one, dict):
            stack += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            stack += one
    return digits > _MOST_CHARS


def comparable(a: Any, b: Any) -> None:
    """Refuse to compare more than the host compares at once."""
    if len(a) * len(b) > _MOST_COMPARED:
        raise Refused(
            f"{len(a):,} and {len(b):,} items are too many to be compared: give it a part at a time"
        )


def _made(chars: int) -> None:
    if chars > _MOST_MADE:
        raise Refused(
            f"the result would have {chars:,} characters, of at most {_MOST_MADE:,}: give it a part"
            " at a time"
        )


def _narrow(**numbers: Any) -> None:
    for name, number in numbers.items():
        if isinstance(number, int) and number > _MOST_WIDTH:
            raise Refused(f"{name} is at most {_MOST_WIDTH:,}")


def _counted(*_: Any, n: Any = 4, **__: Any) -> None:
    if isinstance(n, int) and n > _MOST_ITEMS:
        raise Refused(f"n is at most {_MOST_ITEMS:,}")


def _wrapped(function: str, text: str = "", *args: Any, **kwargs: Any) -> None:
    """Refuse what ``textwrap`` would make too much of."""
    if function == "indent":
        prefix = kwargs.get("prefix", args[0] if args else "")
        _made(len(text) + (text.count("\n") + 1) * len(prefix))
        return
    width, tab = kwargs.get("width", args[0] if args else 70), kwargs.get("tabsize", 8)
    _narrow(tabsize=tab)
    indent = max(len(kwargs.get(name, "")) for name in ("initial_indent", "subsequent_indent"))
    chars = len(text) + text.count("\t") * tab
    # Two lines in a row are longer than one may be, or they would be one.
    _made(chars + (2 * chars // max(1, width - indent) + 2) * (indent + 1))


class _Sheet:
    """Where ``pprint`` writes, until it is too much."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._chars = 0

    def write(self, piece: str) -> None:
        self._chars += len(piece)
        _made(self._chars)
        self.pieces.append(piece)


class _Key:
    """What ``pprint`` sorts by: the library falls back to addresses."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Key) -> bool:
        # One set is below another that holds it: that is no order of all of them.
        if not isinstance(self.value, set | frozenset):
            try:
                return bool(self.value < other.value)
            except TypeError:
                pass
        return self._text() < other._text()

    def _text(self) -> tuple[str, str]:
        return str(type(self.value)), text_of(self.value)


def _shown(value: Any) -> str:
    """As ``repr``, but that no hash of the process orders a set. Those of numbers do not."""
    if isinstance(value, set | frozenset) and not all(
        isinstance(one, int | float) for one in value
    ):
        return text_of(value)
    return as_literal(value)


@cache
def printing() -> Any:
    """The library's ``pprint``, a copy in which values are shown and sorted alike in every process
    and on every Python.
    """
    spec = find_spec("pprint")
    assert spec is not None and spec.loader is not None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    # Its functions look their names up in the module.
    module.repr, module._safe_key = _shown, _Key
    return module


def _pformat(value: Any, *, indent: Any, width: Any, depth: Any, **options: Any) -> str:
    _narrow(indent=indent)
    sheet = _Sheet()
    printing().PrettyPrinter(indent, width, depth, sheet, **options).pprint(value)
    return "".join(sheet.pieces).removesuffix("\n")


def _translate(pattern: str) -> str:
    # For each bracket it looks for the one that closes it.
    comparable("[" * pattern.count("["), pattern)
    return fnmatch.translate(pattern)


def _decode(data: bytes, encoding: str, errors: str) -> str:
    # By its own name: a codec has many spellings.
    if codecs.lookup(encoding).name in ("punycode", "idna"):
        comparable(data, data)
    return data.decode(encoding, errors)


def _encode(text: str, encoding: str, errors: str) -> bytes:
    if codecs.lookup(encoding).name in ("punycode", "idna"):
        comparable(text, text)
    return text.encode(encoding, errors)


def _lines(function: Callable[..., Any]) -> Callable[..., list[str]]:
    def made(a: list[str], b: list[str], *args: Any) -> list[str]:
        comparable(a, b)
        # The last is what ends each line of the difference's own.
        _made(sum(map(len, (*a, *b))) + (len(a) + len(b) + 3) * len(args[-1]))
        return list(function(a, b, *args))

    return made


def _ndiff(a: list[str], b: list[str]) -> list[str]:
    # It compares the characters of lines that are alike.
    comparable("".join(a), "".join(b))
    return list(difflib.ndiff(a, b))


def _close(word: str, possibilities: list[str], n: int, cutoff: float) -> list[str]:
    comparable(word, "".join(possibilities))
    return difflib.get_close_matches(word, possibilities, n, cutoff)


def _matcher(a: Any, b: Any, autojunk: bool) -> difflib.SequenceMatcher[Any]:
    comparable(a, b)
    return difflib.SequenceMatcher(None, a, b, autojunk)


def _urlencode(pairs: list[Any], doseq: bool) -> str:
    return urllib.parse.urlencode([(_ordered(key), _ordered(value)) for key, value in pairs], doseq)


def _ordered(value: Any) -> Any:
    """A set as the list of what it holds: it would come as the process's hashes have it."""
    return sorted(value, key=text_of) if isinstance(value, set | frozenset) else value


def _urlparse(text: str) -> list[Any]:
    parsed = urllib.parse.urlparse(text)
    return [*parsed, parsed.hostname, parsed.port, parsed.username, parsed.password]


_MODULES: Mapping[str, Any] = {
    "html": html,
    "keyword": keyword,
    "shlex": shlex,
    "statistics": statistics,
    "textwrap": textwrap,
    "zlib": zlib,
}

_OTHERS: Mapping[str, Callable[..., Any]] = {
    "codecs.decode": _decode,
    "codecs.encode": _encode,
    "difflib.unified_diff": _lines(difflib.unified_diff),
    "difflib.context_diff": _lines(difflib.context_diff),
    "difflib.ndiff": _ndiff,
    "difflib.get_close_matches": _close,
    "difflib.ratio": lambda a, b, autojunk: _matcher(a, b, autojunk).ratio(),
    "difflib.opcodes": lambda a, b, autojunk: [
        list(code) for code in _matcher(a, b, autojunk).get_opcodes()
    ],
    "difflib.blocks": lambda a, b, autojunk: [
        list(block) for block in _matcher(a, b, autojunk).get_matching_blocks()
    ],
    "fnmatch.translate": _translate,
    "pprint.pformat": _pformat,
    "statistics.correlation": oldest.correlation,
    "statistics.covariance": oldest.covariance,
    "statistics.fmean": oldest.fmean,
    "statistics.geometric_mean": oldest.geometric_mean,
    "statistics.quantiles": oldest.quantiles,
    "urllib.parse.parse_qs": urllib.parse.parse_qs,
    "urllib.parse.parse_qsl": lambda *args: [list(pair) for pair in urllib.parse.parse_qsl(*args)],
    "urllib.parse.quote": urllib.parse.quote,
    "urllib.parse.quote_plus": urllib.parse.quote_plus,
    "urllib.parse.unquote": urllib.parse.unquote,
    "urllib.parse.unquote_plus": urllib.parse.unquote_plus,
    "urllib.parse.urlencode": _urlencode,
    "urllib.parse.urljoin": oldest.urljoin,
    "urllib.parse.urlparse": _urlparse,
    "urllib.parse.urlunparse": oldest.urlunparse,
    "uuid.uuid3": oldest.uuid3,
    "uuid.uuid5": oldest.uuid5,
}
