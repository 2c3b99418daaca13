"""The jobs of a jobs file, as they are handed to a workflow: ``jobs_of`` and ``Job.named``."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any provider's key."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    for name in ("OPENAI_API_KEY", "HOLDFAST_ROLES", "NOT_SET_AT_ALL"):
        monkeypatch.delenv(name, raising=False)


def jobs_of(folder: Path, job: str) -> dict[str, holdfast.Job]:
    """Those of a jobs file with one, ``job`` is the inside of its flow mapping."""
    path = folder / "jobs.yaml"
    path.write_text(f"batch: b\ndefaults: {{workspace: .}}\njobs:\n  - {{id: a, goal: g, {job}}}\n")
    return holdfast.jobs_of(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "told"),
    [
        (
            "model: nosuchprovider/x",
            "'nosuchprovider/x': write PROVIDER/MODEL, such as openai/gpt-5. An endpoint of your own",
        ),
        ("model: openai/text-embedding-3-small", "is a model for embedding"),
        (
            "model: openai/my-own, budget: {usd: 1}",
            "no price is known of openai/my-own, so the budget's usd would not hold",
        ),
    ],
)
def test_a_model_that_no_worker_could_call_is_refused(tmp_path: Path, job: str, told: str) -> None:
    """By its line in the file, as 'holdfast run' does."""
    with pytest.raises(holdfast.InputError) as error:
        jobs_of(tmp_path, job)
    assert told in str(error.value)
    assert "jobs.yaml:4: " in str(error.value)


@pytest.mark.slow
def test_what_a_worker_has_is_not_asked_of_who_gives_the_jobs(tmp_path: Path) -> None:
    """Keys and secrets: the jobs may be given out where none of their workers is."""
    assert jobs_of(tmp_path, "model: openai/gpt-4o, secrets: [NOT_SET_AT_ALL]").keys() == {"a"}


@pytest.mark.parametrize("id", ["", "a/b", "x\n", "-x", "n" * 101])
def test_a_job_is_named_as_in_a_jobs_file(id: str) -> None:
    """By the rule for names; another id is bad input."""
    job = holdfast.Job("b", "a", {"id": "a"})
    with pytest.raises(holdfast.InputError, match="expected a name"):
        job.named(id)
    assert job.named("a-2.b") == holdfast.Job("b", "a-2.b", {"id": "a-2.b"})
