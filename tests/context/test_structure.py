"""Level 1: outlines by kind of file, the lines near a position, and what gives way when the budget
is small.
"""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.base.tokens import encoding
from runtime.context.excerpts import Excerpt, excerpt
from runtime.context.outlines import ITEM_CHARS, MAX_ITEMS, outline
from runtime.context.outlines.data import MOST_COLUMNS
from runtime.context.outlines.languages import CODE, DATA
from runtime.context.ranking import name_of
from runtime.context.source_text import SourceText
from runtime.context.sources import ALL_TOKENS
from runtime.context.structure import PLAIN_TOKENS, structure
from tests.tiers.tiers import examples

SUFFIXES = [".md", ".rst", ".csv", ".tsv", ".ini", "", ".html", ".pl", ".sql", *CODE, *DATA]

PYTHON = '''\
"""A module of shapes.

More on them.
"""

LIMIT = 3


class Shape(Base, metaclass=Meta):
    """Something with an area."""

    name: str

    def area(self, scale: float = 1.0, *args: int, unit: str) -> float:
        """The area in square units."""
        return 0.0


async def main(argv: list[str]) -> None:
    def inner(): ...


if LIMIT:
    def conditional(): ...
'''


def by_fours(text: str) -> int:
    """A counter in which four characters are one token."""
    return math.ceil(len(text) / 4)


def lines(text: str, suffix: str) -> list[str]:
    """An outline, one ``LINE LEVEL TEXT`` an item."""
    return [
        f"{item.line} {item.level} {item.text}" for item in outline(textwrap.dedent(text), suffix)
    ]


def of(text: str, name: str, pos: str = "0", tokens: int = 1000) -> Excerpt:
    """The structure of ``text`` as the file ``name``."""
    return structure(SourceText.of(text.encode()), name, pos, tokens, by_fours)


def test_python_shows_classes_functions_and_the_first_line_of_docstrings() -> None:
    """Signatures, 0-based lines, nesting, and the lines near the position under a heading of their
    own.
    """
    assert of(PYTHON, "shapes.py", "10").text == textwrap.dedent('''\
        0: """module"""  # A module of shapes.
        5: LIMIT = 3
        8: class Shape(Base, metaclass=Meta)  # Something with an area.
        11:   name: str
        13:   def area(self, scale: float = 1.0, *args: int, unit: str) -> float  # The area in square units.
        18: async def main(argv: list[str]) -> None
        19:   def inner()
        23: def conditional()
        --- lines 0-24 of 24:
        ''') + PYTHON.removesuffix("\n")


def test_the_structure_covers_the_whole_source() -> None:
    """Its lines are all of the source's, whichever are shown nearby."""
    shown = of(PYTHON, "shapes.py", "10", 150)
    assert (shown.first_line, shown.last_line, shown.total_lines) == (0, 24, 24)
    assert shown.tokens == by_fours(shown.text) <= 150


def test_detail_goes_before_items_when_the_budget_shrinks() -> None:
    """Documentation first, then the entries that matter least; what is left out is counted."""
    source = "".join(f'class C{n}:\n    """Doc {n}."""\n    def m(self): ...\n' for n in range(8))
    assert "# Doc 7." in of(source, "a.py", tokens=200).text
    plain = of(source, "a.py", tokens=61)
    assert "# Doc" not in plain.text and "23:   def m(self)" in plain.text
    assert not plain.truncated
    shallow = of(source, "a.py", tokens=56)
    assert (
        shallow.text.startswith("0: class C0\n2:   def m(self)\n3: class C1\n")
        and shallow.truncated
    )
    assert "18: class C6\n21: class C7\n… 4 more entries left out" in shallow.text
    tiny = of(source, "a.py", tokens=18)
    assert tiny.text == "0: class C0\n3: class C1\n6: class C2\n… 13 more entries left out"


def test_what_the_source_uses_most_and_public_names_come_first() -> None:
    """A used function before an unused one, a private one last; shown in the source's order."""
    source = (
        "def unused(): ...\ndef _hidden(): ...\ndef used(): ...\nx = used() + used() + _hidden()\n"
    )
    assert of(source, "a.py", tokens=13).text == "2: def used()\n… 3 more entries left out"
    assert (
        of(source, "a.py", tokens=16).text
        == "0: def unused()\n2: def used()\n… 2 more entries left out"
    )


def test_entries_near_the_position_come_first_and_under_what_holds_them() -> None:
    """The method at the position is shown with its class, whatever else is left out; a quarter is
    for the lines.
    """
    source = "".join(f"class C{n}:\n    def m{n}(self):\n        return {n}\n" for n in range(400))
    shown = of(source, "a.py", "/def m300", tokens=200).text
    outlined, near = shown.split("--- ")
    assert "900: class C300\n901:   def m300(self)\n" in outlined
    assert by_fours(near) <= 50 and near.startswith("lines 901-")


