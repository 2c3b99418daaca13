"""What comes out of a batch: ``results`` and ``errors``, from the archive alone."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from arro3.io import read_parquet

from activities.batch_contracts import PageRef
from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.notices import Notice, write_notice
from runtime.archive.pages import write_page
from runtime.archive.stores import MemoryStore, ObjectStore, open_store
from runtime.base.errors import InputError, NotFound
from runtime.base.kinds_of_error import kind_of_error
from runtime.base.values import JobKey, Usage
from runtime.cli.main import main
from runtime.cli.results import _write as write_results
from runtime.cli.several import refusal, rows_of
from runtime.client import results as results_module
from runtime.client.results import Known, Results
from runtime.client.standing import Standing
from runtime.job.phases import Phase
from runtime.job.stops import JobStatus
from tests.small_disk import fill, small_disk
from workflows.messages import BatchState, JobOutcome, JobProgress

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))
from archive_jobs import Written, failure_record, segment

MODEL = {"name": "openai/m-1"}


def job(store: ObjectStore, id: str, *runs: NewEnd | None, failed: bool = False) -> None:
    """A job of the batch ``night`` with a run of one turn for each end; None: it is open."""
    written = Written(JobArchive(store, "night", id))
    written.archive.write_definition({"goal": id, "model": MODEL})
    for number, end in enumerate(runs):
        name = f"run-{number}"
        if failed:
            attempt = written.begin(name, 1, None, [segment("Hello.")])
            written.archive.fail_attempt(failure_record(attempt))
        attempt = written.begin(name, 1, None, [segment("Hello.")], attempt=1 + failed)
        parent = written.finish(name, 1, attempt)
        if end is not None:
            written.archive.write_end(end.model_copy(update={"run": name, "parent": parent}))


def ended(status: str, reason: str = "", result: Any = None) -> NewEnd:
    return NewEnd(
        run="",
        turn=1,
        parent=None,
        status=status,
        reason=reason,
        result=result,
        usage=Usage(prompt=100, completion=10),
        cost_usd=0.25,
        ended_at="2026-01-01T01:00:00Z",
    )


@pytest.fixture
def store(tmp_path: Path, clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """Four jobs: one that succeeded at the second go, two that failed for one cause, one open."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    made = open_store(str(tmp_path / "archive"))
    down = "turn 1: ConnectionFailed: {} refused after {} s"
    job(made, "a", ended("failed", "turn 1: X: y"), ended("succeeded", "", {"n": [1, "ü,\n"]}))
    job(made, "b", ended("failed", down.format("http://h:1/v1", 3)), failed=True)
    job(made, "c", ended("failed", down.format("https://other.org/x?y=2", 17.5)))
    job(made, "d", None)
    return made


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_a_row_a_job(store: ObjectStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Each job's newest end with its result, model, time and retries; an open one as it stands."""
    rows = json.loads(said(capsys, "results", "night", "--json"))
    assert [(row["id"], row["status"], row["retries"]) for row in rows] == [
        ("a", "succeeded", 1), ("b", "failed", 0), ("c", "failed", 0), ("d", "open", 0),
    ]  # fmt: skip
    assert rows[0] == {
        "batch": "night",
        "id": "a",
        "status": "succeeded",
        "reason": "",
        "run": "run-1",
        "result": {"n": [1, "ü,\n"]},
        "turns": 1,
        "tokens": 110,
        "cost_usd": 0.25,
        "model": "openai/m-1",
        "score": None,
        "remarks": "",
        "retries": 1,
        "parent": "",
        "damaged": [],
        "patch": None,
        "seconds": rows[0]["seconds"],
    }
    listed = json.loads(said(capsys, "ls", "night", "--json"))
    assert [(row["id"], row["retries"], row["parent"]) for row in listed] == [
        ("a", 1, None), ("b", 0, None), ("c", 0, None), ("d", 0, None),
    ]  # fmt: skip
    began = JobArchive(store, "night", "a").began_at("run-1")
    assert began is not None
    minute, second = int(began[14:16]), int(began[17:19])
    assert rows[0]["seconds"] == 3600 - 60 * minute - second
    assert (rows[3]["seconds"], rows[3]["turns"], rows[3]["tokens"]) == (None, 1, 113)
    lines = said(capsys, "results", "night").splitlines()
    assert [line.split()[:2] for line in lines[:4]] == [[row["id"], row["status"]] for row in rows]
    assert lines[4] == "1 succeeded, 2 failed, 1 open; 443 tokens, $0.7510"


def test_every_form_has_the_same_rows(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """JSON, JSON lines, CSV and Parquet; a file is replaced as a whole, and no other is left."""
    rows = json.loads(said(capsys, "results", "night", "--json"))
    lines = said(capsys, "results", "night", "--jsonl").splitlines()
    assert [json.loads(line) for line in lines] == rows
    out = tmp_path / "out" / "night"
    out.parent.mkdir()
    out.write_text("before")
    said(capsys, "results", "night", "--csv", "--out", str(out))
    table = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["id"] for row in table] == ["a", "b", "c", "d"]
    assert (json.loads(table[0]["result"]), table[0]["cost_usd"]) == (rows[0]["result"], "0.25")
    assert (table[3]["result"], table[3]["seconds"]) == ("", "")
    said(capsys, "results", "night", "--parquet", "--out", str(out))
    read = read_parquet(out).read_all()
    assert read["id"].to_pylist() == ["a", "b", "c", "d"]
    assert read["seconds"].to_pylist() == [row["seconds"] for row in rows]
    assert json.loads(read["result"].to_pylist()[0]) == rows[0]["result"]
    assert [path.name for path in out.parent.iterdir()] == ["night"]


@pytest.mark.parametrize("form", ["--jsonl", "--csv", "--parquet"])
def test_a_file_for_which_there_is_no_room_is_told(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str
) -> None:
    """What was there stays as it was, and nothing is left beside it."""
    with small_disk(tmp_path / "disk", "64k") as disk:
        out = disk / "night"
        out.write_text("before")
        fill(disk)
        assert main(["results", "night", form, "--out", str(out)]) == 1
        assert sorted(path.name for path in disk.iterdir()) == ["ballast", "night"]
        assert out.read_text() == "before"
    told = capsys.readouterr().err
    assert told == f"error: {out} cannot be written: No space left on device\n"


@pytest.mark.parametrize("form", ["--jsonl", "--csv", "--parquet"])
def test_a_pipe_stays_a_pipe(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str
) -> None:
    """As ``--out >(gzip)`` has it: what comes out is what a file would have."""
    said(capsys, "results", "night", form, "--out", str(tmp_path / "file"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as end:
        said(capsys, "results", "night", form, "--out", str(pipe))
        assert pipe.is_fifo()
        assert end.read() == (tmp_path / "file").read_bytes()


def test_a_pipe_that_nobody_reads_is_no_error(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where stdout is one: exit code 141, and nothing is said."""
    read, write = os.pipe()
    os.close(read)
    assert main(["results", "night", "--csv", "--out", f"/dev/fd/{write}"]) == 141
    os.close(write)
    assert capsys.readouterr().err == ""


def test_a_name_of_an_open_file_stays(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """``/dev/stdout`` is a link to the process's own descriptor, whatever that leads to."""
    with (tmp_path / "file").open("wb") as file:
        link = tmp_path / "stdout"
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        said(capsys, "results", "night", "--csv", "--out", str(link))
    assert link.is_symlink()
    lines = (tmp_path / "file").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[:2]] == ["id", "a"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["night", "--json", "--csv"], "--json and --csv: give one of them"),
        (["night", "--parquet"], "--parquet is no text: name the file"),
        (["nights"], "no job of a batch 'nights' has begun"),
        (["night", "--out", "/dev"], "/dev is a directory: name a file"),
        (["night", "--out", "."], ". is a directory: name a file"),
        (["night", "--out", "/dev/null/x"], "/dev/null/x cannot be written: Not a directory"),
        (["night", "--out", "~nosuchuser/x"], "no user has the home directory '~nosuchuser'"),
    ],
)
def test_what_cannot_be_asked_for(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    """One line that says what is wrong, and exit code 2."""
    assert main(["results", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"error: {told}")


class Asked:
    """A batch that has one job open, one waiting and two in a page, one of which ended before."""

    def __init__(self, page: PageRef) -> None:
        self.page = page

    async def batch_state(self, batch: str) -> BatchState:
        return BatchState(waiting=("z",), open=("d",), pages=(self.page,))

    async def standing(self, key: JobKey) -> Standing:
        assert key == JobKey(batch="night", job="d")
        paused = JobProgress(status=JobStatus.RUNNING, turn=2, phase=Phase.PAUSED)
        return Standing("r", progress=paused)


async def test_jobs_that_have_not_ended_are_told_by_their_batch(store: ObjectStore) -> None:
    """What waits, also what has not begun; what is open says itself that it is paused."""
    page = write_page(store, [{"key": {"batch": "night", "job": id}} for id in ("a", "x")])
    results = Results(store, "night", Asked(PageRef(digest=page, jobs=2)))  # type: ignore[arg-type]
    rows = [row async for row in results.rows(await results.known())]
    assert [(row.id, row.status) for row in rows] == [
        ("a", "succeeded"), ("b", "failed"), ("c", "failed"), ("d", "paused"),
        ("x", "queued"), ("z", "queued"),
    ]  # fmt: skip


async def test_jobs_that_begin_while_results_are_read_have_their_rows(store: ObjectStore) -> None:
    """One that has ended by then, one that the archive has not yet, and one that waited."""

    class Going(Asked):
        async def batch_state(self, batch: str) -> BatchState:
            state = BatchState(waiting=("y", "z"), open=("d", "new"))
            job(store, "late", ended("succeeded", result=1))
            job(store, "y", ended("succeeded", result=1))
            return state

        async def standing(self, key: JobKey) -> Standing:
            begins = JobProgress(status=JobStatus.RUNNING, turn=0, phase=Phase.STARTING)
            return Standing("r", progress=begins)

    results = Results(store, "night", Going(PageRef(digest="none", jobs=0)))  # type: ignore[arg-type]
    rows = {row.id: row.status async for row in results.rows(await results.known())}
    assert {id: rows.get(id) for id in ("late", "new", "y", "z")} == {
        "late": "succeeded",
        "new": "running",
        "y": "succeeded",
        "z": "queued",
    }


async def test_a_job_that_has_just_got_its_place_is_meant_too(store: ObjectStore) -> None:
    """Of several jobs that are paused or told something, those also that the archive has not, or
    has the end of before of.
    """

    class Beginning(Asked):
        async def batch_state(self, batch: str) -> BatchState:
            return BatchState(waiting=("z",), open=("a", "b", "d", "new"))

    control: Any = Beginning(PageRef(digest="none", jobs=0))
    control.store = store
    rows = {row["id"]: (row["status"], row["reason"]) for row in await rows_of(control, "night")}
    assert rows["new"] == rows["b"] == ("running", "begins")
    # Of one that has succeeded the batch has not heard yet.
    assert (rows["a"][0], rows["c"][0]) == ("succeeded", "failed")
    assert (rows["d"][0], rows["z"][0]) == ("paused", "queued")


async def test_that_no_worker_tells_of_jobs_that_wait_is_said(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """The archive has nothing of them, so that they have no row; only then is anything said."""

    class Unanswered(Asked):
        store: ObjectStore

        async def batch_state(self, batch: str) -> BatchState:
            return BatchState() if batch == "night" else await super().batch_state(batch)

        async def newest(self, key: JobKey) -> None:
            return None

    note = "no worker of batch 'night' answers: jobs that wait for their places are not told\n"
    for kind, told in ((Unanswered, note), (Asked, "")):
        control: Any = kind(PageRef(digest="none", jobs=0))
        control.store = store
        await write_results(Results(store, "night", control), "lines", None)
        assert capsys.readouterr().err == told
        await rows_of(control, "night")
        assert capsys.readouterr().err == told


@pytest.mark.parametrize(("tries", "refused"), [(1, "no workflow"), (2, "no workflow"), (3, "")])
async def test_a_job_whose_workflow_is_about_to_begin_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, tries: int, refused: str
) -> None:
    """Its place it has before that is there; bad input is no better the next time."""
    monkeypatch.setattr("runtime.client.moves.POLL_SECONDS", 0.0)
    asked: list[JobKey] = []

    async def act(control: Any, key: JobKey) -> None:
        asked.append(key)
        if len(asked) < 3:
            raise NotFound("no workflow")

    async def odd(control: Any, key: JobKey) -> None:
        asked.append(key)
        raise InputError("too long")

    key, nobody = JobKey(batch="night", job="new"), cast("Any", None)
    assert await refusal(act, nobody, key, tries) == refused
    assert asked == [key] * tries
    assert await refusal(odd, nobody, key, tries) == "too long"
    assert asked == [key] * (tries + 1)


async def test_a_sub_job_is_told_as_ls_tells_it(store: ObjectStore) -> None:
    """Its batch does not know it, and it says itself how it stands; of an end that the archive does
    not have, the server.
    """
    for id in ("d.0123456789", "d.9876543210"):
        written = Written(JobArchive(store, "night", id))
        written.archive.write_definition({"goal": id, "model": MODEL, "parent": "d"})
        written.finish("r", 1, written.begin("r", 1, None, [segment("Hello.")]))
    asleep = JobProgress(status=JobStatus.RUNNING, turn=1, phase=Phase.ASLEEP)

    class Family(Asked):
        async def standing(self, key: JobKey) -> Standing:
            if key.job != "d.9876543210":
                return Standing("r", progress=asleep)
            ended = JobOutcome(key=key, status=JobStatus.FAILED, reason="terminated")
            return Standing("r", outcome=ended)

    results = Results(store, "night", Family(PageRef(digest="none", jobs=0)))  # type: ignore[arg-type]
    known = Known(["d", "d.0123456789", "d.9876543210"], open=frozenset({"d"}))
    assert [(row.status, row.reason) async for row in results.rows(known)] == [
        *[("waiting", "sleeps, as its last statement asked for")] * 2,
        ("failed", "terminated"),
    ]


@pytest.mark.parametrize("known_open", [True, False])
async def test_a_job_that_ends_while_it_is_asked_is_told_as_a_whole(
    store: ObjectStore, known_open: bool
) -> None:
    """Its figures are those of its end: what was read before are those of an earlier turn."""

    class Ending(Asked):
        async def standing(self, key: JobKey) -> Standing:
            archive = JobArchive.of(store, key)
            (step,) = archive.steps("run-0")
            end = ended("budget", "spent").model_copy(update={"run": "run-0", "parent": step.ref})
            archive.write_end(end)
            outcome = JobOutcome(key=key, status=JobStatus.BUDGET, reason="spent")
            return Standing("run-0", outcome=outcome)

    control: Any = Ending(PageRef(digest="none", jobs=0))
    if known_open:
        known = Known(["d"], open=frozenset({"d"}))
        (row,) = [row async for row in Results(store, "night", control).rows(known)]
        told = (row.status, row.reason, row.turns, row.tokens, row.cost_usd)
    else:
        control.store = store
        (by_name,) = (row for row in await rows_of(control, "night") if row["id"] == "d")
        told = tuple(by_name[name] for name in ("status", "reason", "turns", "tokens", "cost_usd"))
    assert told == ("budget", "spent", 1, 110, 0.25)


async def test_of_many_open_jobs_none_is_asked(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their batch says that they run, in one answer."""
    monkeypatch.setattr(results_module, "MOST_ASKED", 0)
    page = write_page(store, [{"key": {"batch": "night", "job": id}} for id in ("a", "x")])
    results = Results(store, "night", Asked(PageRef(digest=page, jobs=2)))  # type: ignore[arg-type]
    rows = {row.id: row.status async for row in results.rows(await results.known())}
    assert rows["d"] == "running"


@pytest.mark.slow
def test_few_rows_are_in_memory() -> None:
    """Of a large batch only so many jobs are read as are told soon."""
    read: list[str] = []

    class Counted(MemoryStore):
        def get(self, key: str) -> bytes:
            if "/ends/" in key:
                read.append(key)
            return super().get(key)

    store = Counted()
    for number in range(400):
        archive = JobArchive(store, "night", f"{number:03}")
        archive.write_end(ended("succeeded").model_copy(update={"run": "r"}))
    read.clear()

    async def most_ahead() -> int:
        results = Results(store, "night")
        told = ahead = 0
        async for _ in results.rows(await results.known()):
            told += 1
            ahead = max(ahead, len({*read}) - told)
        assert told == 400
        return ahead

    assert asyncio.run(most_ahead()) <= 64 + 64 + 1


def test_failures_are_grouped_by_cause(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """URLs and numbers set two apart that have one cause; each cause has an example and its
    command.
    """
    (group,) = json.loads(said(capsys, "errors", "night", "--json"))
    assert group == {
        "cause": "ConnectionFailed: <url> refused after <n> s",
        "count": 2,
        "jobs": 2,
        "statuses": {"failed": 2},
        "example": {
            "job": "night/b",
            "turn": 1,
            "reason": "turn 1: ConnectionFailed: http://h:1/v1 refused after 3 s",
            "command": "holdfast show night/b@1",
        },
    }
    assert said(capsys, "errors", "night").splitlines() == [
        "2 failed: ConnectionFailed: <url> refused after <n> s",
        "  night/b: turn 1: ConnectionFailed: http://h:1/v1 refused after 3 s",
        "  holdfast show night/b@1",
        "2 of 4 jobs ended without success, 1 cause",
    ]
    assert said(capsys, "errors", "night/a") == "0 of 1 job ended without success, 0 causes\n"
    assert main(["errors", "none"]) == 2


def test_a_success_has_the_reason_that_run_told(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a program as archived; to people it says nothing."""
    job(store, "good", ended("succeeded", "finished", 1))
    for command in ("results", "ls"):
        rows = json.loads(said(capsys, command, "night", "--json"))
        assert (rows[-1]["id"], rows[-1]["reason"]) == ("good", "finished")
        assert "finished" not in said(capsys, command, "night")


def test_a_reason_is_told_in_full(store: ObjectStore, capsys: pytest.CaptureFixture[str]) -> None:
    """However long it is, and without control sequences; the cause is its beginning."""
    reason = "turn 1: Y: " + "\x1b[1;31mwhy\x1b[0m and " * 50 + "that is all"
    job(store, "e", ended("failed", reason))
    cause, told, *_ = said(capsys, "errors", "night/e").splitlines()
    assert told == f"  night/e: turn 1: Y: {'why and ' * 50}that is all"
    assert cause.startswith("1 failed: Y: why and why and ")


def test_a_cause_is_looked_at_in_the_archive_that_was_named(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The command names it too; that nobody heard of an end is told, and is no cause."""
    told = said(capsys, "errors", "night", "--store", str(tmp_path / "archive")).splitlines()
    assert told[2] == f"  holdfast show night/b@1 --store {tmp_path / 'archive'}"
    for id in ("a", "b", ""):
        of = {"key": f"key-{id}", "batch": "night", "job": id, "event": "job" if id else "batch"}
        failed = {"heard": False, "error": "HTTP 500", "tries": 8}
        write_notice(store, Notice(**of, **failed, to="https://h.org", at="2026-01-01T01:00:00Z"))
    lines = said(capsys, "errors", "night").splitlines()
    assert lines[0].startswith("3 untold: on_finish was not told after <n> tries")
    assert lines[-1] == (
        "2 of 4 jobs ended without success, 1 cause; on_finish was not told of 3 ends"
    )


@pytest.mark.parametrize("bad", [b"", b"{}", b"[" * 100_000])
def test_a_notice_that_is_damaged_hides_no_failure(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], bad: bytes
) -> None:
    """The jobs' causes are told, and that nobody can read whether an end was."""
    whole = said(capsys, "errors", "night")
    store.put_if_absent("_holdfast/notices/night/5e", bad)
    assert main(["errors", "night"]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == (
        whole,
        (
            "whether on_finish was told of an end cannot be read: _holdfast/notices/night/5e: is no"
            " notice of an end\n"
        ),
    )


def test_a_log_tells_of_earlier_runs(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """How each ended before the job was begun anew, on one line; of a run that is named, not."""
    lines = said(capsys, "log", "night/a").splitlines()
    assert lines[1] == "earlier runs: run-0 (failed: turn 1: X: y); --run shows one"
    assert json.loads(said(capsys, "log", "night/a", "--json"))["earlier"] == [
        {"run": "run-0", "status": "failed", "reason": "turn 1: X: y"}
    ]
    for arguments in (["night/a", "--run", "run-0"], ["night/b"]):
        assert "earlier runs" not in said(capsys, "log", *arguments)


def test_failed_calls_are_grouped_too(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attempts that failed, whatever became of their turn."""
    (group,) = json.loads(said(capsys, "errors", "night", "--calls", "--json"))
    assert (group["cause"], group["count"], group["example"]["command"]) == (
        "StreamBroken: the connection was closed",
        1,
        "holdfast show night/b@1 --part attempts",
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("timeout after 12.5 s, 3 of 1,024 bytes", "timeout after <n> s, <n> of <n> bytes"),
        ("no file /a/b c.txt at src/x/y.py:12", "no file <path> <path> at <path>:<n>"),
        ("object sha256:0af3 is gone", "object <digest> is gone"),
        ("run 01a202e5-ac98-7320-8c96-01e9c0461143 of night/a", "run <id> of <job>"),
        ("request req_8aXb-1 for a1b2c3d4e5f", "request <id> for <digest>"),
        ("http://[::1]:8/a, http://h/[masked] (see [ftp://h/x])", "<url>, <url> (see [<url>])"),
        ("a\n  decade of facade, job-7", "a decade of facade, <job>"),
        ("an error of night/error: no error", "an error of <job>: no error"),
        ("\x1b[38;5;196mslow\x1b[>4;2m \x1b[1mdown\x1b[m (HTTP 429)", "slow down (HTTP <n>)"),
    ],
)
def test_what_is_of_one_error_alone_goes(text: str, kind: str) -> None:
    """Numbers, paths, digests, ids and the job's own name; words stay."""
    assert kind_of_error(text, "night/a", "a", "job-7", "night/error", "error") == kind


def test_a_batch_as_a_log_of_inspect(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sample a job with its scores, and the conversation of its last turn."""
    log = json.loads(said(capsys, "export", "night", "--format", "inspect"))
    assert (log["version"], log["status"], log["eval"]["model"]) == (2, "started", "openai/m-1")
    samples = {sample["id"]: sample for sample in log["samples"]}
    assert log["eval"]["dataset"]["sample_ids"] == ["a", "b", "c", "d"]
    assert {id: sample["scores"]["success"]["value"] for id, sample in samples.items()} == {
        "a": "C", "b": "I", "c": "I", "d": "I",
    }  # fmt: skip
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 1 / 3
    first, last = samples["a"]["messages"][0], samples["a"]["messages"][-1]
    assert (first["role"], first["content"]) == ("user", "Hello.")
    assert last["tool_calls"] == [
        {"id": "call_1", "function": "python", "arguments": {"code": "x = 1"}, "type": "function"}
    ]
    assert samples["b"]["error"]["message"].startswith("turn 1: ConnectionFailed")
    assert main(["export", "night", "--format", "inspect", "--turns", "1"]) == 2
