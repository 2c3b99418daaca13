"""The variables of the environment that docs/deploying.md lists."""

import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_OF_COMMANDS = {"HOLDFAST_SETUP"}
"""Those that Holdfast sets for the programs that it starts."""
_OF_TESTS = {"HOLDFAST_FAILPOINT", "HOLDFAST_FAILPOINT_ONCE"}


def test_each_variable_that_is_read_is_listed() -> None:
    """And nothing else is."""
    read = {
        name
        for room in ("runtime", "activities", "holdfast")
        for file in (_ROOT / room).rglob("*.py")
        for name in re.findall(r'"(HOLDFAST_[A-Z_]*[A-Z])"', file.read_text())
    }
    rows = re.findall(r"^\| (`HOLDFAST_.*?) \|", (_ROOT / "docs/deploying.md").read_text(), re.M)
    listed = set(re.findall(r"HOLDFAST_[A-Z_]+", " ".join(rows)))
    assert listed == read - _OF_COMMANDS - _OF_TESTS
