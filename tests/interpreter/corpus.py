"""Snippets of Python as a model writes them, and what CPython prints for each: ``snippets/*.txt``
and ``snippets/expected.json``.

A snippet begins with ``### name``; ``!declared`` behind it says that the contract tells of its
failure. ``python -m tests.interpreter.corpus`` runs all of them by this Python, each in a process
of its own, and writes down what they print.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent / "snippets"
EXPECTED = HERE / "expected.json"
DECLARED = " !declared"

FILES = {
    "notes.txt": (
        "The first line of notes.\nA second line, which is longer than the first line.\nThe end.\n"
    ),
    "src/app.py": (
        "import os\nfrom pkg import util\n\n\ndef main():\n    # TODO: arguments\n    return"
        " util.helper(os.name)\n"
    ),
    "src/pkg/__init__.py": "",
    "src/pkg/util.py": "import re\n\n\ndef helper(text):\n    return re.sub('a', 'b', text)\n",
    "data/sales.csv": "region,product,amount\nnorth,tea,10\nsouth,tea,25\nnorth,coffee,5\n",
    "data/config.json": (
        '{"name": "demo", "limits": {"max": 5}, "items": [{"id": 1, "on": true}, {"id": 2}]}'
    ),
    "data/settings.ini": "# comment\n[main]\nname = demo\nsize=3\n",
    "data/app.log": (
        "2024-01-05 10:00:00 INFO started\n2024-01-05 10:00:30 ERROR disk full\n2024-01-05 10:02:00"
        " INFO stopped\n"
    ),
}
BINARY = {"data/latin.txt": b"caf\xe9\nplain\n"}


@dataclass(frozen=True)
class Snippet:
    """One snippet: its file and name, its source, and whether the contract declares that it
    fails.
    """

    name: str
    source: str
    declared: bool


@cache
def snippets() -> tuple[Snippet, ...]:
    """All of them, in the order of the files."""
    found: list[Snippet] = []
    for path in sorted(HERE.glob("*.txt")):
        for name, source in re.findall(
            r"^### (.*)\n((?:(?!### ).*\n)*)", path.read_text(), re.MULTILINE
        ):
            label = f"{path.stem}: {name.removesuffix(DECLARED)}"
            found.append(Snippet(label, source.rstrip("\n"), name.endswith(DECLARED)))
    return tuple(found)


def workspace(root: Path) -> Path:
    """The files that the snippets read, beneath ``root``."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, data in BINARY.items():
        (root / name).write_bytes(data)
    return root


def expected() -> dict[str, str]:
    """What CPython printed, by the snippet's name."""
    return dict(json.loads(EXPECTED.read_text()))


def printed(source: str) -> str:
    """What this Python prints for ``source`` in a workspace of its own, without any installed
    package.

    Raises:
        ValueError: if the snippet fails.
    """
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", source],
            cwd=workspace(Path(directory)),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise ValueError(f"{source}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    outputs = {
        snippet.name: printed(snippet.source) for snippet in snippets() if not snippet.declared
    }
    EXPECTED.write_text(json.dumps(outputs, indent=1, ensure_ascii=False) + "\n")
