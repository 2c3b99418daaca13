"""A job that stands for many: for each item of a file, for combinations of values, so many of
each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.base.spec.models import BatchSpec
from runtime.jobsfile.dump import resolved_yaml

Load = Callable[..., BatchSpec]
Refuse = Callable[..., str]
REST = "  workspace: src\n  model: x\n"


def jobs(text: str, goal: str = "g") -> str:
    """A jobs file with one job."""
    return f"jobs:\n- {text}\n  goal: {goal}\n{REST}"


def test_a_job_for_each_line(place: Path, load: Load) -> None:
    """A field alone is what the item holds there; within a text it is written out."""
    (place / "items.jsonl").write_text(
        '{"name": "a", "turns": 3, "t": 0.5, "at": {"dir": "src"}, "keys": ["files"]}\n\n'
        '{"name": "b", "turns": 4, "t": 0, "at": {"dir": "docs"}, "keys": []}\n'
    )
    batch = load(
        "jobs:\n- id: 'fix-{name}'\n  for_each: items.jsonl\n  goal: 'Fix {name} in {turns} of {at}.'\n"
        "  workspace: '{at.dir}'\n  model: {name: x, temperature: '{t}'}\n"
        "  budget: {turns: '{turns}'}\n  result: {type: object, required: '{keys}'}\n"
    )
    assert [job.id for job in batch.jobs] == ["fix-a", "fix-b"]
    assert batch.jobs[0].goal == 'Fix a in 3 of {"dir": "src"}.'
    assert [Path(job.workspace).name for job in batch.jobs] == ["src", "docs"]
    assert [job.model.options for job in batch.jobs] == [{"temperature": 0.5}, {"temperature": 0}]
    assert [job.budget.turns for job in batch.jobs] == [3, 4]
    assert [job.result for job in batch.jobs] == [
        {"type": "object", "required": ["files"]},
        {"type": "object", "required": []},
    ]


def test_a_job_for_each_row(place: Path, load: Load) -> None:
    """A row of CSV may span lines; its texts are numbers where a number is expected, and an id of
    digits stays as it is written.
    """
    (place / "items.csv").write_text('id,turns,what\r\n007,5,"two\nlines"\r\n8,6,one\r\n')
    batch = load(
        "jobs:\n- id: '{id}'\n  for_each: items.csv\n  goal: '{what}'\n"
        f"  budget: {{turns: '{{turns}}'}}\n{REST}"
    )
    assert [(job.id, job.goal, job.budget.turns) for job in batch.jobs] == [
        ("007", "two\nlines", 5),
        ("8", "one", 6),
    ]


@pytest.mark.parametrize("cell", ["3600", "1h"])
def test_durations_of_a_row(place: Path, load: Load, cell: str) -> None:
    """They are seconds or texts, as they are everywhere; a price may be 0."""
    (place / "items.csv").write_text(f"t,p\n{cell},0\n")
    (job,) = load(
        "jobs:\n- id: a\n  for_each: items.csv\n  goal: g\n  workspace: src\n"
        "  model: {name: x, price: '{p}'}\n  budget: {wall: '{t}', deadline: '{t}'}\n"
        "  retry: {time: '{t}'}\n  mcp: {docs: {command: [x], timeout: '{t}'}}\n"
        "  approvals: {wait: '{t}'}\n"
    ).jobs
    assert job.model.options["price"] == {"input": 0, "output": 0}
    assert job.approvals is not None
    assert {
        job.budget.wall_seconds,
        job.budget.deadline,
        job.retry.time,
        job.mcp[0].timeout,
        job.approvals.wait,
    } == {3600.0}


def test_every_combination_so_often(load: Load) -> None:
    """The last list runs fastest, and the count faster still; a name cannot have a slash."""
    batch = load(
        "jobs:\n- id: '{model}-{seed}-{n}'\n  matrix: {model: [openai/a, b], seed: [1, 2]}\n"
        "  count: 2\n  goal: g\n  workspace: src\n  model: {name: '{model}', seed: '{seed}'}\n"
    )
    assert [job.id for job in batch.jobs] == [
        *("openai-a-1-1", "openai-a-1-2", "openai-a-2-1", "openai-a-2-2"),
        *("b-1-1", "b-1-2", "b-2-1", "b-2-2"),
    ]
    assert batch.jobs[3].model.name == "openai/a"
    assert batch.jobs[3].model.options == {"seed": 2}


def test_items_and_values_and_numbers_together(place: Path, load: Load) -> None:
    """Each item has every combination, beside jobs that are written out."""
    (place / "i.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    text = jobs("id: '{a}{b}{n}'\n  for_each: i.jsonl\n  matrix: {b: [x, y]}\n  count: 2")
    batch = load(text + f"- id: last\n  goal: g\n{REST}")
    assert " ".join(job.id for job in batch.jobs) == "1x1 1x2 1y1 1y2 2x1 2x2 2y1 2y2 last"


def test_braces_that_are_no_fields(load: Load) -> None:
    """JSON and code stay as they are, a field in two pairs of braces is its name in one, and a job
    that stands for itself has no fields at all.
    """
    many = load(jobs("id: '{n}'\n  count: 1", """'{"a": 1} f"{x!r}" {} { n } {{n}} {n}'"""))
    assert many.jobs[0].goal == '{"a": 1} f"{x!r}" {} { n } {n} 1'
    assert load(jobs("id: a", "'{n} {{n}}'")).jobs[0].goal == "{n} {{n}}"


def test_jobs_as_json_lines(place: Path, load: Load) -> None:
    """A line may stand for many too."""
    line = '{"id": "{n}", "count": 3, "goal": "g", "workspace": "src", "model": "x"}'
    assert [job.id for job in load(line, "jobs.jsonl").jobs] == ["1", "2", "3"]


def test_what_a_field_holds_is_no_template(place: Path, load: Load) -> None:
    """Fields are put in once: an item cannot reach another field."""
    (place / "i.jsonl").write_text('{"a": "{b}", "b": "secret"}\n')
    assert load(jobs("id: x\n  for_each: i.jsonl", "'{a}'")).jobs[0].goal == "{b}"


def test_what_is_no_job_behind_one_that_stands_for_many(refuse: Refuse) -> None:
    """It is told where it stands, as everywhere else."""
    assert refuse(f"jobs:\n- id: 'a{{n}}'\n  count: 2\n  goal: g\n{REST}- b\n") == (
        "jobs.yaml:7: jobs[1]: expected a mapping, got 'b'"
    )


def test_printed_jobs_are_written_out(load: Load) -> None:
    """The printed batch stands for nothing but itself, and is the same batch."""
    batch = load(jobs("id: 'j{n}'\n  count: 3"))
    printed = resolved_yaml(batch)
    assert "count" not in printed
    assert load(printed, "printed.yaml").jobs == batch.jobs


@pytest.mark.parametrize(
    ("items", "line", "told"),
    [
        (None, "", "jobs.yaml:3: jobs[0].for_each: no such file"),
        ("", "", "jobs.yaml:3: jobs[0].for_each: expected at least one item in"),
        ('{"name": "a"}\n{"nam": "b"}\n{"nam": "c"}\n{"name": "a"}\n', "",
         "jobs.yaml:2: jobs[0].id: expected a unique id, got 'a' as for items.jsonl:1 (items.jsonl:4)\n"
         "jobs.yaml:2: jobs[0].id: no field 'name'; did you mean 'nam'? {{name}} is the text {name} (items.jsonl:2-3)"),
        ('{"name": "a"\n[]\nnull\n{"name": "x", "name": "y"}\n', "",
         "items.jsonl:1: expected one JSON object a line: Expecting ',' delimiter at column 13\n"
         "items.jsonl:2: expected a JSON object, got a list\n"
         "items.jsonl:3: expected a JSON object, got nothing\n"
         "items.jsonl:4: name: expected each key once in a mapping"),
        ('{"name": "a", "t": 1}\n{"name": "b", "t": 0}\n{"name": "c", "t": -1}\n', "  budget: {turns: '{t}'}\n",
         "jobs.yaml:7: jobs[0].budget.turns: expected a number of at least 1, got -1 (items.jsonl:3)\n"
         "jobs.yaml:7: jobs[0].budget.turns: expected a number of at least 1, got 0 (items.jsonl:2)"),
        ('{"name": "a"}\n{"name": "b"}\n', "  budgt: {}\n",
         "jobs.yaml:7: jobs[0].budgt: unknown key; did you mean 'budget'? (items.jsonl:1-2)"),
        ('{"name": "a"}\n', "  matrix: {name: [1]}\n", "jobs.yaml:2: jobs[0]: the field 'name' is one of the items' too"),
        ('{"name": "a"}\n', "  matrix: {n: [1]}\n  count: 2\n", "jobs.yaml:7: jobs[0].matrix.n: 'count' has the field 'n' too"),
        ('{"name": "a"}\n', "  matrix: {a b: []}\n", "jobs.yaml:7: jobs[0].matrix"),
        ('{"name": "a"}\n', "  count: 0\n", "jobs.yaml:7: jobs[0].count: expected a number of at least 1, got 0"),
    ],
)  # fmt: skip
def test_what_is_wrong(
    place: Path, refuse: Refuse, items: str | None, line: str, told: str
) -> None:
    """Each mistake is told by the line of the job that stands for many, and that of the item; one
    of several items, once.
    """
    if items is not None:
        (place / "items.jsonl").write_text(items)
    text = "jobs:\n- id: '{name}'\n  for_each: items.jsonl\n  goal: g\n" + REST + line
    assert refuse(text).startswith(told)


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ("a,a\n1,2\n", "items.csv:1: expected each column once, got 'a' again"),
        ("a,b\n1,2\n1\n1,2,3\n", "items.csv:3: expected 2 cells as in the header, got 1\nitems.csv:4: expected 2 cells as in the header, got 3"),
        ('a,b\n1,"2', "items.csv:2: bad CSV: unexpected end of data"),
        ("a,b\n", "jobs.yaml:3: jobs[0].for_each: expected at least one item in"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_rows(place: Path, refuse: Refuse, items: str, told: str) -> None:
    """So are those of a CSV file."""
    (place / "items.csv").write_text(items)
    assert told in refuse(jobs("id: '{a}'\n  for_each: items.csv"))


def test_a_cell_that_no_reader_goes_to_the_end_of(place: Path, refuse: Refuse) -> None:
    """It is a text as others where a number is expected."""
    (place / "items.csv").write_text(f"a,t\n1,{'[' * 100_000}\n")
    told = refuse(jobs("id: '{a}'\n  for_each: items.csv\n  budget: {turns: '{t}'}"))
    assert told == (
        "jobs.yaml:4: jobs[0].budget.turns: expected a whole number, got"
        f" '{'[' * 60}'... (items.csv:2)"
    )


def test_a_secret_in_an_item(place: Path, refuse: Refuse) -> None:
    """What no jobs file may have, an item may not bring into one."""
    (place / "i.jsonl").write_text('{"base": "https://user:pw@example.org"}\n')
    text = (
        "jobs:\n- id: a\n  for_each: i.jsonl\n  goal: g\n  workspace: src\n"
        "  model: {name: x, api_base: '{base}'}\n"
    )
    told: Any = refuse(text)
    assert (
        told
        == "jobs.yaml:6: jobs[0].model.api_base: expected no credentials in the URL (i.jsonl:1)"
    )
