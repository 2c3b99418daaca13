"""The README shows what the quickstart really prints, and the commands that the project really
checks.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.blocks import block_of
from benchmarks.quickstart import BLOCK, block, output

ROOT = Path(__file__).parent.parent.parent


def shape(text: str) -> list[str]:
    """The lines in order of their text, without numbers, addresses, and what depends on the source
    tree's size.
    """
    lines = [re.sub(r"\d[\d,.:]*", "#", line) for line in text.strip().splitlines()]
    return sorted(re.sub(r'(: \{"\w+": ).*', r"\1", line) for line in lines)


@pytest.mark.server
@pytest.mark.smoke
def test_the_quickstart_prints_what_the_readme_shows(tmp_path: Path) -> None:
    """Run as the README says, the three jobs end as it shows."""
    readme = (ROOT / "README.md").read_text()
    assert shape(block(output(tmp_path))) == shape(block_of(readme, BLOCK))


def test_ci_runs_the_readmes_test_command() -> None:
    """The last part of the README's second command stands in .ci/run."""
    readme = (ROOT / "README.md").read_text()
    command = re.findall(r"\.venv/bin/python (-m pytest.*)$", readme, re.MULTILINE)
    assert len(command) == 1
    assert f"python {command[0]}" in (ROOT / ".ci" / "run").read_text()
