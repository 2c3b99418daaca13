"""Nothing in a jobs file grows without bound: bombs, deep nesting and outsize parts are plain
errors.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from runtime.jobsfile import source
from runtime.jobsfile.written.bounds import MAX_GOAL_BYTES

Refuse = Callable[..., str]


@pytest.mark.slow
def test_a_bomb_of_aliases(refuse: Refuse) -> None:
    """Aliases of aliases are counted as they are expanded."""
    text = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"b{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
    )
    assert refuse(text).endswith("expected at most 400000 values once aliases are expanded")


def test_an_alias_of_itself(refuse: Refuse) -> None:
    """A list that holds itself ends as too deep."""
    assert refuse("a: &a [*a]\n") == "jobs.yaml:1: nested more than 60 deep"


@pytest.mark.parametrize("text", ["[" * 100 + "]" * 100, "[" * 900, "{a: " * 2_000])
def test_deep_nesting(refuse: Refuse, text: str) -> None:
    """Nesting is bounded, also where it is far too deep to be parsed at all."""
    told = refuse(text)
    assert told.startswith("jobs.yaml:1: ")
    assert told.endswith("nested more than 60 deep")


def test_deep_nesting_in_jsonl(refuse: Refuse) -> None:
    """The same holds for JSONL."""
    for depth in (100, 100_000):
        assert (
            refuse("[" * depth + "]" * depth, "jobs.jsonl")
            == "jobs.jsonl:1: nested more than 60 deep"
        )


def test_a_number_too_long_to_be_one(refuse: Refuse) -> None:
    """Python refuses to read very long integers; so does the loader, in the format's words."""
    digits = "9" * 5_000
    yaml = refuse(f"concurrency: {digits}\njobs: []\n")
    assert yaml.startswith("jobs.yaml:1: concurrency: expected plain YAML, got '999")
    assert len(yaml) < 250
    assert refuse(f'{{"id": {digits}}}', "jobs.jsonl").startswith(
        "jobs.jsonl:1: expected one JSON object a line"
    )


def test_a_file_too_long(refuse: Refuse) -> None:
    """A file past the bound is not even read."""
    assert (
        refuse(b"#" * (source.MAX_FILE_BYTES + 1))
        == "jobs.yaml: expected at most 8388608 bytes, got 8388609; give many jobs as one with 'for_each'"
    )


def test_a_goal_too_long(refuse: Refuse, load: Callable[..., object]) -> None:
    """A goal may be 256 KiB of UTF-8, not more."""
    job = {"id": "a", "workspace": "src", "model": "x"}
    load(json.dumps({**job, "goal": "ü" * (MAX_GOAL_BYTES // 2)}, ensure_ascii=False), "jobs.jsonl")
    told = refuse(
        json.dumps({**job, "goal": "ü" * (MAX_GOAL_BYTES // 2 + 1)}, ensure_ascii=False),
        "jobs.jsonl",
    )
    assert (
        told
        == "jobs.jsonl:1: goal: expected at most 262144 bytes, got 262146; put long material in the"
        " workspace"
    )


@pytest.mark.slow
def test_more_jobs_than_a_file_once_could_have(load: Callable[..., object]) -> None:
    """A file of more than ten thousand jobs is a batch as any other."""
    lines = [
        json.dumps({"id": f"j{i}", "goal": "g", "workspace": "src", "model": "x"})
        for i in range(10_001)
    ]
    assert len(load("\n".join(lines), "jobs.jsonl").jobs) == 10_001  # type: ignore[attr-defined]


def test_as_many_jobs_as_allowed(refuse: Refuse) -> None:
    """A product of values that is out of all proportion is refused before it is made."""
    told = refuse(
        "jobs:\n- id: 'j{n}-{a}'\n  count: 1000000\n  matrix: {a: [1, 2]}\n  goal: g\n"
        "  workspace: src\n  model: x\n"
    )
    assert (
        told == "jobs.yaml:2: jobs[0]: expected at most 1000000 jobs, got 2000000; split the batch"
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("  result: {const: " + "x" * 70_000 + "}", "result: expected a JSON Schema of at most 65536 bytes, got 70013"),
        ("  tools: [" + "m:f, " * 65 + "]", "tools: expected a list no longer than 64, got 65 items"),
    ],
)  # fmt: skip
def test_outsize_parts_of_a_job(refuse: Refuse, lines: str, message: str) -> None:
    """A result schema and a list of tools are bounded too."""
    told = refuse(f"jobs:\n- id: a\n  goal: g\n  workspace: src\n  model: x\n{lines}\n")
    assert told == f"jobs.yaml:6: jobs[0].{message}"


def test_outsize_options(refuse: Refuse) -> None:
    """A model's options are bounded."""
    told = refuse(
        "jobs:\n- id: a\n  goal: g\n  workspace: src\n  model: {name: x, o: " + "y" * 70_000 + "}\n"
    )
    assert told == "jobs.yaml:5: jobs[0].model: expected at most 65536 bytes of options, got 70009"


def test_control_characters_are_escaped(refuse: Refuse) -> None:
    """No text of a jobs file reaches a terminal with its control sequences."""
    told = refuse('jobs:\n- {id: "\\e[31mred", goal: g, workspace: src, model: x}\n')
    assert "\x1b" not in told
    assert told.isprintable()
