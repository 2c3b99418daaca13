"""A jobs file becomes a batch in which nothing is left to fill in."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.base.errors import InputError
from runtime.base.spec.models import BatchSpec, Budget, JobSpec, ModelSettings, ToolSpec
from runtime.jobsfile.load import load_jobs_file

Load = Callable[..., BatchSpec]

ISSUE = """\
batch: nightly
concurrency: 3
defaults:
  model: openai/gpt-5
  budget: {turns: 40, tokens: 2000000, usd: 5.0, wall: 6h}
  context_tokens: 60000
jobs:
  - id: licences
    goal: Find every source file without a licence header and report them.
    workspace: ./src
    tools: ["mytools:search"]
    result: {type: object, required: [files]}
"""


def test_the_example_of_the_issue(load: Load, place: Path) -> None:
    """The jobs file of the issue loads as it says."""
    search = ToolSpec(
        name="search",
        target="mytools:search",
        search_path=str(place),
        stub="def search(query: str, limit: int = 5) -> list[str]: ...",
        doc="Find the lines that hold the query.",
        is_async=False,
    )
    assert load(ISSUE) == BatchSpec(
        batch="nightly",
        concurrency=3,
        store=None,
        jobs=(
            JobSpec(
                id="licences",
                goal="Find every source file without a licence header and report them.",
                workspace=str(place / "src"),
                tools=(search,),
                result={"type": "object", "required": ["files"]},
                model=ModelSettings(name="openai/gpt-5"),
                form="tool",
                budget=Budget(turns=40, tokens=2_000_000, usd=5.0, wall_seconds=21_600.0),
                context_tokens=60_000,
            ),
        ),
    )


def test_a_small_file_gets_the_stated_defaults(load: Load) -> None:
    """Stem, concurrency, budget, context size and form have defaults."""
    batch = load("jobs: [{id: a, goal: g, workspace: src, model: x}]\n", "small.v2.yaml")
    assert (batch.batch, batch.concurrency) == ("small.v2", 8)
    assert batch.jobs[0].budget == Budget(
        turns=40, tokens=2_000_000, usd=5.0, wall_seconds=21_600.0
    )
    assert (batch.jobs[0].context_tokens, batch.jobs[0].form) == (60_000, "tool")


def test_a_job_overrides_every_default(load: Load, place: Path) -> None:
    """Settings of a job win; a budget is overridden limit by limit, anything else as a whole."""
    batch = load("""\
defaults:
  model: {name: openai/a, temperature: 0}
  form: script
  budget: {turns: 7, usd: 1}
  context_tokens: 9000
  workspace: src
  tools: ["mytools:search"]
  result: {type: string}
jobs:
  - {id: inherits, goal: g}
  - id: overrides
    goal: g
    model: openai/b
    form: auto
    budget: {turns: 8, wall: 30s, deadline: 2026-05-31T08:00:00+02:00}
    context_tokens: 8000
    workspace: docs
    tools: []
    result: null
""")
    inherits, overrides = batch.jobs
    assert inherits.model == ModelSettings(name="openai/a", options={"temperature": 0})
    assert inherits.budget == Budget(turns=7, usd=1.0)
    assert (inherits.form, inherits.context_tokens) == ("script", 9000)
    assert [tool.name for tool in inherits.tools] == ["search"]
    assert inherits.result == {"type": "string"}
    assert overrides == JobSpec(
        id="overrides",
        goal="g",
        model=ModelSettings(name="openai/b"),
        form="tool",
        budget=Budget(turns=8, usd=1.0, wall_seconds=30.0, deadline="2026-05-31T06:00:00+00:00"),
        context_tokens=8000,
        workspace=str(place / "docs"),
    )


def test_a_scripted_model_is_found_beside_the_file(load: Load, place: Path) -> None:
    """The script of a scripted model is resolved relative to the jobs file, options or not."""
    batch = load(
        "defaults: {workspace: src}\n"
        "jobs:\n"
        "  - {id: a, goal: g, model: scripted/policy.py}\n"
        "  - {id: b, goal: g, model: {name: scripted/./policy.py, delay: 2}}\n"
    )
    assert [job.model.script for job in batch.jobs] == [str(place / "policy.py")] * 2
    assert batch.jobs[0].model.name == f"scripted/{place}/policy.py"
    assert batch.jobs[1].model.options == {"delay": 2}


def test_jsonl_has_one_job_a_line(load: Load, place: Path) -> None:
    """Each line of a JSONL file is a job with all its settings; blank lines and CRLF do not
    matter.
    """
    batch = load(
        '{"id": "a", "goal": "g", "workspace": "src", "model": "x", "tools":'
        ' ["mytools:search"]}\r\n\r\n{"id": "b", "goal": "g", "workspace": "docs", "model":'
        ' {"name": "y"}, "budget": {"wall": "2d"}}\r\n',
        "many.jsonl",
    )
    assert (batch.batch, [job.id for job in batch.jobs]) == ("many", ["a", "b"])
    assert batch.jobs[1].workspace == str(place / "docs")
    assert batch.jobs[1].budget.wall_seconds == 172_800.0


def test_anchors_and_merge_keys_work(load: Load) -> None:
    """An alias repeats a value; a merged mapping gives what the job leaves out."""
    batch = load("""\
