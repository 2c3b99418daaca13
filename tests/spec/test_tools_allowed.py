"""A tool's process takes functions of the allowed directories alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.tools.allowed import files_of
from runtime.tools.host import ToolHost


def described(allowed: Path, target: str) -> dict[str, Any]:
    """What a process says of a tool that may come from one directory."""
    host = ToolHost(str(allowed), allowed=[allowed])
    try:
        return host.describe(target).answer.result()
    finally:
        host.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from textwrap import dedent", "dedent"),
        ("import textwrap\ndef __getattr__(name): return getattr(textwrap, name)", "indent"),
    ],
)
def test_another_modules_function_is_from_elsewhere(tmp_path: Path, text: str, name: str) -> None:
    """By whatever name an allowed module has it."""
    (tmp_path / "mine.py").write_text(text)
    frame = described(tmp_path, f"mine:{name}")
    assert frame["refused"].startswith(f"the module of tool mine:{name} ")
    assert "textwrap.py is not below a directory" in frame["refused"]


@pytest.mark.slow
def test_a_function_is_its_modules_own_whoever_decorates_it(tmp_path: Path) -> None:
    """Also one of a package, and one that a neighbour has."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "inner.py").write_text("def f(a: int) -> int: ...")
    (tmp_path / "mine.py").write_text(
        "from pydantic import validate_call\nfrom package.inner import f\n"
        "@validate_call\ndef g(a: int) -> int: ..."
    )
    for target in ("mine:f", "mine:g", "package.inner:f"):
        assert described(tmp_path, target)["spec"]["target"] == target


def test_the_files_of_a_module_are_found_without_importing_it(tmp_path: Path) -> None:
    """Those of the packages that it is in, too; none of what is not there."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    for file in ("a/__init__.py", "a/b/c.py", "d.py"):
        (tmp_path / file).write_text("1 / 0")
    found = {name: files_of(name, str(tmp_path)) for name in ("d", "a.b.c", "a.x", "textwrap")}
    assert found == {
        "d": [tmp_path / "d.py"],
        "a.b.c": [tmp_path / "a" / "__init__.py", tmp_path / "a" / "b" / "c.py"],
        "a.x": [],
        "textwrap": [],
    }
