"""The commands that read the archive alone: no Temporal server is in reach, and the store may be
another machine's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from runtime.archive.container import unseal
from runtime.archive.forms import Capture
from runtime.archive.job import JobArchive
from runtime.archive.replays import claim_replay, write_replay
from runtime.archive.stores import ObjectStore, open_store
from runtime.base.digests import digest_of
from runtime.base.values import StepRef
from runtime.cli.main import main
from runtime.projection.segments import SegmentKind
from tests.cli.command_line import Done, damage, unpack
from tests.cli.json_shapes import misfits
from tests.cli.test_cli_json import PINNED

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))
from archive_jobs import Written, eventful_job, rich_archive, segment, step_record


class Reader:
    """Commands on an archive in a directory, with a state directory that has nothing in it."""

    def __init__(self, store: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.store = store
        self.written: Written = eventful_job(open_store(str(store)))
        self.capture = capture

    @property
    def objects(self) -> ObjectStore:
        return open_store(str(self.store))

    def __call__(self, *arguments: str) -> Done:
        self.capture.readouterr()
        code = main(list(arguments))
        return Done(code, *self.capture.readouterr())

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def ok(self, *arguments: str) -> str:
        done = self(*arguments)
        assert (done.code, done.err) == (0, "")
        return done.out


@pytest.fixture
def read(
    tmp_path: Path,
    clean_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Reader:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    return Reader(tmp_path / "archive", capsys)


def test_segments_are_listed_with_their_place_in_the_wire(read: Reader) -> None:
    """Kind, origin, tokens and digest of each part, and the bytes of the request in which it
    stands.
    """
    shown = json.loads(read.ok("show", "licences@33", "--part", "segments", "--json"))
    layout, wire = read.written.layouts["b", 33], read.written.requests["b", 33]
    assert [(s["kind"], s["origin"], s["tokens"], s["digest"]) for s in shown["segments"]] == [
        (s.kind, s.origin, s.tokens, s.digest) for s in layout
    ]
    for row, part in zip(shown["segments"], layout, strict=True):
        start, stop = row["wire"]
        assert json.loads(b'"' + wire[start:stop] + b'"') == part.text
    lines = read.ok("show", "licences@33", "--part", "segments").splitlines()
    assert len(lines) == len(layout) + 1
    assert lines[-1] == f"{len(layout)} segments, {sum(s.tokens for s in layout)} tokens"


def test_several_turns_are_shown_one_after_the_other(read: Reader) -> None:
    """--turns A..B shows the same part of each, under its address."""
    out = read.ok("show", "licences", "--turns", "33..34", "--part", "statement")
    first, second = (
        read.ok("show", "licences@33", "--part", "statement"),
        read.ok("show", "licences@34", "--part", "statement"),
    )
    assert out == f"=== nightly/licences@33 ===\n{first}=== nightly/licences@34 ===\n{second}"
    both = json.loads(read.ok("show", "licences", "--turns", "33..34", "--part", "nodes", "--json"))
    assert [turn["turn"] for turn in both] == [33, 34]
    for arguments in (
        ["licences@33", "--turns", "1..2"],
        ["licences", "--turns", "2..1"],
        ["licences", "--turns", "x"],
        ["licences", "--turns", f"1..{'9' * 5_000}"],
    ):
        assert read("show", *arguments).code == 2


def test_open_jobs_have_their_pinned_shapes(read: Reader) -> None:
    """A turn in flight has no statement and no end, an open run no status, and a job without a turn
    no run; a reply has its text.
    """
    JobArchive(read.objects, "nightly", "waits").write_definition({"goal": "g", "model": "m"})
    runs = ("--run", "a", "--other-run", "b")
    documents = {
        "log": [read.json("log", "licences", "--run", "a"), read.json("log", "waits")],
        "log --effects": [read.json("log", "waits", "--effects")],
        "log --events": [read.json("log", "waits", "--events")],
        "log --graph": [read.json("log", "licences", "--graph")],
        "compare": [read.json("compare", "licences", *runs)],
        "show --part response": [read.json("show", "licences@31", "--part", "response")],
    }
    flying, open_run = documents["log"][0]["turns"][-1], documents["log --graph"][0]["runs"][0]
    assert (flying["statement"], flying["finished_at"], open_run["status"]) == (None, None, None)
    assert (documents["log"][1]["run"], documents["compare"][0]["sides"][0]["tokens"]) == (
        None,
        None,
    )
    assert documents["show --part response"][0]["response"]["text"] == "I look at 31."
    fits = [
        f"{name}: {line}"
        for name, several in documents.items()
        for one in several
        for line in misfits(PINNED["documents"][name], one)
    ]
    assert fits == []


def test_a_failed_attempt_is_shown_with_what_it_received(read: Reader) -> None:
    """--attempts tells how each went; --attempt K gives its exact bytes, both ways."""
    attempts = json.loads(read.ok("show", "licences@32", "--part", "attempts", "--json"))[
        "attempts"
    ]
    assert [(a["number"], a["outcome"]) for a in attempts] == [(1, "failed"), (2, "answered")]
    assert attempts[0]["failure"]["error_type"] == "StreamBroken"
    received = read.ok("show", "licences@32", "--attempt", "1", "--part", "wire-response")
    assert received == 'data: {"choices":[{"delta":{"content":"I lo"}}]}\n\ndata: {"error":'
    assert (
        read.ok("show", "licences@32", "--attempt", "2", "--part", "wire").encode()
        == read.written.requests["a", 32]
    )
    assert read("show", "licences@32", "--attempt", "3").code == 2
    for part in ("response", "statement"):
        refused = read("show", "licences@32", "--attempt", "1", "--part", part)
        assert (refused.code, refused.out) == (2, "")
        assert "from another attempt: attempt 1 failed with StreamBroken" in refused.err
        asked = read.ok("show", "licences@32", "--attempt", "2", "--part", part)
        assert asked == read.ok("show", "licences@32", "--part", part)


def test_chunks_tell_when_the_reply_arrived(read: Reader) -> None:
    """Each piece of the reply with its time and its bytes; of a failed attempt, of what was
    received.
    """
    size = len(read.written.responses["b", 33])
    assert read.ok("show", "licences@33", "--part", "chunks").splitlines() == [
        "    0.001500 s  bytes 0-20", f"    0.090000 s  bytes 20-{size}",
    ]  # fmt: skip
    failed = json.loads(
        read.ok("show", "licences@32", "--attempt", "1", "--part", "chunks", "--json")
    )["chunks"]
    assert [chunk["at_us"] for chunk in failed] == [700]


def test_a_turn_before_a_fork_is_shown_as_its_own_job_has_it(read: Reader, tmp_path: Path) -> None:
    """It is in the archive of the job that the fork was made from alone."""
    store = str(tmp_path / "rich")
    rich_archive(open_store(store))
    for part in ("prompt", "wire", "response", "wire-response", "attempts", "chunks"):
        shown, own = (
            read.ok("show", job, "--part", part, "--store", store)
            for job in ("short@33", "licences@33")
        )
        assert shown == own


def test_what_is_told_of_a_damaged_turn_has_its_pinned_shape(read: Reader) -> None:
    """Also where what cannot be read is of no turn."""
    shapes = PINNED["documents"]
    unpack(read.store)
    (step,) = read.store.glob("nightly/licences/turns/b/00000/0000033.step")
    step.unlink()
    for part in ("prompt", "request", "segments", "attempts", "forgotten"):
        told = json.loads(read("show", "licences@33", "--part", part, "--json").out)
        assert told["damaged"]["turn"] == 33
        assert list(misfits(shapes[f"show --part {part}"], told)) == []
    (start,) = read.store.glob("nightly/licences/runs/b")
    start.unlink()
    told = json.loads(read("log", "licences", "--json").out)
    assert None in [one["turn"] for one in told["damaged"]]
    assert list(misfits(shapes["log"], told)) == []


def test_a_statement_is_shown_though_the_next_prompt_is_damaged(read: Reader) -> None:
    """That says what it printed; the rest stands elsewhere."""
    written = Written(JobArchive(read.objects, "nightly", "loud"))
    first = written.finish("r", 1, written.begin("r", 1, None, [segment("Begin.")]))
    layout = [segment("Begin."), segment("[turn 1: ok]\nhello", kind=SegmentKind.RESULT)]
    record = step_record("r", 2, written.begin("r", 2, first, layout))
    execution = {"status": "ok", "stdout_digest": digest_of("hello\n\n")}
    written.finished(record.model_copy(update={"execution": execution}))
    statement = ("show", "loud@1", "--part", "statement")
    assert read.json(*statement)["statement"]["stdout"] == "hello\n\n"
    damage(read.store / "nightly/loud/turns/r/00000/0000002.attempt-001")
    told = read.json(*statement)["statement"]
    assert (told["execution"]["status"], told["stdout"]) == ("ok", None)
    assert "is not to be found: no readable prompt shows it]" in read.ok(*statement)


def test_the_attempt_in_flight_is_shown(read: Reader) -> None:
    """The newest turn of a run that goes on: its prompt and request, and no response yet."""
    shown = read.ok("show", "licences@35", "--run", "a", "--part", "wire")
    assert shown.encode() == read.written.requests["a", 35]
    assert "no answer recorded" in read.ok(
        "show", "licences@35", "--run", "a", "--part", "attempts"
    )
    assert read("show", "licences@35", "--run", "a", "--part", "wire-response").code == 2


def test_a_difference_says_what_changed_and_what_broke_the_prefix(read: Reader) -> None:
    """Segments added, removed, changed and moved; the stable share, and the statement that came
    between.
    """
    found = json.loads(read.ok("diff", "licences@33", "--json"))
    assert (found["before"]["turn"], found["after"]["turn"]) == (32, 33)
    assert [(c["kind"], c["position_before"], c["position_after"]) for c in found["changes"]] == [
        ("added", None, 6),
        ("added", None, 7),
        ("changed", 6, 8),
    ]
    layout = read.written.layouts["b", 33]
    stable, tokens = sum(s.tokens for s in layout[:6]), sum(s.tokens for s in layout)
    assert (found["stable_tokens"], found["stable_share"]) == (stable, round(stable / tokens, 4))
    assert (found["broken_by"]["position_after"], found["broken_by_statement"]) == (6, "x = 32")
    assert read.ok("diff", "licences@32", "licences@33", "--json") == read.ok(
        "diff", "licences@33", "--json"
    )
    text = read.ok("diff", "licences@33", "--text").splitlines()
    assert (
        text[1] == f"stable prefix: 6 segments, {stable} of {tokens} tokens ({stable / tokens:.1%})"
    )
    assert text[-2:] == ["    -8968 tokens left", "    +8967 tokens left"]
    assert read("diff", "licences@30").code == 2


def test_a_difference_of_bytes_makes_the_one_request_from_the_other(read: Reader) -> None:
    """--wire gives stretches of bytes: put in place of each other, they make the later request."""
    found = json.loads(read.ok("diff", "licences@31", "licences@34", "--wire", "--json"))
    old, made, at = read.written.requests["a", 31], b"", 0
    for change in found["changes"]:
        made += old[at : change["old_start"]] + change["added"].encode()
        at = change["old_start"] + len(change["removed"].encode())
    assert made + old[at:] == read.written.requests["b", 34]
    assert (
        read.ok("diff", "licences@33", "--wire")
        .splitlines()[-1]
        .endswith('8967 tokens left"}], "stream": true}')
    )


def test_blame_and_why_name_origins_and_turns(read: Reader) -> None:
    """Each part with its origin, the turn that brought it in and the one that changed it; 'why'
    those with a text.
    """
    rows = json.loads(read.ok("blame", "licences@34", "--json"))["segments"]
    assert [(row["origin"], row["introduced"], row["changed"]) for row in rows[-3:]] == [
        ("statement:33", 34, 34),
        ("statement:33", 34, 34),
        ("tail", 30, 34),
    ]
    found = json.loads(read.ok("why", "licences@34", "Result 32", "--json"))["segments"]
    assert [(row["position"], row["origin"], row["introduced"]) for row in found] == [
        (5, "statement:31", 32)
    ]
    assert (
        read.ok("why", "licences@34", "tokens left")
        == "  10  budget · tail  in since turn 30, changed in turn 34  8966 tokens left\n"
    )
    missing = read("why", "licences@34", "nowhere")
    assert (missing.code, missing.err) == (
        2,
        (
            "error: 'nowhere' does not stand in the prompt of nightly/licences@34; --gone looks in"
            " the prompts before it\n"
        ),
    )


def test_nodes_are_those_of_the_turn(read: Reader) -> None:
    """The states as they stood, those that changed marked; a turn in flight shows the last known
    ones.
    """
    found = json.loads(read.ok("nodes", "licences@32", "--json"))
    assert sorted(found["nodes"]) == ["view-1", "view-9"]
    assert sorted(found["changed"]) == ["view-0", "view-9"]
    assert "* view-9  text=new" in read.ok("nodes", "licences@32").splitlines()
    assert json.loads(read.ok("nodes", "licences@35", "--run", "a", "--json"))["changed"] == []


def test_cost_adds_up_every_call(read: Reader) -> None:
    """Tokens and dollars of all runs' calls by job and batch, failed attempts counted beside."""
    eventful_job(read.objects, job="second")
    found = json.loads(read.ok("cost", "--json"))
    prompt = sum(100 + turn for turn in (30, 31, 32, 33, 34, 33, 34, 35, 35))
    one = {
        "calls": 9,
        "failed_attempts": 1,
        "prompt": prompt,
        "completion": 108,
        "cache_read": 0,
        "cache_write": 0,
        "unreported": 0,
        "cost_usd": 0.009,
        "failed_tokens": 0,
        "failed_usd": 0.0,
        "moved_prefixes": 0,
        "lost_usd": 0.0,
        "commands": 0,
        "command_seconds": 0.0,
        "effects": 0,
        "effect_seconds": 0.0,
    }
    twice = {name: round(2 * value, 9) for name, value in one.items()}
    one, twice = {**one, "damaged": []}, {**twice, "damaged": []}
    jobs = [{"job": "nightly/licences", **one}, {"job": "nightly/second", **one}]
    assert found == {"jobs": jobs, "batches": {"nightly": twice}, "total": twice}
    assert read.ok("cost").splitlines()[-1].startswith("nightly in all        18 calls")


