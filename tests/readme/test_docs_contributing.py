"""The changes that ``docs/contributing`` shows can be made today, and name what is there.

What stands beside their lines may change, or each edit there would have to mend them; what they
change themselves may not.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PATCHES = sorted((ROOT / "docs" / "contributing").glob("*.patch"))
ROOMS = ("activities", "holdfast", "runtime", "workflows")


def sections(patch: str) -> dict[str, str]:
    """What a patch says of each file, by its path."""
    parts = re.split(r"^diff --git a/(\S+) b/\S+\n", patch, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def imported(section: str) -> list[tuple[str, str]]:
    """The names that added lines import from rooms, with their modules."""
    added = "\n".join(line[1:] for line in section.splitlines() if re.match(r"\+(?!\+\+)", line))
    statements = re.findall(r"^from (\S+) import (\([^)]*\)|.+)$", added, re.MULTILINE)
    return [
        (module, name)
        for module, names in statements
        for name in re.findall(r"\w+", names)
        if module.partition(".")[0] in ROOMS
    ]


def defined(module: str) -> set[str]:
    """What a module of a room defines or takes from others."""
    place = ROOT / module.replace(".", "/")
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    found = set[str]()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.ImportFrom(names=names):
                found |= {alias.asname or alias.name for alias in names}
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


def test_there_are_four() -> None:
    """And a page that tells of each."""
    page = (ROOT / "docs" / "contributing" / "README.md").read_text()
    assert len(PATCHES) == 4
    assert [patch.name for patch in PATCHES if f"({patch.name})" not in page] == []


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name[:4])
def test_a_change_can_be_made(patch: Path) -> None:
    """The lines that it changes are there. Else: ``git am -3`` it, mend it, run its tests, and
    ``git format-patch -U1 --no-signature --zero-commit`` it.
    """
    done = subprocess.run(
        ["git", "apply", "--check", "-C0", patch], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name[:4])
def test_a_change_is_for_one_room_and_its_places_are_there(patch: Path) -> None:
    """Files that it changes, functions and tables in which it does so, names that it imports."""
    found = sections(patch.read_text())
    new = {path for path, text in found.items() if "new file mode" in text}
    code = [path.split("/") for path in found if path.startswith(ROOMS)]
    rooms = {"/".join(path[:2] if path[0] == "runtime" else path[:1]) for path in code}
    assert len(rooms) == 1
    for path in found.keys() - new:
        text = (ROOT / path).read_text()
        for place in re.findall(r"^@@ [^@]+ @@ (?:async )?(def \w+|class \w+)", found[path], re.M):
            assert f"{place}" in text, path
    for path, section in found.items():
        for module, name in imported(section):
            if f"{module.replace('.', '/')}.py" not in new:
                assert name in defined(module), f"{path}: from {module} import {name}"
