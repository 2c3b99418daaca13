"""Outlines of source code: one sample of each language beside the outline that it gives
(``outlined/``).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runtime.context.outlines import outline
from runtime.context.outlines.languages import CODE
from runtime.context.outlines.syntax import parsed

SAMPLES = sorted((Path(__file__).parent / "outlined").iterdir())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_each_language_shows_its_definitions_with_signatures_and_documentation(
    sample: Path,
) -> None:
    """0-based lines, nesting, signatures as written, the first line of the comment above or of the
    docstring.
    """
    source, expected = sample.read_text().split("=====\n")
    shown = [
        f"{item.line}: {'  ' * item.level}{item.text}" + (f"  # {item.doc}" if item.doc else "")
        for item in outline(source, Path(sample.stem).suffix)
    ]
    assert "\n".join(shown) + "\n" == expected


def test_each_language_has_a_sample() -> None:
    """So that a grammar whose node names change is noticed."""
    suffixes = [Path(sample.stem).suffix for sample in SAMPLES]
    sampled = {id(CODE[suffix]) for suffix in suffixes if suffix in CODE}
    assert {id(language) for language in CODE.values()} == sampled


def test_a_script_without_a_suffix_is_known_by_its_first_line() -> None:
    """As the system that runs it does."""
    assert [item.text for item in outline("#!/usr/bin/env python3\ndef f(a): ...\n", "")] == [
        "def f(a)"
    ]
    assert [item.text for item in outline("#!/bin/sh\nrun() { echo; }\n", "")] == ["run()"]


@pytest.mark.slow
def test_text_that_takes_too_much_work_to_parse_is_read_by_its_lines() -> None:
    """The bound is a number of steps, not a time: every worker gives up at the same place."""
    hostile = "class Fine {};\n" + "a<" * 120_000
    assert parsed(hostile.encode(), CODE[".cpp"].grammar) is None
    assert [item.text for item in outline(hostile, ".cpp")] == ["class Fine {};"]


def test_comments_cost_no_more_the_more_there_are() -> None:
    """Each is looked at with those right above it, and all that is before them is not: an eighth of
    these took half a minute of a processor.
    """
    code = (
        "import resource, sys\nfrom runtime.context.outlines import outline\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
        "print(*outline('/**/' * 60_000 + '\\n// What it does.\\nfunction f() {}', '.ts'))\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert shown.stdout == "Item(line=2, level=0, text='function f()', doc='What it does.')\n"