def test_without_a_position_there_are_no_lines_beside_the_outline() -> None:
    """Neither at the default position nor without a budget, wherever it is."""
    assert "---" not in of(PYTHON, "shapes.py").text
    everything = of(PYTHON, "shapes.py", "10", ALL_TOKENS)
    assert everything.text == of(PYTHON, "shapes.py").text and not everything.truncated


def test_a_long_signature_is_cut_between_its_parameters() -> None:
    """Where not all signatures fit, and the most telling ones are shown whole again if there is
    room.
    """
    source = (
        "def first(alpha: int, beta: int, gamma: int, delta: int, epsilon: int, zeta: int): ...\n"
    )
    assert (
        of(source, "a.py", tokens=20).text
        == "0: def first(alpha: int, beta: int, gamma: int, delta: int, …)"
    )


def test_a_real_client_shows_its_public_methods_within_2000_tokens() -> None:
    """httpx's: all public classes, nine of ten public methods, no imports; without a budget a fifth
    of the file at most.
    """
    path = Path(httpx.__file__).with_name("_client.py")
    source, count = SourceText.of(path.read_bytes()), encoding("cl100k_base").count
    shown = structure(source, path.name, "0:0", 2000, count)
    names = [name_of(line.partition(": ")[2]) for line in shown.text.splitlines()]
    public = [name_of(item.text) for item in outline(path.read_text(), ".py") if item.level == 1]
    public = [name for name in public if not name.startswith("_")]
    assert {"UseClientDefault", "ClientState", "BaseClient", "Client", "AsyncClient"} <= set(names)
    assert sum(min(names.count(name), public.count(name)) for name in set(public)) >= 0.9 * len(
        public
    )
    assert "import " not in shown.text and shown.tokens <= 2000
    whole = structure(source, path.name, "0:0", ALL_TOKENS, count)
    assert not whole.truncated and 2000 < whole.tokens * 4 < count(path.read_text())


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [
        (
            ".md",
            """\
            Title
            =====
            ## Second ##
            ```
            # no heading
            ```
            Third
            -----
            - item
            ---
            """,
            ["0 0 Title", "2 1 Second", "6 1 Third"],
        ),
        (
            ".rst",
            """\
            =====
            Title
            =====
            Part
            ----
            Deeper
            ~~~~~~
            Part two
            --------
            """,
            ["1 0 Title", "3 1 Part", "5 2 Deeper", "7 1 Part two"],
        ),
        (
            ".json",
            """\
            {
              "name": "x",
              "deps": {
                "a": "1",
                "deep": {
                  "b": {"c": 2}
                }
              },
              "rows": [{"id": 1}, {"id": 2}]
            }
            """,
            [
                '1 0 name: "x"',
                "2 0 deps: object with 2 keys",
                '3 1 a: "1"',
                "4 1 deep: object with 1 key",
                "5 2 b: object with 1 key",
                "8 0 rows: array of 2 objects",
            ],
        ),
        (
            ".json",
            '[{"a": [1, 2], "b": null}, {"c": 1}]',
            ["0 0 array of 2 objects", "0 1 a: array of 2", "0 1 b: null"],
        ),
        (
            ".yaml",
            """\
            name: ci
            on:
              push: main
            jobs:
              - a: 1
              - b
            # key: comment
            """,
            ["0 0 name: ci", "1 0 on: object with 1 key", "2 1 push: main", "3 0 jobs: array of 2"],
        ),
        (
            ".toml",
            """\
            top = 1
            [project]
            name = "x"
            [[tool.x]]
            """,
            ["0 0 top: 1", "1 0 [project]", '2 1 name: "x"', "3 0 [[tool.x]]"],
        ),
        (
            ".csv",
            """\
            id,name,score
            1,"a, b",2.5
            2,c,
            """,
            [
                "0 0 3 columns, 2 lines after the header",
                "0 1 id: integer, e.g. 1",
                "0 1 name: text, e.g. a, b",
                "0 1 score: number, 1 empty, e.g. 2.5",
            ],
        ),
        (
            ".ini",
            """\
            [section]
            key = value
            """,
            ["0 0 [section]", "1 1 key = value"],
        ),
        (
            ".dart",
            """\
            public class Shape {
                func area() -> Double {
            """,
            ["0 0 public class Shape", "1 2 func area() -> Double"],
        ),
    ],
)
def test_outlines_of_text_and_data(suffix: str, text: str, expected: list[str]) -> None:
    """Headings, keys with the shape of their values, columns, and lines that look like
    definitions.
    """
    assert lines(text, suffix) == expected


