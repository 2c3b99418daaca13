"""Regular expressions are read as Python reads them, with which each statement here is compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from by_python import assert_prints_the_same, printed
from plain_loop import PlainLoop, statements

from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowering import lower

pytestmark = pytest.mark.filterwarnings("ignore:Possible :FutureWarning")

CASES = [
    # The end, which may stand before a line's end.
    *[(r"a$", "a\n"), (r"(.*)$", "x\n"), (r"^$", "\n"), (r"a$", "a\n\n"), (r"a$b", "a$b")],
    *[(r"a\Z", "a\n"), (r"a\Z", "a"), (r"(?m)^(\w)$", "b\na\n"), (r"(?i)A$", "a\n")],
    *[
        (r"#.*$", "a # b\n"),
        (r"\$$", "5$\n"),
        (r"[$]a", "$a"),
        (r"(a$|b$)", "b\n"),
        (r"\\$", "\\\n"),
    ],
    # Classes: what begins another one elsewhere is a character.
    *[(r"[[]", "["), (r"[][]+", "]["), (r"[^[]+", "ab["), (r"[({[]", "["), (r"[[\]]+", "[]")],
    *[
        (r"[a&&b]+", "a&b"),
        (r"[a~~b]+", "a~b"),
        (r"[+--]+", "+,-"),
        (r"[--a]+", "-a"),
        (r"[a-]+", "-a"),
    ],
    *[(r"[a-z&&[^b]]", "b]"), (r"[^]]+", "ab]"), (r"[\[a]\[", "[["), (r"\[([^\[\]]*)\]", "[ab]")],
    # Escapes.
    *[(r"\<div\>", "<div>"), (r"[\<]", "<"), (r"\0", "\0"), (r"\101", "A"), (r"(a)\1", "aa")],
    *[(r"\.py$", "x.py"), (r"[\\/]", "\\"), (r"a\|b", "a|b"), (r"\\Z", "\\Z"), (r"(?#$[)a", "a")],
    # Those that need nothing.
    *[(r"\w+-(?P<n>\d)", "ab-1"), (r"{(\w+)}", "{a}"), (r"(?<=a)b", "ab"), (r"x{2,}", "xxx")],
]

VERBOSE = r'''
import re
date = re.compile(r"""
    (?P<year>\d{4}) [-/ ]   # a year, $ and [
    (\d\d)\ ?$
""", re.VERBOSE | re.IGNORECASE)
print(date.match("2024 05\n").groups(), date.search("2024 - 05"))
flags = re.X | re.M
print(re.findall("^ a $ # end", "a\na\n", flags), re.findall("(?x) a  b", "ab"))
'''

CALLS = r"""
import re
name, lines = "b", ["a b\n", "c\n"]
print([m.group(1) for line in lines if (m := re.match(r"(\w)( b)?$", line))])
print(re.findall(rf"\b{name}$", "a b\n"), re.split(r",$", "a,\n"), re.fullmatch(r"a$", "a\n"))
print(repr(re.sub(r"\s*$", "", "a \n")), re.sub(r"(a)$", lambda m: m[1].upper(), "a\n"))
print(re.subn(r"[[]", "(", "[["), re.search(pattern=r"a$", string="a\n").span())
print(re.findall("A$", "a\n", re.I), re.findall("a$", "a\na\n", flags=re.M))
patterns = {"word": r"^\w+$", "open": r"[[]"}
print({key: re.findall(p, "ab\n") for key, p in patterns.items()})
compiled = re.compile(r"^(\w+)$")
print(compiled.pattern, f"{compiled.pattern!r}", compiled.match("ab\n").group())
class Rule:
    pattern = "mine$"
print(Rule().pattern)
print(repr(re.sub(r"; *", r";\n", "a; b")), repr(re.sub("x", r"\t\\n", "x")))
print(re.compile("b").sub(r"\n", "abc"), re.sub("(a)", r"[\1\g<1>]", "a"))
spec = [("NUM", r"\d+"), ("OP", r"[+*()-]")]
token = re.compile("|".join(f"(?P<{n}>{p})" for n, p in spec))
print([(m.lastgroup, m.group()) for m in token.finditer("1+(2)")])
"""


@pytest.mark.parametrize("source", [VERBOSE, CALLS])
def test_a_statement_finds_what_python_finds(source: str, tmp_path: Path) -> None:
    """Wherever the expression stands, and with any flags."""
    assert_prints_the_same(source, tmp_path)


def test_every_expression_is_read_as_python_reads_it(tmp_path: Path) -> None:
    """Literals and variables; the places that match, and the groups."""
    match = "None if m is None else (m.span(), m.groups(), m.groupdict())"
    source = f"import re\nfor p, t in {CASES!r}:\n    m = re.search(p, t)\n    print(p, {match})\n"
    source += "".join(f"m = re.search({p!r}, {t!r})\nprint({match})\n" for p, t in CASES)
    execution = PlainLoop(tmp_path, statements(source)).run().executions[0]
    assert execution.exception is None
    assert execution.stdout == printed(source)


def test_an_expression_outlives_its_statement(tmp_path: Path) -> None:
    """And says what it was written as."""
    loop = PlainLoop(tmp_path, statements("import re\np = re.compile('a$')", "print(p.pattern)"))
    assert loop.run().replayed().executions[1].stdout == "a$\n"


def test_what_cannot_be_had_says_what_to_write(tmp_path: Path) -> None:
    """A pattern's own calls take no place to begin at."""
    source = "import re\nre.compile('a').search('ba', 1)"
    execution = PlainLoop(tmp_path, statements(source)).run().executions[0]
    assert execution.exception is not None
    assert "search text[pos:]" in execution.exception.message