jobs:
  - &first {id: a, goal: g, workspace: src, model: &m {name: x, top_p: 1}}
  - <<: *first
    id: b
    goal: h
  - {id: c, goal: g, workspace: docs, model: *m}
""")
    assert [(job.id, job.goal) for job in batch.jobs] == [("a", "g"), ("b", "h"), ("c", "g")]
    assert all(job.model == ModelSettings(name="x", options={"top_p": 1}) for job in batch.jobs)


def test_text_that_looks_like_a_date_stays_text(load: Load) -> None:
    """A date is text, since JSON has no dates; ``yes`` is text too, as in YAML 1.2."""
    job = load(
        "jobs: [{id: a, goal: 2024-01-01, workspace: src, model: {name: x, stop: [yes,"
        " 2020-02-02]}}]"
    ).jobs[0]
    assert job.goal == "2024-01-01"
    assert job.model.options == {"stop": ["yes", "2020-02-02"]}


def test_a_number_is_a_text_key(load: Load) -> None:
    """JSON has text keys only, so a schema's numeric property names are taken as text."""
    job = load(
        "jobs: [{id: a, goal: g, workspace: src, model: x, result: {properties: {404: {type:"
        " string}}}}]"
    ).jobs[0]
    assert job.result == {"properties": {"404": {"type": "string"}}}


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ("s3://bucket/prefix?region=eu", "s3://bucket/prefix?region=eu"),
        ("file:///var/archive", "file:///var/archive"),
        ("./archive", "{place}/archive"),
        ("/var/archive", "/var/archive"),
    ],
)
def test_the_store_is_a_url_or_a_directory(
    load: Load, place: Path, written: str, resolved: str
) -> None:
    """A URL is kept; a directory, which need not exist yet, is relative to the jobs file."""
    batch = load(f"store: {written}\njobs: [{{id: a, goal: g, workspace: src, model: x}}]")
    assert batch.store == resolved.format(place=place)


@pytest.mark.slow
def test_the_same_file_gives_the_same_batch_from_anywhere(
    load: Load, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path, a link to the directory and the absolute path resolve alike."""
    batch = load(ISSUE)
    (tmp_path / "link").symlink_to(place)
    monkeypatch.chdir(place)
    assert load_jobs_file("jobs.yaml") == batch
    assert load_jobs_file(tmp_path / "link" / "jobs.yaml") == batch


def test_a_workspace_that_is_a_link_keeps_its_name(load: Load, place: Path) -> None:
    """The link is what the job names, so re-pointing it does not change the definition."""
    (place / "current").symlink_to("src")
    job = load("jobs: [{id: a, goal: g, workspace: current, model: x}]").jobs[0]
    assert job.workspace == os.fspath(place / "current")


def test_a_byte_order_mark_is_no_error(load: Load) -> None:
    """Files that some editors write begin with a mark."""
    batch = load(b"\xef\xbb\xbfjobs: [{id: a, goal: g, workspace: src, model: x}]")
    assert [job.id for job in batch.jobs] == ["a"]


def test_a_job_survives_json(load: Load) -> None:
    """A job comes back equal from the JSON in which it travels."""
    job = load(ISSUE).jobs[0]
    assert JobSpec.model_validate_json(job.model_dump_json()) == job


@pytest.mark.parametrize(
    ("written", "price"),
    [
        ("{input: 1.25, output: 10}", {"input": 1.25, "output": 10.0}),
        ("{input: 1, output: 2, cache_read: 0.1, cache_write: 1.25}", None),
        ("free", {"input": 0.0, "output": 0.0}),
        ("0", {"input": 0.0, "output": 0.0}),
    ],
)
def test_a_models_price(load: Load, written: str, price: dict[str, float] | None) -> None:
    """Dollars per million tokens, and two ways to say that there is none to pay."""
    batch = load(
        f"jobs: [{{id: a, goal: g, workspace: src, model: {{name: openai/x, price: {written}}}}}]"
    )
    wanted = price or {"input": 1.0, "output": 2.0, "cache_read": 0.1, "cache_write": 1.25}
    assert batch.jobs[0].model.options == {"price": wanted}


def test_paths_below_a_directory_without_utf8_are_named(tmp_path: Path) -> None:
    """They go into what is sent to Temporal, which has none such: nothing is started."""
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"))
    directory.mkdir()
    file = directory / "jobs.yaml"
    file.write_text("batch: b\njobs:\n- {id: a, goal: g, workspace: ., model: openai/x}\n")
    with pytest.raises(InputError, match=r"3: jobs\[0\]\.workspace: expected a path that is UTF-8"):
        load_jobs_file(file)


def test_a_file_of_json_is_read_as_json_has_it(load: Load) -> None:
    """Which writers of it escape: a character past the first 65,536 is two escapes there."""
    goal, key = "Translate \U0001f600\U0001f468‍, é.", "\U00010348"
    job = {"id": "a", "goal": goal, "workspace": "src", "model": {"name": "x", key: [key]}}
    text = json.dumps({"batch": "b", "jobs": [job]})
    assert text.isascii()
    (read,) = load(text, "jobs.json").jobs
    assert (read.goal, read.model.options) == (goal, {key: [key]})
