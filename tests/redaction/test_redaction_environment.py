"""The environment is made into a dictionary when it has changed, and at no other time."""

from __future__ import annotations

import os

import pytest

from runtime.base.environment import environment

NAME = "HOLDFAST_TEST_ENVIRONMENT"


def test_it_is_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a variable was added, changed or removed."""
    for value in ("one", "two", "\udcff"):
        monkeypatch.setenv(NAME, value)
        assert environment() == dict(os.environ)
        assert environment()[NAME] == value
    monkeypatch.delenv(NAME)
    assert environment() == dict(os.environ)


def test_it_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls of a model read it, with nothing changed in between."""
    first = environment()
    # No longer than the call: pytest asks for variables too.
    with monkeypatch.context() as patch:
        patch.setattr(
            type(os.environ), "__getitem__", lambda *_: pytest.fail("decoded a variable again")
        )
        second = environment()
    assert second is first