@pytest.mark.parametrize(
    "broken",
    [
        "class Fine:\n    pass\ndef broken(:\n",
        "class Fine:\n\0",
        "class Fine:\n" + "(" * 10_000,
        "class Fine: pass\nx = " + "-" * 100_000 + "1\n",
        "class Fine: pass\nx = " + "a." * 50_000 + "b\n",
        "class Fine: pass\nx = " + "f(" * 190 + ")" * 190 + "\n",
    ],
)
def test_broken_python_is_outlined_as_far_as_it_goes(broken: str) -> None:
    """Whatever the parser does with it, the class is found."""
    assert any(item.text.startswith("class Fine") for item in outline(broken, ".py"))


def test_broken_json_and_a_text_without_structure_are_shown_as_excerpts() -> None:
    """Level 1 of what has no structure is level 0."""
    for text, name in (
        ("[[[[", "a.json"),
        ("[" * 100_000, "a.json"),
        ("plain words\n", "a.txt"),
        ("", "a.py"),
    ):
        source = SourceText.of(text.encode())
        assert structure(source, name, "0", 100, by_fours) == excerpt(source, "0", 100, by_fours)


def test_a_text_without_structure_is_not_shown_whole_where_only_the_summary_is_asked_for() -> None:
    """``All`` at level 1 is bounded there, and says that there is more."""
    shown = of("plain words\n" * 5_000, "a.txt", tokens=ALL_TOKENS)
    assert shown.tokens <= PLAIN_TOKENS and shown.truncated


def test_binary_content_has_no_structure() -> None:
    """As at level 0."""
    assert of("\0", "a.py").text == "[binary content, not shown as text]"


def test_outlines_are_bounded() -> None:
    """In the number of items and in the length of each."""
    assert len(outline("def f(): ...\n" * (MAX_ITEMS + 5), ".py")) == MAX_ITEMS
    [item] = outline(f"def {'f' * 1000}(): ...\n", ".py")
    assert len(item.text) == ITEM_CHARS and item.text.endswith("…")


def test_a_large_source_is_outlined_from_its_start_and_says_so() -> None:
    """The first 256 KiB are outlined, the position may be anywhere."""
    shown = of(
        "class First: pass\n" + "x = 1  # filler\n" * 50_000 + "class Last: pass\n",
        "big.py",
        "/class Last",
        300,
    )
    assert "0: class First" in shown.text
    assert "more entries left out\n… lines after 4999 are not outlined\n---" in shown.text
    assert shown.text.endswith("class Last: pass")
    assert shown.truncated


def test_a_position_that_makes_no_sense_is_a_value_error() -> None:
    """As at level 0."""
    with pytest.raises(ValueError, match="no line contains 'absent'"):
        of(PYTHON, "a.py", "/absent")


pieces = st.sampled_from(
    [
        "class A:\n",
        "    def f(self):\n",
        "# Title\n",
        "====\n",
        '"k": {\n',
        "key: 1\n",
        "[s]\n",
        "func x() {\n",
        "\n",
        "é(\n",
    ]
)


@settings(max_examples=examples(150))
@given(
    text=st.lists(pieces, max_size=25).map("".join) | st.text(max_size=200),
    suffix=st.sampled_from(SUFFIXES),
    line=st.integers(0, 30),
    tokens=st.integers(0, 150),
)
def test_no_text_of_any_kind_raises_or_goes_over_the_budget(
    text: str, suffix: str, line: int, tokens: int
) -> None:
    """Structure never fails on a source, keeps to its budget, and is the same each time."""
    shown = of(text, f"file{suffix}", str(line), tokens)
    assert shown == of(text, f"file{suffix}", str(line), tokens)
    assert shown.tokens == by_fours(shown.text) <= tokens


@pytest.mark.parametrize(
    "hostile",
    [
        "- " * 300 + "a: 1\n",
        "".join(f"{' ' * level}a:\n" for level in range(300)),
        "".join(f"{' ' * level}a:\n{' ' * level}-\n" for level in range(150)),
    ],
    ids=["lists", "keys", "both"],
)
def test_yaml_that_is_nested_too_deeply_is_read_by_its_lines(hostile: str) -> None:
    """Its grammar has room for 253 levels and writes on: the process died, which is another one
    here.
    """
    shown = subprocess.run(
        [sys.executable, "-c", _OUTLINED], input=f"def f():\n{hostile}", text=True, check=False,
        capture_output=True,
    )  # fmt: skip
    assert (shown.returncode, shown.stdout) == (0, "def f():\n")


_OUTLINED = """
import sys
from runtime.context.outlines import outline

print(*(item.text for item in outline(sys.stdin.read(), ".yaml")))
"""


def test_yaml_that_is_nested_as_deeply_as_people_write_has_its_keys() -> None:
    """In as many columns as may be, two levels in each."""
    deep = "".join(f"{' ' * level}a:\n{' ' * level}-\n" for level in range(MOST_COLUMNS - 1))
    assert outline(deep, ".yaml")[0].text == "a: array of 1 object"
