"""The table of what an installation weighs counts every requirement once, and Holdfast is installed
from its source.
"""

from __future__ import annotations

import re
import subprocess

from docs_tools.install import PURPOSES, REST, table
from tests.infra.settings import ROOT


def test_the_table_has_a_line_for_each_purpose() -> None:
    """The heaviest come first, and none of them weighs nothing; the last line is their sum."""
    lines = [line.strip("| ").split(" | ") for line in table().splitlines()[2:]]
    weights = [int(weight.replace(",", "")) for _, weight in lines]
    assert {purpose for purpose, _ in lines[:-1]} == {*PURPOSES, REST}
    assert weights[:-1] == sorted(weights[:-1], reverse=True)
    assert min(weights) > 0
    assert abs(sum(weights[:-1]) - weights[-1]) <= len(weights)


def test_nobody_is_told_to_install_holdfast_by_its_name() -> None:
    """What the package index has under that name is another program of others."""
    listed = ["git", "ls-files", "*.md", ".ci", "docs", "examples", "infra", "runtime", "holdfast"]
    files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    by_name = re.compile(r"""\binstall(?: +-\S+)*(?: +requirements\.lock)? +['"]?holdfast\b(?!/)""")
    by_its_name = [
        (file, told[0])
        for file in files.splitlines()
        for told in by_name.finditer((ROOT / file).read_text(errors="replace"))
    ]
    assert by_its_name == []