def test_the_cost_of_a_job_is_not_its_batchs(read: Reader) -> None:
    """Of a job that is named there is its own line alone, and no sum under its batch's name."""
    eventful_job(read.objects, job="second")
    (row,) = read.ok("cost", "licences").splitlines()
    assert row.startswith("nightly/licences       9 calls")
    told = json.loads(read.ok("cost", "licences", "--json"))
    assert (told["batches"], told["total"]["calls"]) == ({}, 9)


def test_cost_counts_an_effect_where_it_was_done(read: Reader) -> None:
    """A run that goes on from a turn tells of its statement again, where that was done in another
    run or another job: a reset, a run that was full, a fork. What it did itself is its own, and
    what a record answered is not: a frozen replay does nothing.
    """
    timed = Written(JobArchive(read.objects, "timed", "one"))
    fork = Written(JobArchive(read.objects, "timed", "fork"))

    def take(written: Written, run: str, turn: int, done: str, *seconds: float | None) -> None:
        effects = [{"kind": "change", "name": name} for name in done.split()]
        begun = written.begin(run, turn, parent, [segment(f"turn {turn}")])
        record = step_record(run, turn, begun)
        execution = {"effects": effects, "cost": {"effects": list(seconds)}}
        written.finished(record.model_copy(update={"execution": execution}))

    def spent(name: str) -> tuple[float, ...]:
        (row,) = json.loads(read.ok("cost", f"timed/{name}", "--json"))["jobs"]
        return tuple(
            row[each] for each in ("commands", "command_seconds", "effects", "effect_seconds")
        )

    parent: StepRef | None = None
    take(timed, "a", 1, "")
    timed.archive.write_effect("a", 1, 0, {"value": {"seconds": 2.0}})
    parent = timed.refs["a", 1]
    take(timed, "a", 2, "sh work", 2.5, 0.25)
    assert spent("one") == (1, 2.0, 2, 2.75)
    take(timed, "b", 2, "sh work", 2.5, 0.25)
    take(fork, "f", 2, "sh work", 2.5, 0.25)
    assert spent("one") == (1, 2.0, 2, 2.75)
    assert spent("fork") == (0, 0, 0, 0)
    parent = timed.refs["b", 2]
    # The run was full after its last statement, of which the next alone tells.
    take(timed, "c", 3, "work", 0.125)
    assert spent("one") == (1, 2.0, 3, 2.875)
    parent = timed.refs["a", 1]
    timed.archive.write_effect("d", 1, 1, {"value": "after a reset to the middle of the statement"})
    take(timed, "d", 2, "sh work", 2.5, 0.5)
    assert spent("one") == (1, 2.0, 4, 3.375)
    # What a frozen replay is answered is archived for it too.
    parent = None
    write_replay(timed.archive, "id", {"frozen": True}, "2026-11-02T09:12:44+00:00")
    claim_replay(timed.archive, "id", "e")
    for run in ("e", "f"):
        take(timed, run, 1, "")
        timed.archive.write_effect(run, 1, 0, {"value": {"seconds": 2.0}})
    parent = timed.refs["e", 1]
    take(timed, "e", 2, "sh work", None, None)
    assert spent("one") == (1, 2.0, 4, 3.375)
    # A lost job that goes on in the midst has what nothing else tells of.
    parent = timed.refs["f", 1]
    take(timed, "f", 2, "sh work", None, 0.5)
    assert spent("one") == (2, 4.0, 5, 3.875)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--events"], "--events"),
        (["--effects", "--events"], "--events and --effects"),
        (["--run", "a"], "--run"),
    ],
)
def test_a_graph_of_all_runs_goes_with_nothing_of_one(
    read: Reader, more: list[str], told: str
) -> None:
    """It would be left out without a word."""
    done = read("log", "licences", "--graph", *more)
    assert (done.code, done.err) == (
        2,
        f"error: --graph draws all runs: it does not go with {told}\n",
    )


