"""The versions of ``requirements.lock`` can be installed with each Python that we say we run on."""

from importlib.metadata import PackageNotFoundError, metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.infra.settings import ROOT

OLDEST = "3.11.0"


def test_the_oldest_python_can_install_what_is_locked() -> None:
    """A pin that needs a later one has a marker, and another beside it: Debian 12 has 3.11.2."""
    here = {"python_version": "3.11", "python_full_version": OLDEST}
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
        if locked and not SpecifierSet(needed).contains(OLDEST):
            wanting.append(f"{pin} needs Python {needed}")
    assert wanting == []
