"""Editing arguments of which some are masked: a mask is never taken for a value."""

from __future__ import annotations

from typing import Any

import pytest

from activities.contracts import Decision
from runtime.base.errors import InputError
from runtime.base.redaction.masked_edits import left_masked, put_back

MASK = "[masked:TOKEN:0123456789abcdef]"
SHOWN = {"args": ["ann", MASK], "kwargs": {"headers": {"auth": f"Bearer {MASK}", "x": 1}, "n": 3}}
OWN = {"args": ["ann", "s3cret"], "kwargs": {"headers": {"auth": "Bearer s3cret", "x": 1}, "n": 3}}


@pytest.mark.parametrize(
    ("edited", "made"),
    [
        (
            {"args": ["bob", MASK], "kwargs": SHOWN["kwargs"]},
            {"args": ["bob", "s3cret"], "kwargs": OWN["kwargs"]},
        ),
        (
            {"args": ["ann", "none"], "kwargs": {"headers": {"auth": f"Bearer {MASK}", "x": 2}}},
            {"args": ["ann", "none"], "kwargs": {"headers": {"auth": "Bearer s3cret", "x": 2}}},
        ),
        (
            {"args": SHOWN["args"], "kwargs": {"n": 4}},
            {"args": OWN["args"], "kwargs": {"n": 4}},
        ),
        ({"args": [], "kwargs": {}}, {"args": [], "kwargs": {}}),
    ],
)
def test_what_was_left_is_what_it_was(edited: Any, made: Any) -> None:
    """What goes to the job has no mask and is a call's arguments still, and the job puts its own
    values there.
    """
    places, sent = left_masked(SHOWN, edited)
    Decision(question="q", approved=True, arguments=sent, kept=places)
    assert "masked" not in str(sent)
    assert put_back(sent, places, OWN) == made


@pytest.mark.parametrize(
    ("edited", "place"),
    [
        ({"args": [MASK], "kwargs": {}}, "['args'][0]"),
        ({"args": ["ann", f"{MASK}!"], "kwargs": {}}, "['args'][1]"),
        ({"args": [], "kwargs": {"n": {"deep": [MASK]}}}, "['kwargs']['n']"),
        ({"args": [], "kwargs": {MASK: 1}}, "['kwargs']"),
    ],
)
def test_a_mask_in_what_was_changed_is_refused(edited: Any, place: str) -> None:
    """The error names the place and the mask."""
    with pytest.raises(InputError) as caught:
        left_masked(SHOWN, edited)
    assert str(caught.value) == (
        f"{place}: {MASK} stands for a secret that is not shown; leave the value as it was, or"
        " write another one without it"
    )
