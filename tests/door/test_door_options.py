"""The options of ``run``, ``arun`` and ``stream``: none is passed over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import holdfast
from runtime.archive.stores import open_store

OPTIONS = "store, rerun_failed, lost, address, namespace, profile, tracer_provider"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory, in which nothing begins."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("name", ["stor", "workers", "dry_run"])
def test_an_option_that_there_is_not_is_a_type_error(name: str, home: Path) -> None:
    """As any function says of a keyword argument; it tells which there are."""
    given: dict[str, Any] = {name: "x"}
    with pytest.raises(TypeError) as told:
        holdfast.run("jobs.yaml", **given)
    assert str(told.value) == f"unexpected keyword argument {name!r}: the options are {OPTIONS}"
    with pytest.raises(TypeError):
        holdfast.stream("jobs.yaml", **given)
    assert not home.exists()


async def test_arun_has_the_same_options() -> None:
    """Also beside ``on_event``, which ``stream`` has not."""
    given: dict[str, Any] = {"stor": "x"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'stor'"):
        await holdfast.arun("jobs.yaml", on_event=lambda _: None, **given)


@pytest.mark.parametrize("lost", ["resumed", "", None, True])
def test_what_is_done_with_lost_jobs_is_one_of_three(lost: Any, home: Path) -> None:
    """Another word is bad input: it was taken for ``resume``."""
    with pytest.raises(holdfast.InputError) as told:
        holdfast.run("jobs.yaml", lost=lost)
    assert str(told.value) == f"lost: expected one of refuse, resume, anew, got {lost!r}"
    assert not home.exists()


def test_an_archive_is_named_by_a_path_too(tmp_path: Path) -> None:
    """As a jobs file is: it was ``'PosixPath' object has no attribute 'decode'``."""
    open_store(str(tmp_path / "there"))
    assert list(holdfast.Archive(tmp_path / "there")) == []
    with pytest.raises(holdfast.NotFound):
        holdfast.Archive(tmp_path / "nowhere")


def test_a_run_takes_its_archive_as_a_path(tmp_path: Path) -> None:
    """One that cannot be is refused by its name, as a text is."""
    (tmp_path / "file").write_text("")
    (tmp_path / "m.json").write_text('["x"]')
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text("jobs: [{id: a, goal: g, model: scripted/m.json, workspace: .}]")
    with pytest.raises(holdfast.HoldfastError) as told:
        holdfast.run(jobs, store=tmp_path / "file")
    assert str(tmp_path / "file") in str(told.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jobs_file": None}, "jobs_file: expected a path, got nothing"),
        ({"store": 7}, "store: expected a path or None, got 7"),
        ({"store": b"x"}, "store: expected a path or None, got b'x'"),
        ({"address": 7233}, "address: expected a text or None, got 7233"),
        ({"namespace": Path("x")}, "namespace: expected a text or None, got PosixPath('x')"),
        ({"profile": 7}, "profile: expected a text or None, got 7"),
        ({"rerun_failed": "no"}, "rerun_failed: expected True or False, got 'no'"),
        ({"on_event": "print"}, "on_event: expected a function or None, got 'print'"),
    ],
)
def test_what_is_no_path_no_text_or_no_function_is_bad_input(
    options: dict[str, Any], words: str, home: Path
) -> None:
    """A text was taken for truth, and the others were a ``TypeError`` of somebody's."""
    with pytest.raises(holdfast.InputError) as told:
        holdfast.run(**{"jobs_file": "jobs.yaml", **options})
    assert str(told.value) == words
    assert not home.exists()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: holdfast.jobs_of(cast("Any", 7)), "jobs_file: expected a path, got 7"),
        (lambda: holdfast.Job("b", "a", {}).named(cast("Any", 7)), "id: expected a text, got 7"),
        (lambda: holdfast.Archive(cast("Any", 7)), "url: expected a path or None, got 7"),
        (lambda: holdfast.HoldfastPlugin(cast("Any", 7)), "store: expected a path or None, got 7"),
        (
            lambda: holdfast.HoldfastPlugin(allowed="/srv"),
            "allowed: expected several paths, got '/srv'",
        ),
        (
            lambda: holdfast.HoldfastPlugin(allowed=cast("Any", (7,))),
            "allowed: expected a path, got 7",
        ),
        (lambda: holdfast.tool(cast("Any", "once")), "expected a function, got str"),
    ],
)
def test_other_names_say_so_too(ask: Callable[[], object], words: str) -> None:
    """Where it is written, and not in a worker later."""
    with pytest.raises(holdfast.InputError) as told:
        ask()
    assert str(told.value) == words


NO_RUN, NO_TURN = "expected the name of a run or a job, got 7", "expected the number of a turn, got"


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda job: job.wire_request("r", "1"), f"{NO_TURN} '1'"),
        (lambda job: job.wire_response("r", "1"), f"{NO_TURN} '1'"),
        (lambda job: job.chunks("r", 1.5), f"{NO_TURN} 1.5"),
        (lambda job: job.turn_layout("r", None), f"{NO_TURN} nothing"),
        (lambda job: job.attempts("r", "1"), f"{NO_TURN} '1'"),
        (lambda job: job.find_step("r", "1"), f"{NO_TURN} '1'"),
        (lambda job: job.wire_request(7, 1), NO_RUN),
        (lambda job: list(job.steps(7)), NO_RUN),
        (lambda job: job.end(7), NO_RUN),
        (lambda job: job.last_turn(7), NO_RUN),
        (lambda job: job.in_flight(7), NO_RUN),
    ],
)
def test_a_reader_takes_runs_by_name_and_turns_by_number(
    tmp_path: Path, ask: Callable[[Any], object], words: str
) -> None:
    """Anything else was an error of Python's own, from within."""
    job = holdfast.JobReader(open_store(str(tmp_path / "there")), "b", "a")
    with pytest.raises(holdfast.InputError) as told:
        ask(job)
    assert str(told.value) == words


async def test_a_job_is_executed_that_is_one() -> None:
    """A name is none, nor is a number a queue."""
    with pytest.raises(holdfast.InputError, match="job: expected a Job, as jobs_of has them, got"):
        await holdfast.execute_job(cast("Any", "one"))
    with pytest.raises(holdfast.InputError, match="task_queue: expected a text or None, got 7"):
        await holdfast.execute_job(holdfast.Job("b", "a", {}), task_queue=cast("Any", 7))


def test_a_job_of_an_archive_is_named_by_a_text(tmp_path: Path) -> None:
    """A number is bad input, and not a job that is not there."""
    open_store(str(tmp_path / "there"))
    with pytest.raises(holdfast.InputError, match="name: expected a text, got 7"):
        holdfast.Archive(tmp_path / "there").job(cast("Any", 7))