def test_an_export_is_json_lines(read: Reader) -> None:
    """Every turn is a line with its attempts, requests and response, also of the attempt that
    failed; effects stand between.
    """
    lines = [json.loads(line) for line in read.ok("export", "licences").splitlines()]
    assert [line["type"] for line in lines] == [
        "definition", "step", "step", "effect", "effect", *["step"] * 3, "summary", "step", "effect", "end",
    ]  # fmt: skip
    assert [(e["run"], e["turn"], e["value"]["value"]) for e in lines if e["type"] == "effect"] == [
        ("a", 31, 0), ("a", 31, 1), ("b", 35, "last"),
    ]  # fmt: skip
    failed = lines[5]["attempts"][0]["failure"]
    assert (failed["error_type"], failed["response"]["text"][-9:]) == ("StreamBroken", '{"error":')
    assert read("export", "licences", "--run", "z").code == 2


def test_an_export_s_run_is_named_as_everywhere(read: Reader, tmp_path: Path) -> None:
    """By its id or the begin of one; where there is none of that name, the runs are told."""
    rich_archive(open_store(str(tmp_path / "rich")))
    words = ("export", "short", "--store", str(tmp_path / "rich"))
    assert read.ok(*words, "--run", "sec") == read.ok(*words)
    assert read.ok(*words, "--run", "fir") != read.ok(*words)
    refused = read(*words, "--run", "z")
    assert (refused.code, refused.out) == (2, "")
    assert "has no run 'z' in the archive; it has first, second" in refused.err


