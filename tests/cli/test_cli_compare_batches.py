"""Two batches side by side: the jobs in pairs, and how sure the difference is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore, open_store
from runtime.base.paired import paired, quantile, within
from runtime.cli.main import main
from tests.cli.test_cli_json import compare_with_the_pinned

TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980}
"""Of Student's t, two-sided 95 %, as every table has it."""


@pytest.mark.parametrize("freedom", TABLE)
def test_the_quantile_is_that_of_the_tables(freedom: int) -> None:
    """Odd and even degrees of freedom; and it is the inverse of the chance."""
    found = quantile(0.95, freedom)
    assert round(found, 3) == TABLE[freedom]
    assert within(found, freedom) == pytest.approx(0.95, abs=1e-12)


def test_the_interval_of_paired_measurements() -> None:
    """The sleep data of Student's own paper (1908): 1.58 hours more, 0.70 to 2.46, p 0.0028."""
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = paired(first, second)
    assert found is not None
    told = found.difference, found.low, found.high, found.p
    assert [round(value or 0.0, 4) for value in told] == [1.58, 0.7001, 2.4599, 0.0028]


def test_few_pairs() -> None:
    """None has no mean, one no interval, and equal differences no doubt."""
    assert paired([], []) is None
    one = paired([1.0], [3.0])
    assert one is not None
    assert (one.difference, one.low, one.p) == (2.0, None, None)
    same = paired([1.0, 2.0], [1.0, 2.0])
    assert same is not None
    assert (same.low, same.high, same.p) == (0.0, 0.0, 1.0)


def end(store: ObjectStore, batch: str, id: str, **fields: Any) -> None:
    ended = NewEnd(
        run="r", turn=2, parent=None, status="succeeded", ended_at="2026-01-01T00:00:00Z"
    )
    archive = JobArchive(store, batch, id)
    archive.write_definition({"goal": "g", "model": {"name": "openai/m"}})
    archive.write_end(ended.model_copy(update=fields))


@pytest.fixture
def store(tmp_path: Path, clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    made = open_store(str(tmp_path / "archive"))
    for id, scores in {"a": (0.5, 1.0), "b": (0.0, 0.75), "c": (0.25, 0.5)}.items():
        end(made, "old", id, score=scores[0], cost_usd=0.5)
        end(made, "new", id, score=scores[1], cost_usd=0.25)
    end(made, "old", "d", status="failed", reason="turn 1: X: y")
    end(made, "new", "d", score=1.0)
    end(made, "old", "e")
    return made


def test_jobs_are_paired_by_their_ids(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scores, costs and success of the jobs that ended in both; who has none is left out, or has
    the score that is given for it.
    """
    assert main(["compare", "old", "new", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    compare_with_the_pinned({"compare BATCH BATCH": [found]})
    assert (found["pairs"], found["only"], found["better"]) == (4, [1, 0], ["d"])
    score = found["measures"]["score"]
    assert (score["pairs"], score["means"], score["difference"]) == (3, [0.25, 0.75], 0.5)
    assert (round(score["low"], 3), round(score["high"], 3)) == (-0.121, 1.121)
    assert found["measures"]["succeeded"]["means"] == [0.75, 1.0]
    assert found["measures"]["cost_usd"]["difference"] == -0.1875
    assert main(["compare", "old", "new", "--unscored", "0", "--json"]) == 0
    score = json.loads(capsys.readouterr().out)["measures"]["score"]
    assert (score["pairs"], score["means"]) == (4, [0.1875, 0.8125])
    assert main(["compare", "old", "new"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "4 jobs that ended in both old and new"
    assert lines[3].split()[:5] == ["score", "3", "0.25", "0.75", "+0.5"]
    assert lines[-1] == "1 job succeeded in new alone: d"


def test_scores_are_in_the_results(store: ObjectStore, capsys: pytest.CaptureFixture[str]) -> None:
    """A score of 0 is one; the mean is of the jobs that have one."""
    assert main(["results", "old", "--jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["score"] for row in rows] == [0.5, 0.0, 0.25, None, None]
    assert main(["results", "old"]) == 0
    assert "mean score 0.25 of 3" in capsys.readouterr().out


def test_a_batch_alone_is_told(store: ObjectStore, capsys: pytest.CaptureFixture[str]) -> None:
    """What else may be named: it has no runs of its own."""
    assert main(["compare", "old"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: 'old' alone cannot be compared: name another job, another batch")


@pytest.mark.parametrize(
    ("sides", "alone"), [(("old", "nwe"), "nwe"), (("old", "old/a"), "old/a"), (("x", "new"), "x")]
)
def test_a_batch_beside_none_is_told(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], sides: tuple[str, str], alone: str
) -> None:
    """Which of the two is none, and not how many jobs the other's name might mean."""
    assert main(["compare", *sides]) == 2
    assert f"is a batch, and {alone!r} is none: 'holdfast ls' lists" in capsys.readouterr().err


@pytest.mark.parametrize("score", ["nan", "inf", "1e308"])
def test_a_score_for_those_without_one_is_a_number_that_can_be_counted_with(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], score: str
) -> None:
    """Else the JSON held ``NaN``, or the sum was an unexpected ``OverflowError``."""
    assert main(["compare", "old", "new", "--unscored", score, "--json"]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == (
        "",
        "error: --unscored: expected a number from -1e+100 to 1e+100\n",
    )
