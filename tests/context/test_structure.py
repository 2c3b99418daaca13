"""Level 1: outlines by kind of file, the lines near a position, and what gives way when the budget is small."""

from __future__ import annotations

import math
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.context.excerpts import Excerpt, excerpt
from runtime.context.outlines import ITEM_CHARS, MAX_ITEMS, outline
from runtime.context.outlines.languages import CODE, DATA
from runtime.context.source_text import SourceText
from runtime.context.structure import structure

SUFFIXES = [".md", ".rst", ".csv", ".tsv", ".ini", "", *CODE, *DATA]

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
    return [f"{item.line} {item.level} {item.text}" for item in outline(textwrap.dedent(text), suffix)]


def of(text: str, name: str, pos: str = "0", tokens: int = 1000) -> Excerpt:
    """The structure of ``text`` as the file ``name``."""
    return structure(SourceText.of(text.encode()), name, pos, tokens, by_fours)


def test_python_shows_classes_functions_and_the_first_line_of_docstrings() -> None:
    """Signatures, 0-based lines, nesting, and the lines near the position under a heading of their own."""
    assert of(PYTHON, "shapes.py", "10").text == textwrap.dedent(
        '''\
        0: """module"""  # A module of shapes.
        5: LIMIT = 3
        8: class Shape(Base, metaclass=Meta)  # Something with an area.
        11:   name: str
        13:   def area(self, scale: float = 1.0, *args: int, unit: str) -> float  # The area in square units.
        18: async def main(argv: list[str]) -> None
        19:   def inner()
        23: def conditional()
        --- lines 0-24 of 24:
        '''
    ) + PYTHON.removesuffix("\n")


def test_the_structure_covers_the_whole_source() -> None:
    """Its lines are all of the source's, whichever are shown nearby."""
    shown = of(PYTHON, "shapes.py", "10", 150)
    assert (shown.first_line, shown.last_line, shown.total_lines) == (0, 24, 24)
    assert shown.tokens == by_fours(shown.text) <= 150


def test_detail_goes_before_items_when_the_budget_shrinks() -> None:
    """Documentation first, then the deeper levels, then entries from the end, and what is left out is counted."""
    source = "".join(f'class C{n}:\n    """Doc {n}."""\n    def m(self): ...\n' for n in range(8))
    assert "# Doc 7." in of(source, "a.py", tokens=200).text
    plain = of(source, "a.py", tokens=100)
    assert "# Doc" not in plain.text.split("---")[0] and "23:   def m(self)" in plain.text
    assert not plain.truncated
    shallow = of(source, "a.py", tokens=60)
    assert shallow.text.startswith("0: class C0\n3: class C1\n") and shallow.truncated
    assert "21: class C7\n… 8 deeper entries left out" in shallow.text
    tiny = of(source, "a.py", tokens=22)
    assert tiny.text.startswith("0: class C0\n3: class C1\n6: class C2\n… 13 more entries left out")


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
            ".swift",
            """\
            public class Shape {
                func area() -> Double {
            """,
            ["0 0 public class Shape", "1 2 func area() -> Double"],
        ),
    ],
)
def test_outlines_of_text_and_data(suffix: str, text: str, expected: list[str]) -> None:
    """Headings, keys with the shape of their values, columns, and lines that look like definitions."""
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
    for text, name in (("[[[[", "a.json"), ("[" * 100_000, "a.json"), ("plain words\n", "a.txt"), ("", "a.py")):
        source = SourceText.of(text.encode())
        assert structure(source, name, "0", 100, by_fours) == excerpt(source, "0", 100, by_fours)


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
        "class First: pass\n" + "x = 1  # filler\n" * 50_000 + "class Last: pass\n", "big.py", "/class Last", 300
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


@settings(max_examples=150)
@given(
    text=st.lists(pieces, max_size=25).map("".join) | st.text(max_size=200),
    suffix=st.sampled_from(SUFFIXES),
    line=st.integers(0, 30),
    tokens=st.integers(0, 150),
)
def test_no_text_of_any_kind_raises_or_goes_over_the_budget(text: str, suffix: str, line: int, tokens: int) -> None:
    """Structure never fails on a source, keeps to its budget, and is the same each time."""
    shown = of(text, f"file{suffix}", str(line), tokens)
    assert shown == of(text, f"file{suffix}", str(line), tokens)
    assert shown.tokens == by_fours(shown.text) <= tokens