def test_calls_that_wrote_summaries_are_listed_shown_and_exported(read: Reader) -> None:
    """A summary's call stands before the turn that it was written for, and every command takes its
    run's name.
    """
    job = Written(JobArchive(read.objects, "nightly", "licences"))
    job.begin("b~2", 35, read.written.refs["b", 34], [segment("Again.")])
    rows = json.loads(read.ok("log", "licences", "--json"))["summaries"]
    assert [(row["turn"], row["run"], row["outcome"]) for row in rows] == [
        (35, "b~1", "ok"),
        (35, "b~2", "no reply"),
    ]
    lines = read.ok("log", "licences").splitlines()
    assert " ".join(lines[6].split()).startswith("35 summary ok 135+12 tokens $0.0010")
    assert lines[6].endswith("--run b~1")
    assert lines[8].split()[0] == "condensed"
    assert lines[9].split()[:3] == ["35", "not", "executed"]
    assert (
        read.ok("show", "licences@35", "--run", "b~1", "--part", "wire").encode()
        == read.written.requests["b~1", 35]
    )
    assert read("show", "licences@35", "--run", "b~3").code == 2
    exported = [json.loads(line) for line in read.ok("export", "licences").splitlines()]
    assert [(line["type"], line["run"]) for line in exported[8:11]] == [
        ("summary", "b~1"), ("summary", "b~2"), ("step", "b"),
    ]  # fmt: skip
    assert (
        exported[8]["attempts"][0]["request"]["text"].encode() == read.written.requests["b~1", 35]
    )
    assert "b~1" in read.ok("export", "licences", "--format", "otel")
    assert read("verify", "licences").code == 0


