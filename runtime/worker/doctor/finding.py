"""What was found of one thing that a worker needs."""

from __future__ import annotations

from enum import StrEnum

from runtime.base.values import Value


class Verdict(StrEnum):
    """How it stands with it."""

    OK = "ok"
    WARNING = "warning"
    """Some jobs cannot run, or something will soon be missing."""
    FAILED = "failed"
    """No job can run."""


class Finding(Value):
    """One thing: what it is, how it stands, what was seen, and what to do where it does not stand
    well.
    """

    name: str
    verdict: Verdict
    seen: str
    advice: str = ""


def good(name: str, seen: str) -> Finding:
    """All is well."""
    return Finding(name=name, verdict=Verdict.OK, seen=seen)


def worrying(name: str, seen: str, advice: str) -> Finding:
    """Some jobs cannot run, or something will soon be missing."""
    return Finding(name=name, verdict=Verdict.WARNING, seen=seen, advice=advice)


def failed(name: str, seen: str, advice: str = "") -> Finding:
    """No job can run; most of Holdfast's errors say themselves what to do."""
    return Finding(name=name, verdict=Verdict.FAILED, seen=seen, advice=advice)
