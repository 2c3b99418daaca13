"""Functions that the host computes are bounded in what they make, before they make it."""

import statistics
import urllib.parse
from typing import Any

import pytest

from runtime.context.graph import ContextGraph
from runtime.interpreter.host import Failure, ReturnValue
from runtime.interpreter.job_host import JobHost
from runtime.interpreter.supplied import pure

PFORMAT = {"indent": 1, "width": 80, "depth": None}
BOUND = r"at most [\d,]+"


@pytest.mark.parametrize("encoding", ["punycode", "PUNYCODE-", "punycode_", " punycode", "idna "])
def test_what_grows_with_the_square_of_the_text_is_refused(encoding: str) -> None:
    """However the codec is spelled; a short text is decoded."""
    assert pure.call("codecs.decode", (b"b-", encoding, "strict"), {}) == b"b-".decode(encoding)
    with pytest.raises(pure.Refused, match="too many"):
        pure.call("codecs.decode", (b"a" * 9_000, encoding, "strict"), {})


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("textwrap.indent", ("a\n" * 2_000, "x" * 10_000), {}),
        ("textwrap.wrap", ("\t" * 100, 70), {"tabsize": 10**11}),
        ("textwrap.wrap", ("\t" * 1_000, 70), {"tabsize": 9_000}),
        ("textwrap.fill", ("a " * 5_000, 1), {"subsequent_indent": "x" * 5_000}),
        ("statistics.quantiles", ([1, 2, 3],), {"n": 10**12}),
        ("statistics.mean", ([10**100_000] * 20,), {}),
        ("pprint.pformat", ([1] * 100,), {**PFORMAT, "indent": 10**12}),
        ("pprint.pformat", ([["a" * 50, "b" * 50]] * 2_000,), {**PFORMAT, "indent": 9_000}),
        ("difflib.unified_diff", (["a"] * 90, ["b"] * 90, "", "", "", "", 3, "x" * 90_000), {}),
    ],
)
def test_what_would_be_too_much_is_refused(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """By an error that says the bound."""
    with pytest.raises(pure.Refused, match=BOUND + "|too many"):
        pure.call(name, args, kwargs)


def test_a_pattern_of_brackets_is_refused() -> None:
    """It is looked at from each of them to its end."""
    with pytest.raises(pure.Refused, match="too many to be compared"):
        pure.call("fnmatch.translate", ("[" * 2_000,), {})


def test_usual_results_are_those_of_the_library() -> None:
    """As long as they are within the bounds."""
    text = "one two\tthree " * 500
    assert pure.call("textwrap.fill", (text,), {"width": 60, "subsequent_indent": "  "}).count("\n")
    assert pure.call("textwrap.indent", ("a\nb", "> "), {}) == "> a\n> b"
    assert pure.call("pprint.pformat", ({"b": 1, "a": [2]},), PFORMAT) == "{'a': [2], 'b': 1}"
    assert len(pure.call("statistics.quantiles", ([1, 2, 3],), {"n": 10})) == 9
    assert pure.call("fnmatch.translate", ("*.[ch]",), {}).startswith("(?s")


def test_what_was_computed_before_it_was_bounded_is_computed() -> None:
    """In a history of then, with its words for wrong arguments too: the host is asked only where
    something fails.
    """
    asked: list[bool] = []

    def before() -> bool:
        asked.append(True)
        return False

    def computed(name: str, *args: Any, **kwargs: Any) -> Any:
        return host.function(pure.FUNCTION, (name, *args), kwargs)

    host = JobHost(ContextGraph(len), frozenset(), None, turn=1, now=0.0, bounded_functions=before)
    assert computed("textwrap.indent", "a", "> ") == ReturnValue("> a")
    assert asked == []
    lines = ("x" * 2_000 + "a\n") * 2_000
    assert computed("textwrap.indent", "a\n" * 2_000, "x" * 2_000) == ReturnValue(lines)
    assert computed("textwrap.wrap", "a\tb", tabsize=11_000) == ReturnValue(["a", "b"])
    assert computed("statistics.mean", [10**70_000] * 3) == ReturnValue(10**70_000)
    assert len(computed("statistics.quantiles", [1, 2], n=20_002).value) == 20_001
    wide = {**PFORMAT, "indent": 10_002}
    assert computed("pprint.pformat", [1], **wide) == ReturnValue("[1]")
    assert len(computed("fnmatch.translate", "[" * 700).value) == 1_407
    long = b"b" * 700 + b"-"
    assert computed("codecs.decode", long, "punycode", "strict") == ReturnValue("b" * 700)
    ends = ("", "", "", "", 3, "x" * 50_000)
    assert len(computed("difflib.unified_diff", ["a"] * 25, ["b"] * 25, *ends).value) == 53
    assert computed("textwrap.wrap", None) == Failure(
        "TypeError", "textwrap.wrap(): 'NoneType' object has no attribute 'expandtabs'"
    )
    assert isinstance(computed("textwrap.wrap", "a" * 200_001), Failure)
    assert isinstance(computed("difflib.context_diff", ["a"] * 700, ["b"] * 700, *ends), Failure)
    assert len(asked) == 11


@pytest.mark.parametrize("name", ["textwrap.wrap", "statistics.quantiles"])
def test_an_argument_that_is_missing_is_told_by_the_function(name: str) -> None:
    """Not by what bounds it."""
    with pytest.raises(TypeError, match=rf"\b{name.partition('.')[2]}\(\) missing 1"):
        pure.call(name, (), {})


def test_a_later_library_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where later Pythons compute otherwise than 3.11, the host asks none of them."""
    for module, names in (
        (statistics, ("fmean", "geometric_mean", "covariance", "correlation", "quantiles")),
        (urllib.parse, ("urlunparse", "urlunsplit", "urljoin")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, None)
    monkeypatch.setattr(urllib.parse, "uses_netloc", [*urllib.parse.uses_netloc, "itms-services"])

    def computed(name: str, *args: Any, **kwargs: Any) -> Any:
        return pure.call(name, args, kwargs)

    # Later ones give the value itself, 0.0, and a last digit that is one more or less.
    with pytest.raises(ValueError, match="must have at least two data points"):
        computed("statistics.quantiles", [1.0])
    with pytest.raises(ValueError, match="containing positive numbers"):
        computed("statistics.geometric_mean", [0, 1])
    x, y = [5.7, 8.0, 0.6], [1.2, 7.6, 4.7]
    assert computed("statistics.covariance", x, y) == 3.0549999999999984
    assert computed("statistics.correlation", x, y) == 0.25171027671882273
    mean = computed("statistics.fmean", [6.8, 4.5, 4.3], [2.5, 4.4, 5.4])
    assert mean == 4.879674796747967
    assert computed("statistics.quantiles", [1, 2, 3], method="inclusive") == [1.5, 2.0, 2.5]
    assert computed("urllib.parse.urlunparse", ["", "", "//a", "", "q", "f"]) == "//a?q#f"
    assert computed("urllib.parse.urlunparse", ["itms-services", "", "a", "", "", ""]) == (
        "itms-services:a"
    )
    assert computed("urllib.parse.urljoin", "file:///x", "////a") == "file://a"
    assert computed("urllib.parse.urljoin", "http://h/a/b?q", "../c;d#f") == "http://h/c;d#f"
    with pytest.raises(TypeError, match="encoding without a string argument"):
        computed("uuid.uuid5", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", b"x")


def test_what_is_printed_is_in_one_order() -> None:
    """In that of their texts where a process's hashes or addresses would order values."""
    shown = {"one": {"b", "a", "c"}, "two": frozenset({("x", 1), (1, "x")}), "three": {8, 1}}
    text = pure.call("pprint.pformat", (shown,), {**PFORMAT, "width": 200})
    assert text == (
        "{'one': {'a', 'b', 'c'}, 'three': {8, 1}, 'two': frozenset({('x', 1), (1, 'x')})}"
    )
    narrow = pure.call("pprint.pformat", ({("x", 1), (1, "x")},), {**PFORMAT, "width": 5})
    assert narrow.index("'x',\n  1") < narrow.index("1,\n  'x'")
    assert pure.call("pprint.pformat", ("\U0001fae8",), PFORMAT) == "'\\U0001fae8'"
    pairs = [["a", {"z", "x", "y"}]]
    assert pure.call("urllib.parse.urlencode", (pairs, True), {}) == "a=x&a=y&a=z"