def test_an_export_for_opentelemetry_has_a_span_a_call(read: Reader) -> None:
    """GenAI spans in OTLP's JSON: each call with its messages and usage, a failed one with its
    error, all in one trace.
    """
    lines = [
        json.loads(line) for line in read.ok("export", "licences", "--format", "otel").splitlines()
    ]
    spans = [line["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for line in lines]
    assert [span["name"] for span in spans] == [*["chat m-1"] * 8, "invoke_agent licences"]
    assert len({span["traceId"] for span in spans}) == 1
    assert {span["parentSpanId"] for span in spans[:-1]} == {spans[-1]["spanId"]}
    assert len({span["spanId"] for span in spans}) == 9
    failed, answered = (
        {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
        for span in spans[2:4]
    )
    assert (failed["error.type"], spans[2]["status"]["code"]) == ("StreamBroken", 2)
    assert (answered["gen_ai.usage.input_tokens"], answered["gen_ai.provider.name"]) == (
        "132",
        "openai",
    )
    assert [m["parts"][0]["content"] for m in json.loads(answered["gen_ai.input.messages"])] == [
        s.text for s in read.written.layouts["a", 32]
    ]
    (said,) = json.loads(answered["gen_ai.output.messages"])
    assert said["parts"][1] == {
        "type": "tool_call",
        "id": "call_32",
        "name": "python",
        "arguments": {"code": "x = 32"},
    }


def test_a_turn_that_is_not_there_is_an_error_of_every_command(read: Reader) -> None:
    """It says which turns there are; a turn where a job is wanted is said to be one."""
    for command in (["show"], ["show", "--part", "segments"], ["nodes"], ["blame"], ["diff"]):
        done = read(command[0], "licences@36", *command[1:])
        assert (done.code, done.out) == (2, "")
        assert (
            done.err == "error: nightly/licences has no turn 36 in run b: it has turns 30 to 35\n"
        )
    assert read("why", "licences@29", "x").code == 2
    assert "takes a job without a turn, as in 'licences'" in read("log", "licences@33").err


def test_notes_of_many_turns_are_one_line(read: Reader) -> None:
    """What is noted of every turn, as of a scripted model's, is told once for a run; --json has
    each.
    """
    job = Written(JobArchive(read.objects, "nightly", "scripted"))
    parent = None
    for turn in (1, 2, 3, 5):
        if turn == 5:
            parent = job.finish("r", 4, job.begin("r", 4, parent, [segment("hi")]))
        attempt = job.begin("r", turn, parent, [segment("hi")], capture=Capture.HANDED_OVER)
        parent = job.finish("r", turn, attempt)
    message = "holds the request as handed over, not what went over the wire"
    assert (
        f"  note: turns 1 to 3, 5 of run r: each {message}"
        in read("verify", "scripted").out.splitlines()
    )
    assert len(json.loads(read("verify", "scripted", "--json").out)["jobs"][0]["notes"]) == 4


def test_verify_tells_clean_from_damaged(read: Reader) -> None:
    """Damage names turn and object and exits with 4; notes are listed apart; a chain alone is
    self-attested.
    """
    clean = read("verify")
    assert (
        clean.err
        == "without Temporal's history: no server runs ('holdfast up' starts the embedded one)\n"
    )
    assert (clean.code, clean.out.splitlines()) == (
        0,
        [
            "nightly/licences: clean",
            (
                "  note: turn 35: is an attempt whose turn has no step"
                " [nightly/licences/turns/a/00000/0000035.attempt-001]"
            ),
            "  1 object named by no other, beside the heads of runs",
            "  run a, of which no end is archived: only self-attested",
            "  run b: only self-attested",
        ],
    )
    eventful_job(read.objects, job="second")
    unpack(read.store)
    key = "nightly/second/turns/a/00000/0000033.step"
    path = read.store / key
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    damaged = read("verify", "--all")
    assert damaged.code == 4
    wanted = f"  damaged: turn 33: its bytes do not have the digest that they carry [{key}]"
    assert wanted in damaged.out.splitlines()
    assert read("verify", "licences").code == 0
    document = json.loads(read("verify", "--all", "--json").out)
    assert document["clean"] is False
    assert [job["job"] for job in document["jobs"] if job["damage"]] == ["nightly/second"]
    assert read("verify", "licences", "--all").code == 2


def test_a_named_archive_must_be_there_and_may_be_read_only(read: Reader, tmp_path: Path) -> None:
    """A mistyped --store is an error and makes nothing; reading writes nothing."""
    nowhere = tmp_path / "nowhere"
    wrong = read("ls", "--store", str(nowhere))
    assert (wrong.code, wrong.err) == (
        2,
        f"error: there is no archive at {nowhere}: no such directory\n",
    )
    assert not nowhere.exists()
    assert "it has no object" in read("verify", "--store", str(tmp_path)).err
    before = sorted(path.relative_to(read.store) for path in read.store.rglob("*"))
    for path in (*read.store.rglob("*"), read.store):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        for command in (
            ["verify"],
            ["cost"],
            ["log", "licences"],
            ["blame", "licences@33"],
            ["export", "licences"],
        ):
            assert read(*command).code == 0
    finally:
        for path in (read.store, *read.store.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert sorted(path.relative_to(read.store) for path in read.store.rglob("*")) == before


@pytest.mark.slow
def test_schemas_of_archived_objects_are_published(read: Reader) -> None:
    """'schema --archive' prints a JSON Schema for each kind, which every object's header fits."""
    schemas = json.loads(read.ok("schema", "--archive"))
    kinds = set()
    for key in read.objects.list("nightly/"):
        header = unseal(key, read.objects.get(key)).header
        jsonschema.validate(header, schemas[header["kind"]])
        kinds.add(header["kind"])
    assert (
        {"definition", "run", "attempt", "failure", "effect", "step", "end"}
        <= kinds
        <= schemas.keys()
    )


def test_some_turns_are_exported_by_their_numbers(read: Reader) -> None:
    """A..B, A.., ..B and A; what is no range, and a range without turns, are errors."""
    for turns, expected in (
        ("33..34", [33, 34]),
        ("34..", [34, 35]),
        ("..31", [30, 31]),
        ("32", [32]),
    ):
        lines = map(
            json.loads, read.ok("export", "licences", "--turns", turns, "--delta").splitlines()
        )
        assert [line["turn"] for line in lines if line["type"] == "step"] == expected
    for turns in ("x", "..", "34..33", "1-2", "9" * 5_000):
        assert read("export", "licences", "--turns", turns).code == 2
    assert "it has turns 30 to 35" in read("export", "licences", "--turns", "99").err
    assert read("export", "licences", "--delta", "--format", "otel").code == 2


def test_why_tells_of_what_is_gone(read: Reader) -> None:
    """What the prompt held before and does not hold now; and errors for what never stood there, and
    what stands there still.
    """
    (gone,) = json.loads(read.ok("why", "licences@34", "8970 tokens left", "--gone", "--json"))[
        "gone"
    ]
    assert (gone["origin"], gone["first_shown"], gone["last_shown"], gone["gone_in"]) == (
        "tail",
        30,
        30,
        31,
    )
    assert gone["instead"]["origin"] == "tail"
    shown = read.ok("why", "licences@34", "8970 tokens left", "--gone").splitlines()
    assert shown[0] == "budget · tail  shown in turn 30, gone in turn 31  8970 tokens left"
    assert shown[-1].startswith(
        "  still archived: part 2 of 'holdfast show nightly/licences@30', in "
    )
    assert "stood in no prompt" in read("why", "licences@34", "--gone", "nowhere").err
    assert "still stands" in read("why", "licences@34", "--gone", "The contract").err
