"""The key ``condenser``: a kind, a mapping, or a list of both; ``auto`` and ``none`` are resolved
when the file is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runtime.base.spec.models import BatchSpec, CondenserSpec, ModelSettings
from runtime.history.condensers.kinds import KINDS
from runtime.job.condensing import condenser_of
from runtime.jobsfile.condensers import condenser_value

Load = Callable[..., BatchSpec]
ROLLING, EXTRACT, SUMMARY = "rolling", "extract", "summary"


def job(line: str, model: str = "openai/x") -> str:
    return f"jobs:\n- id: a\n  goal: g\n  workspace: src\n  model: {model}\n  {line}\n"


@pytest.mark.parametrize(
    ("line", "model", "condensers"),
    [
        ("", "openai/x", (CondenserSpec(kind=SUMMARY),)),
        ("", "scripted/policy.py", (CondenserSpec(kind=EXTRACT),)),
        ("condenser: auto", "openai/x", (CondenserSpec(kind=SUMMARY),)),
        ("condenser: summary", "scripted/policy.py", (CondenserSpec(kind=SUMMARY),)),
        ("condenser: none", "openai/x", ()),
        ("condenser: rolling", "openai/x", (CondenserSpec(kind=ROLLING),)),
        ("condenser: {kind: rolling, max_size: 40, keep_first: 4}", "x", (CondenserSpec(kind=ROLLING, max_size=40, keep_first=4),)),
        (
            "condenser: {kind: auto, model: openai/small, input_tokens: 9000}",
            "scripted/policy.py",
            (CondenserSpec(kind=SUMMARY, model=ModelSettings(name="openai/small"), input_tokens=9000),),
        ),
        ("condenser: [{kind: summary, summary_tokens: 300}, rolling]", "x", (CondenserSpec(kind=SUMMARY, summary_tokens=300), CondenserSpec(kind=ROLLING))),
    ],
)  # fmt: skip
def test_what_a_job_may_say(
    load: Load, line: str, model: str, condensers: tuple[CondenserSpec, ...]
) -> None:
    """Each way of writing it, and what it means."""
    assert load(job(line, model)).jobs[0].condenser == condensers


def test_the_default_is_every_jobs(load: Load) -> None:
    """A job's own condenser replaces the default one, and so does its pinning."""
    text = (
        "defaults: {model: x, workspace: src, condenser: rolling, pin_user_messages: true}\n"
        "jobs: [{id: a, goal: g}, {id: b, goal: g, condenser: none, pin_user_messages: false}]\n"
    )
    first, second = load(text).jobs
    assert (first.condenser, first.pin_user_messages) == ((CondenserSpec(kind=ROLLING),), True)
    assert (second.condenser, second.pin_user_messages) == ((), False)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_written_and_is_made(load: Load, kind: str) -> None:
    """Whatever stands among the kinds: a jobs file may name it, and its job gets it."""
    (spec,) = load(job(f"condenser: {{kind: {kind}, max_size: 9}}")).jobs[0].condenser
    assert (spec.kind, spec.max_size) == (kind, 9)
    made: Any = condenser_of((spec,))
    assert (made.max_size, made.keep_first) == (9, 2)
    assert condenser_value((spec,)).keys() >= {
        "kind",
        "max_size",
        *KINDS[kind].settings - {"model"},
    }


_NAMES = [f"'{name}'" for name in ("auto", "none", *KINDS)]
EXPECTED = f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("condenser: rollin", f"condenser.kind: expected {EXPECTED}, got 'rollin'"),
        ("condenser: 4", "condenser: expected a condenser's kind or a mapping with its kind, got 4"),
        ("condenser:", "condenser: expected a value, got nothing; leave the key out instead"),
        ("condenser: {max_size: 50}", "condenser.kind: required key is missing"),
        ("condenser: {kind: rolling, max_size: 3}", "condenser.max_size: expected a number of at least 8, got 3"),
        ("condenser: {kind: rolling, maxsize: 30}", "condenser.maxsize: unknown key; did you mean 'max_size'?"),
        ("condenser: {kind: rolling, max_size: 8, keep_first: 8}", "condenser.keep_first: 8 events that always stay leave nothing to forget of max_size 8"),
        ("condenser: {kind: summary, input_tokens: 500}", "condenser.summary_tokens: a summary of 1500 tokens is longer than input_tokens 500, which it stands for"),
        ("condenser: {kind: rolling, model: y}", "condenser.model: a condenser of the kind 'rolling' has no 'model'"),
        ("condenser: [summary, none]", "condenser[1]: 'none' stands alone: it forgets nothing, and others would"),
        ("condenser: [rolling, {kind: summary, keep_first: 0}]", "condenser[1].keep_first: expected a number of at least 2, got 0"),
        ("condenser: {kind: summary, model: {name: y, api_key: k}}", "condenser.model.api_key: secrets do not belong in a jobs file; "
         "set the provider's environment variable instead, such as OPENAI_API_KEY"),
        ("max_size: 50", "max_size: unknown key here; it belongs in 'condenser'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(refuse: Callable[..., str], line: str, message: str) -> None:
    """The line, the key, and what was expected."""
    assert refuse(job(line)) == f"jobs.yaml:6: jobs[0].{message}"
