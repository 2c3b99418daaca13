"""Where a worker's variables come from: its environment, and no file."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.command_line import ROOT

LOADED = """
import os
from activities._litellm_library import library

print(library().__file__)
print(os.environ.get("HOLDFAST_TOOL_ENV"))
"""


@pytest.mark.slow
def test_no_file_above_litellm_gives_variables(tmp_path: Path) -> None:
    """It would take them from the first ``.env`` above the place where it is installed, as one of
    another user in ``/tmp`` may be.
    """
    spec = find_spec("litellm")
    assert spec is not None and spec.origin is not None
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "litellm").symlink_to(Path(spec.origin).parent)
    (tmp_path / ".env").write_text("HOLDFAST_TOOL_ENV=OPENAI_API_KEY\n")
    kept = {name: value for name, value in os.environ.items() if name != "LITELLM_MODE"}
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env={**kept, "PYTHONPATH": f"{tmp_path / 'lib'}{os.pathsep}{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [str(tmp_path / "lib/litellm/__init__.py"), "None"]