@pytest.mark.parametrize("source", ["import re\nre.match('a$', x)", "re.sub('a', r'\\n', x)"])
def test_a_run_of_before_reads_what_it_read_then(source: str) -> None:
    """Its history has what came of it."""
    pieces = lower(source, dialect=Dialect.WRITES).pieces
    assert not {"_patterns", "_template"} & set(pieces)
    assert {"_patterns", "_template"} & set(lower(source).pieces)


def test_what_needs_nothing_is_left_alone() -> None:
    """Most expressions are read alike."""
    source = "import re\nm = re.search(r'\\b(\\w+)-[a-z]', x)\nre.findall('a', x, re.M | re.I)"
    assert lower(source).source == source
    assert re.search(r"\b(\w+)-[a-z]", "a-b")


ASCII = r"""
import re
print(re.findall(r"\w+", "aé", re.ASCII), re.findall(r"\d|\W", "٣4é b", flags=re.A))
print(re.sub(r"[^\w\s-]", "", "é-a! b", flags=re.ASCII), re.findall(r"\bab\b", "ab éab", re.A))
print(re.findall(r"[]\w]", "]é", re.A), re.findall(r"[^]\w]", "]éa", re.A), re.split(r"\s", "a\xa0b c"))
letters, flags = r"^\w$", re.A | re.M
print(re.findall(letters, "é\na\n", flags), re.findall(letters, "é\na\n", re.M))
print(re.compile(letters, flags).findall("b"), re.findall(r"\\w", r"\w", re.ASCII | re.I))
"""


def test_ascii_is_read_as_python_reads_it(tmp_path: Path) -> None:
    """Where a class of characters cannot be written for it, that is told; a run of before passes
    it over.
    """
    assert_prints_the_same(ASCII, tmp_path)
    source = 'import re\nre.findall(r"[\\W]", "a", re.A)'
    execution = PlainLoop(tmp_path, statements(source)).run().executions[0]
    assert execution.exception is not None
    assert execution.exception.message == ("re.ASCII does not read \\W here: write the characters")
    assert "_ascii" not in lower(source, dialect=Dialect.NATURAL).pieces


RENAMED = """
import json, re as rx
import re
for line in ["abc\\n", "de f\\n"]:
    m = rx.match(r"(\\w+)$", line)
    print(m and m.group(1))
print(rx.sub(r"(a)(b)", r"\\2\\n\\1", "abab"), rx.sub(r"b$", lambda m: m.group() + "!", "ab\\n"))
print(rx.subn("a$", r"\\t", "a\\n"), rx.subn("a", lambda m: "q", "aba", count=1))
print(re.sub("a$", "x", "ba\\n"), re.compile("a$").sub(r"\\n", "ba\\n"))
print([m.span() for m in rx.finditer(r"a b # c", "ab", rx.VERBOSE)], rx.findall(r"\\w", "é_a", rx.A))
print(rx.split(r"\\s+", "a b c", 1), rx.split(r"\\s+", "a b c", maxsplit=1), rx.I | rx.M == re.I | re.M)
print(rx.fullmatch(pattern="a", string="a").group(), rx.search("B", "abc", flags=rx.I).group())
p = rx.compile(r"x$", rx.M)
print(p.pattern, p.findall("x\\nx\\n"), rx.match(p, "x\\n").span(), isinstance(p, rx.Pattern))
try:
    rx.compile("(")
except rx.error:
    print("bad", list(map(rx.escape, ["a.", "b"])))
"""

ALONE = """
from re import IGNORECASE, Pattern, compile as rc, error, findall, finditer, match, search, sub
print(sub(r"(a)(b)", r"\\2\\n\\1", "abab"), findall(r"\\w+$", "a b\\n"), rc("a$").search("ba\\n"))
print(match(r"(\\w+)$", "abc\\n").group(1), search("A", "ba", IGNORECASE).span())
print([m.group() for m in finditer("a", "aba")], next(finditer("a", "aba")).span())
print(f"{sub('a$', 'x', 'a')!r}")
def both(p: Pattern) -> bool:
    from re import fullmatch
    return bool(fullmatch("a", "a") and fullmatch(p, "a\\n"))
print(both(rc("a$")))
try:
    rc("(")
except error:
    print("bad")
"""


@pytest.mark.parametrize("source", [RENAMED, ALONE])
def test_re_is_the_same_by_another_name(source: str, tmp_path: Path) -> None:
    """As a module, and its functions by themselves."""
    assert_prints_the_same(source, tmp_path)


def test_re_is_the_same_in_later_statements(tmp_path: Path) -> None:
    """By the names that one before has made."""
    loop = PlainLoop(
        tmp_path,
        statements(
            "import re as rx\nfrom re import match",
            r"print(match('a$', 'a\n').span(), rx.sub('a$', lambda m: 'b', 'a\n'))",
        ),
    )
    assert loop.run().replayed().executions[1].stdout == "(0, 1) b\n\n"


def test_re_has_its_own_name_or_is_as_it_was_in_a_run_of_before() -> None:
    """The module's own import is no other name."""
    assert "_regex" not in lower("import re\nre.sub('a', 'b', 'c')").pieces
    for source in ("import re as rx", "from re import match"):
        assert "_regex" in lower(source).pieces
        assert lower(source, dialect=Dialect.FAITHFUL).source == source
