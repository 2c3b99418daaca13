"""No function is there that nobody calls: ``vulture`` in CI is sure of parameters, imports and
lines that cannot be reached, but not of functions, since others may call them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from vulture import Vulture

ROOT = Path(__file__).parent.parent.parent

FOLDERS = (
    *("holdfast", "workflows", "activities", "runtime"),
    *("infra", "docs_tools", "examples", "benchmarks", "tests"),
)
KINDS = frozenset({"function", "method", "property", "class"})

DECORATED = [
    *("@*_validator", "@*_serializer", "@*.validator", "@workflow.*"),
    *("@pytest.*", "@rule", "@invariant", "@initialize", "@precondition"),
]
"""Functions that are called by pydantic, Temporal, pytest and Hypothesis."""

NAMED = [
    # Python, its HTTP server, its logging and its walker of syntax trees.
    *("__getattr__", "__dir__", "do_*", "log_message", "handle_error", "handleError", "visit_*"),
    # Plugins and converters of Temporal, callbacks of litellm, pytest.
    *("configure_client", "configure_worker", "run_worker", "workflow_interceptor_class"),
    *("intercept_client", "fetch_workflow_history_events"),
    *("to_payload", "async_log_success_event", "pytest_*"),
    # What the archive's forms name as ``derived``; tools of jobs files.
    *("request_digest", "request_bytes", "layout_digest", "response_digest"),
    *("subclasses", "append_lines"),
]
"""Functions that are called by their names."""


def unused(*paths: Path) -> list[str]:
    """The functions and classes in ``paths`` that nothing in them names."""
    looking = Vulture(ignore_decorators=DECORATED, ignore_names=NAMED)
    # What examples/fix/prepare takes from the package index is others' code.
    looking.scavenge([str(path) for path in paths], exclude=["*/examples/fix/sources/*"])
    return sorted(
        f"{item.filename.name}:{item.first_lineno}: {item.name}"
        for item in looking.get_unused_code(min_confidence=60)
        if item.typ in KINDS
    )


@pytest.mark.slow
def test_every_function_is_called() -> None:
    """By the code, by a test, or by somebody whom this file names."""
    assert unused(*(ROOT / folder for folder in FOLDERS)) == []


def test_a_function_that_nobody_calls_is_seen(tmp_path: Path) -> None:
    """So are a class, a method and a property."""
    (tmp_path / "a.py").write_text(
        "def used():\n    pass\ndef lost():\n    used()\n"
        "class Lost:\n    def method(self):\n        pass\n"
        "    @property\n    def kept(self):\n        pass\n"
    )
    told = ["a.py:3: lost", "a.py:5: Lost", "a.py:6: method", "a.py:8: kept"]
    assert unused(tmp_path) == told
