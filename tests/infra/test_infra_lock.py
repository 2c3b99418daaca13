"""The versions of ``requirements.lock`` can be installed with each Python that we say we run on."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.infra.settings import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [
    minor
    for classifier in PROJECT["classifiers"]
    for minor in re.findall(r"^Programming Language :: Python :: (3\.\d+)$", classifier)
]
"""The versions that are named, the oldest first."""


def test_the_pythons_that_are_named_are_those_that_can_install_it() -> None:
    """On another pip says so, in place of what a package says of it that is not ours."""
    oldest, newest = (int(PYTHONS[at].partition(".")[2]) for at in (0, -1))
    allowed = SpecifierSet(PROJECT["requires-python"])
    takes = [f"3.{minor}" for minor in range(40) if allowed.contains(f"3.{minor}.0")]
    assert takes == PYTHONS == [f"3.{minor}" for minor in range(oldest, newest + 1)]


@pytest.mark.parametrize("python", PYTHONS)
def test_each_python_can_install_what_is_locked(python: str) -> None:
    """A pin that needs a later one has a marker, and another beside it: Debian 12 has 3.11.2."""
    first = f"{python}.0"
    here = {"python_version": python, "python_full_version": first}
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    assert pins
    wanting = []
    for pin in pins:
        if pin.marker is not None and not pin.marker.evaluate(here):
            continue
        try:
            package = metadata(pin.name)
        except PackageNotFoundError:
            # Of another platform, or of an extra that the tests do not need.
            continue
        # Not in brackets: what a package does not say is None there, or an error.
        needed = package.get("Requires-Python", "")
        locked = pin.specifier.contains(package["Version"])
        if locked and not SpecifierSet(needed).contains(first):
            wanting.append(f"{pin} needs Python {needed}")
    assert wanting == []
