"""The key ``summary_model``: who sums up views and groups; the job's own model, another one, or
nobody.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runtime.base.errors import InputError
from runtime.base.spec.models import BatchSpec, ModelSettings

Load = Callable[..., BatchSpec]


def job(line: str, model: str = "openai/x") -> str:
    return (
        "defaults: {summary_model: openai/small}\njobs:\n- id: a\n  goal: g\n  workspace: src\n "
        f" model: {model}\n  {line}\n"
    )


@pytest.mark.parametrize(
    ("text", "writer"),
    [
        (job(""), "openai/small"),
        (job("summary_model: openai/other"), "openai/other"),
        (job("summary_model: none"), None),
        (job("").partition("\n")[2], "openai/x"),
        (job("", "scripted/policy.py").partition("\n")[2], None),
    ],
)
def test_who_writes_summaries(load: Load, text: str, writer: str | None) -> None:
    """A job's own key goes before the default one; ``none`` is nobody, as for a scripted model
    without the key.
    """
    assert load(text).jobs[0].writer == (None if writer is None else ModelSettings(name=writer))


def test_nobody_has_no_options(load: Load) -> None:
    """What is set for a model that there is not is a mistake."""
    with pytest.raises(
        InputError, match=r"summary_model: 'none' stands alone: no model sums anything up"
    ):
        load(job("summary_model: {name: none, temperature: 0}"))
