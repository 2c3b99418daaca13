"""The printed configuration is a jobs file that says everything, and loads as the same batch."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.base.redaction.computed import without_keys
from runtime.base.spec.models import BatchSpec, Budget, JobSpec, ModelSettings
from runtime.jobsfile.dump import resolved_yaml
from runtime.jobsfile.load import load_jobs_file
from runtime.jobsfile.written.secret_names import is_secret_key
from tests.tiers.tiers import examples

Load = Callable[..., BatchSpec]


def test_it_is_complete_and_readable(load: Load, place: Path) -> None:
    """Defaults are written out, paths absolute, durations short, long texts in blocks."""
    batch = load(
        "store: arc\njobs:\n- id: a\n  goal: |\n    First.\n    Then.\n  workspace: src\n"
        "  model: scripted/policy.py\n  tools: ['mytools:search']\n  budget: {wall: 5400}\n",
        "nightly.yaml",
    )
    assert (
        resolved_yaml(batch)
        == f"""\
batch: nightly
concurrency: 8
store: {place}/arc
tools_path: {place}
jobs:
  - id: a
    goal: |
      First.
      Then.
    workspace: {place}/src
    model:
      name: scripted/{place}/policy.py
    form: tool
    budget:
      turns: 40
      tokens: 2000000
      usd: 5.0
      wall: 1h30m
    retry:
      on:
        - provider
        - tool
        - error
      times: 0
      attempts: 30
      time: 2h
      first_byte: 10m
      stall: 5m
    context_tokens: 60000
    sections:
      feed: 4000
      handles: 3000
    condenser:
      kind: extract
      keep_first: 2
      summary_tokens: 1500
    pin_user_messages: false
    projection: auto
    tools:
      - mytools:search
"""
    )


def test_it_loads_as_the_same_batch_from_anywhere(load: Load, tmp_path: Path) -> None:
    """Tools are still found when the file is kept elsewhere."""
    batch = load(
        "jobs: [{id: a, goal: g, workspace: src, model: scripted/policy.py, tools:"
        " ['mytools:search']}]"
    )
    kept = tmp_path / "kept.yaml"
    kept.write_text(resolved_yaml(batch))
    assert load_jobs_file(kept) == batch


@pytest.mark.parametrize("break_", ["\x85", "\u2028", "\n", "\t"])
def test_paths_with_line_breaks_round_trip(load: Load, place: Path, break_: str) -> None:
    """A name may have any character, and YAML folds those that it takes for a line's end."""
    name = f"a{break_}b"
    (place / name).mkdir()
    (place / name / "mytools.py").write_text("def f(x: int) -> int:\n    return x\n")
    text = json.dumps(name)
    batch = load(
        f"store: {text}\ntools_path: {text}\njobs:\n"
        f"- {{id: a, goal: g, model: m, workspace: {text}, tools: ['mytools:f']}}\n"
    )
    assert batch.jobs[0].workspace == str(place / name)
    assert load(resolved_yaml(batch)) == batch


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60).filter(
    lambda text: without_keys(text) == text
)
NAME = TEXT.filter(lambda name: not is_secret_key(name))
"""A jobs file may hold no secret, and Hypothesis tries the words that our own sources look for."""
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAME, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(80))
@given(
    goal=TEXT.filter(str.strip),
    value=JSON,
    budget=st.builds(
        Budget,
        turns=st.integers(1, 10**12),
        usd=st.floats(1e-9, 1e9),
        wall_seconds=st.floats(1e-3, 1e8),
    ),
)
def test_any_text_and_any_value_round_trip(goal: str, value: Any, budget: Budget) -> None:
    """Whatever a goal or an option holds, it is printed so that it is read back exactly."""
    with tempfile.TemporaryDirectory() as directory:
        job = JobSpec(
            id="a",
            goal=goal,
            workspace=str(Path(directory).resolve()),
            model=ModelSettings(name="x", options={"option": value}),
            result={"const": value},
            budget=budget,
        )
        batch = BatchSpec(batch="b", jobs=(job,))
        path = Path(directory) / "kept.yaml"
        path.write_text(resolved_yaml(batch), encoding="utf-8", newline="")
        assert load_jobs_file(path) == batch
