"""A workspace with a source tree, for jobs that run in a plain loop."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Two Python files and a text."""
    (tmp_path / "src").mkdir()
    for name in ("foo", "bar"):
        lines = [f"def {name}_{n}():\n    return {n}\n" for n in range(100)]
        (tmp_path / "src" / f"{name}.py").write_text("\n".join(lines))
    (tmp_path / "notes.md").write_text("# Plan\n\nOne.\n\n# Risks\n\nTwo.\n")
    return tmp_path
