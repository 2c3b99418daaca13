"""Which Holdfast is installed."""

from __future__ import annotations


def version() -> str:
    """The installed distribution's version."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("holdfast")
    except PackageNotFoundError:
        return "(not installed)"
