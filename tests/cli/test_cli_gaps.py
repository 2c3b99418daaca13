"""A record that is missing or damaged is told by every command that reads a job, and hides none of
the others.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.keys import failure_key
from runtime.archive.stores import open_store
from runtime.cli.main import main
from tests.cli.command_line import Done, damage, unpack

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))
from archive_jobs import Written, chat, eventful_job, failure_record, write_run

STEP = "nightly/licences/turns/b/00000/0000033.step"
KEYFRAME = "nightly/licences/turns/a/00000/0000032.step"
END = "nightly/licences/ends/b"
DEFINITION = "nightly/licences/definition/0001"
EFFECT = "nightly/licences/turns/b/00000/0000035.effect-000000"
SIDE = "nightly/licences/runs/b~1"
OF_SIDE = [f"nightly/licences/turns/b~1/00000/0000035.{kind}" for kind in ("attempt-001", "step")]
STARTS = ["nightly/licences/runs/a", "nightly/licences/runs/b"]
FIRST_OF_B = [f"nightly/licences/turns/b/00000/0000033.{kind}" for kind in ("attempt-001", "step")]


class Damaged:
    """Commands on an archive of which one object is harmed."""

    def __init__(self, store: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.store = store
        self.written: Written = eventful_job(open_store(str(store)))
        # Of one object each.
        unpack(store)
        self.capture = capture

    def delete(self, key: str) -> None:
        (self.store / key).unlink()

    def flip(self, key: str) -> None:
        damage(self.store / key)

    def __call__(self, *arguments: str) -> Done:
        self.capture.readouterr()
        code = main(list(arguments))
        return Done(code, *self.capture.readouterr())


@pytest.fixture
def given(
    tmp_path: Path,
    clean_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Damaged:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    return Damaged(tmp_path / "archive", capsys)


@pytest.mark.parametrize("harm", [Damaged.delete, Damaged.flip], ids=["missing", "damaged"])
def test_log_marks_the_turn_and_shows_the_others(given: Damaged, harm: object) -> None:
    """A line where the turn should be, advice, and a field for programs; before it stands what is
    not known any more.
    """
    harm(given, STEP)  # type: ignore[operator]
    log = given("log", "licences")
    assert log.code == 0
    lines = log.out.splitlines()
    (marked,) = [line for line in lines if "DAMAGED" in line]
    assert marked.startswith("  33  DAMAGED") and STEP in marked
    assert any("run 'holdfast verify nightly/licences'" in line for line in lines)
    told = given("log", "licences", "--json").json()
    assert [turn["turn"] for turn in told["turns"]] == [30, 31, 32, 34, 35]
    assert [(gap["turn"], gap["key"]) for gap in told["damaged"]] == [(33, STEP)]
    assert next(turn["outcome"] for turn in told["turns"] if turn["turn"] == 32) == "not known"


@pytest.mark.parametrize("harm", [Damaged.delete, Damaged.flip], ids=["missing", "damaged"])
def test_show_prints_what_was_sent_and_says_what_is_gone(given: Damaged, harm: object) -> None:
    """The prompt of the turn can be read without its reply; the reply cannot, and other turns are
    as they were.
    """
    before = given("show", "licences@34").out
    harm(given, STEP)  # type: ignore[operator]
    prompt = given("show", "licences@33")
    assert (prompt.code, "Result 33" in prompt.out, STEP in prompt.err) == (0, True, True)
    assert given("show", "licences@33", "--json").json()["damaged"]["key"] == STEP
    reply = given("show", "licences@33", "--part", "response")
    assert (reply.code, "holdfast verify" in reply.err) == (4, True)
    assert given("show", "licences@34").out == before
    several = given("show", "licences", "--turns", "32..34", "--part", "response", "--json").json()
    assert [(row["turn"], "damaged" in row) for row in several] == [
        (32, False),
        (33, True),
        (34, False),
    ]


def test_a_turn_of_which_nothing_is_left_is_told_as_lost(given: Damaged) -> None:
    """That the archive has no such turn is not so where later ones lean on it; nor do two
    timelines part after turns that nobody can read.
    """
    for key in FIRST_OF_B:
        given.delete(key)
    for command in (
        *(f"show licences@33 --part {part}" for part in ("prompt", "wire", "nodes", "statement")),
        *("why licences@33 Result", "blame licences@33", "nodes licences@33"),
        *("diff licences@33", "diff licences@34", "compare licences --other-run a"),
        "export licences --turns 33",
    ):
        lost = given(*command.split())
        assert (command, lost.code, lost.out) == (command, 4, "")
        assert lost.err == (
            f"error: turn 33 of nightly/licences cannot be read: {STEP} is not there: run 'holdfast"
            " verify nightly/licences'\n"
        )


def test_export_of_turns_says_that_none_can_be_read(given: Damaged) -> None:
    """Where all that was sent is gone."""
    for sent in given.store.glob("nightly/licences/turns/*/*/*.attempt-*"):
        sent.unlink()
    none = given("export", "licences", "--turns", "33")
    assert (none.code, none.out) == (2, "")
    assert none.err == (
        "error: nightly/licences has no turn of 33 in run b: it has none that can be read\n"
    )


def test_the_newest_turn_is_that_of_which_the_end_knows(given: Damaged) -> None:
    """Also where nothing is left of it: the one before it is not the newest."""
    newest = given("show", "licences", "--json").json()["turn"]
    for kind in ("attempt-001", "step"):
        given.delete(f"nightly/licences/turns/b/00000/{newest:07}.{kind}")
    lost = given("show", "licences")
    assert (lost.code, f"turn {newest} of nightly/licences cannot be read" in lost.err) == (4, True)


def test_a_difference_says_of_a_start_that_it_is_the_jobs(given: Damaged) -> None:
    """A start belongs to no turn."""
    given.delete(STARTS[1])
    told = given("diff", "licences@35")
    assert (told.code, told.err) == (
        0,
        f"not all of nightly/licences can be read: {STARTS[1]} is not there: run 'holdfast verify"
        " nightly/licences'\n",
    )


def test_a_run_whose_start_is_gone_is_the_newest_all_the_same(given: Damaged) -> None:
    """Its start is a marked line, and its turns are told with those that it went on from; so they
    are where that run's start is gone, too.
    """
    whole = given("log", "licences", "--json").json()
    given.delete(STARTS[1])
    log = given("log", "licences", "--json").json()
    assert [gap["key"] for gap in log["damaged"]] == [STARTS[1]]
    assert log | {"damaged": []} == whole
    lines = given("log", "licences").out.splitlines()
    assert f"DAMAGED                 {STARTS[1]} is not there" in "\n".join(lines)
    given.delete(STARTS[0])
    log = given("log", "licences", "--json").json()
    assert [gap["key"] for gap in log["damaged"]] == STARTS
    assert log | {"damaged": []} == whole
    assert given("show", "licences@34").code == 0
    exported = given("export", "licences", "--turns", "34..34").out.splitlines()
    told = [json.loads(line) for line in exported]
    assert [one["turn"] for one in told if one["type"] == "step"] == [34]
    assert [one["key"] for one in told if one["type"] == "damaged"] == STARTS


@pytest.mark.parametrize("harm", [Damaged.delete, Damaged.flip], ids=["missing", "damaged"])
def test_a_run_whose_start_cannot_be_read_hides_behind_no_older_one(
    given: Damaged, harm: object
) -> None:
    """Whatever tells of the job tells of this run, by its first call, and of its start."""
    before = given("show", "licences", "--part", "segments").out
    harm(given, STARTS[1])  # type: ignore[operator]
    assert given("log", "licences", "--json").json()["run"] == "b"
    (row,) = given("ls", "--json").json()
    assert (row["status"], row["turns"]) == ("damaged", 35)
    (result,) = given("results", "nightly", "--json").json()
    assert (result["status"], result["result"]) == ("damaged", {"files": []})
    for told in (row, result):
        assert any(STARTS[1] in one for one in told["damaged"])
    (group,) = given("errors", "nightly", "--json").json()
    assert (group["statuses"], STARTS[1] in group["example"]["reason"]) == ({"damaged": 1}, True)
    shown = given("show", "licences", "--part", "segments")
    assert (shown.code, shown.out, STARTS[1] in shown.err) == (0, before, True)
    assert given("show", "licences", "--json").json()["damaged"]["key"] == STARTS[1]
    several = given("show", "licences", "--turns", "34..35", "--json").json()
    assert [STARTS[1] in row["damaged"] for row in several] == [True, True]
    lines = map(json.loads, given("export", "licences").out.splitlines())
    told = [(line["type"], line.get("turn"), line.get("key")) for line in lines]
    assert [turn for kind, turn, _ in told if kind == "step"] == [*range(30, 36)]
    assert ("damaged", None, STARTS[1]) in told
    assert told[-1][:2] == ("end", 35)


def test_a_start_that_cannot_be_read_is_not_known_by_its_turns_if_they_are_damaged_too(
    given: Damaged,
) -> None:
    """Neither where its turns are nor when it began: the row is damaged, and no older run's."""
    for key in (STARTS[1], *FIRST_OF_B):
        given.flip(key)
    (row,) = given("ls", "--json").json()
    assert (row["status"], any(STARTS[1] in one for one in row["damaged"])) == ("damaged", True)
    log = given("log", "licences", "--run", "b")
    assert (log.code, STARTS[1] in log.err) == (4, True)


def test_cost_tells_of_a_step_that_is_not_there(given: Damaged) -> None:
    """What the turn cost is not known, and is not silently nothing; an attempt in flight is no
    loss.
    """
    assert given("cost", "licences", "--json").json()["jobs"][0]["damaged"] == []
    given.delete(STEP)
    assert given("cost", "licences", "--json").json()["jobs"][0]["damaged"] == [STEP]


def test_cost_export_diff_and_blame_read_the_rest(given: Damaged) -> None:
    """Each says what is left out; none of them fails over one turn of six."""
    calls = given("cost", "licences", "--json").json()["jobs"][0]["calls"]
    given.flip(STEP)
    cost = given("cost", "licences", "--json").json()["jobs"][0]
    assert (cost["calls"], cost["damaged"]) == (calls - 1, [STEP])
    assert "1 object cannot be read" in given("cost", "licences").out
    exported = given("export", "licences")
    assert exported.code == 0
    kinds = [
        (line["type"], line.get("turn")) for line in map(json.loads, exported.out.splitlines())
    ]
    assert [turn for kind, turn in kinds if kind == "step"] == [30, 31, 32, 34, 35]
    assert ("damaged", 33) in kinds
    assert kinds.index(("step", 32)) < kinds.index(("damaged", 33)) < kinds.index(("step", 34))
    diff = given("diff", "licences@33", "--json")
    assert (diff.code, [gap["turn"] for gap in diff.json()["damaged"]]) == (0, [33])
    blame = given("blame", "licences@34", "--json")
    assert (blame.code, blame.json()["damaged"]) == (
        0,
        [],
    ), "a reply that cannot be read hides no prompt"
    assert {row["introduced"] for row in blame.json()["segments"]} == {30, 31, 32, 33, 34}


def test_nodes_are_readable_again_from_the_next_keyframe(given: Damaged) -> None:
    """Without a keyframe the nodes of the turns behind it cannot be put together: the error names
    it; earlier ones can.
    """
    given.flip(KEYFRAME)
    assert given("show", "licences@31", "--part", "nodes").code == 0
    behind = given("show", "licences@33", "--part", "nodes")
    assert (behind.code, KEYFRAME in behind.err) == (4, True)
    assert given("show", "licences@33", "--part", "response").code == 0
    assert [g["key"] for g in given("log", "licences", "--json").json()["damaged"]] == [KEYFRAME]


def test_a_run_whose_end_is_damaged_is_listed_as_such(given: Damaged) -> None:
    """ls and log go on, and say that the end cannot be read."""
    given.flip(END)
    (row,) = given("ls", "--json").json()
    assert row["status"] == "damaged"
    assert any(END in one for one in row["damaged"])
    assert "holdfast verify" in given("ls").out
    assert [gap["key"] for gap in given("log", "licences", "--json").json()["damaged"]] == [END]


@pytest.mark.parametrize(
    ("key", "lost"), [(DEFINITION, 0), (EFFECT, -2), (STARTS[0], None), (SIDE, None)]
)
def test_export_tells_all_that_does_not_stand_in_what_is_damaged(
    given: Damaged, key: str, lost: int | None
) -> None:
    """One line says what cannot be read, in the place of the ``lost`` one, and the others are as
    before: a start has none, and its run's first turn tells what it says.
    """
    whole = list(map(json.loads, given("export", "licences").out.splitlines()))
    given.flip(key)
    exported = given("export", "licences")
    assert exported.code == 0
    lines = list(map(json.loads, exported.out.splitlines()))
    assert [line["key"] for line in lines if line["type"] == "damaged"] == [key]
    if lost is not None:
        assert lines[lost]["type"] == "damaged"
        del whole[lost]
    assert [line for line in lines if line["type"] != "damaged"] == whole


@pytest.mark.parametrize("harm", [Damaged.delete, Damaged.flip], ids=["missing", "damaged"])
@pytest.mark.parametrize("key", [STARTS[0], SIDE])
def test_log_and_show_read_behind_the_start_of_another_run(
    given: Damaged, harm: object, key: str
) -> None:
    """That of the run that the turns go on from, and that of one that wrote a summary: all that
    they have is told, and the start is named.
    """
    whole = given("log", "licences", "--json").json()
    shown = given("show", "licences@31").out
    harm(given, key)  # type: ignore[operator]
    log = given("log", "licences", "--json")
    assert (log.code, [gap["key"] for gap in log.json()["damaged"]]) == (0, [key])
    assert log.json() | {"damaged": []} == whole
    prompt = given("show", "licences@31")
    assert (prompt.code, prompt.out) == (0, shown)
    assert (key in prompt.err) == (key == STARTS[0])


def test_a_summary_of_which_nothing_can_be_read_hides_no_turn(given: Damaged) -> None:
    """Nobody knows before which call it was written: it is left out, and its start is named."""
    for key in (SIDE, *OF_SIDE):
        given.flip(key)
    log = given("log", "licences", "--json").json()
    assert ([turn["turn"] for turn in log["turns"]], log["summaries"]) == ([*range(30, 36)], [])
    assert [gap["key"] for gap in log["damaged"]] == [SIDE]
    lines = list(map(json.loads, given("export", "licences").out.splitlines()))
    assert [line["key"] for line in lines if line["type"] == "damaged"] == [SIDE]
    assert [line["type"] for line in lines].count("step") == 6


REPLAY = "nightly/licences/replays/replay-1"


@pytest.mark.parametrize(
    ("key", "began", "status"),
    [
        (END, "replay", "damaged"),
        (STARTS[1], "replay", "succeeded"),
        (REPLAY, "replay", "succeeded"),
        (f"{REPLAY}.run", "reset", "succeeded"),
    ],
)
def test_the_graph_draws_each_run_and_says_what_it_does_not_know(
    given: Damaged, key: str, began: str, status: str
) -> None:
    """An end, a start, an order and a claim: the runs are drawn by what is left."""
    given.flip(key)
    told = given("log", "licences", "--graph", "--json").json()
    assert [gap["key"] for gap in told["damaged"]] == [key]
    assert [(run["run"], run["first"]) for run in told["runs"]] == [("a", 30), ("b", 33)]
    assert (told["runs"][1]["began"], told["runs"][1]["status"]) == (began, status)
    drawn = given("log", "licences", "--graph")
    assert (drawn.code, "DAMAGED" in drawn.out, key in drawn.out) == (0, True, True)
    assert "run 'holdfast verify nightly/licences'" in drawn.out


@pytest.mark.slow
@pytest.mark.parametrize("harm", [Damaged.delete, Damaged.flip], ids=["missing", "damaged"])
@pytest.mark.parametrize("key", [STEP, KEYFRAME, *OF_SIDE, FIRST_OF_B[0], END, SIDE])
def test_spans_are_those_of_the_calls_that_can_be_read(
    given: Damaged, harm: object, key: str
) -> None:
    """The run's own span comes last all the same, and what is left out is told on stderr."""
    whole = given("export", "licences", "--format", "otel").out.splitlines()
    harm(given, key)  # type: ignore[operator]
    exported = given("export", "licences", "--format", "otel")
    lines = exported.out.splitlines()
    assert exported.code == 0
    assert set(lines[:-1]) <= set(whole[:-1])
    assert '"invoke_agent licences"' in lines[-1]
    if key in {END, SIDE}:
        assert lines[:-1] == whole[:-1]
    if key == END:
        assert f'"{"damaged" if harm is Damaged.flip else "open"}"' in lines[-1]
    # Of a summary's call without a reply, or an open run, there may be none: no object says so.
    if harm is Damaged.flip or key in {STEP, KEYFRAME, FIRST_OF_B[0], SIDE}:
        assert key in exported.err and "'holdfast verify nightly/licences'" in exported.err


@pytest.mark.parametrize("kind", ["attempt-001", "effect-000000", "checkpoint"])
def test_export_tells_an_open_run_to_its_last_object(given: Damaged, kind: str) -> None:
    """What its last statement did, and the call in flight: each is told without the other."""
    archive = given.written.archive
    archive.write_effect("a", 34, 0, {"value": "last"})
    keys = {
        "attempt-001": "nightly/licences/turns/a/00000/0000035.attempt-001",
        "effect-000000": "nightly/licences/turns/a/00000/0000034.effect-000000",
    }
    if kind in keys:
        given.flip(keys[kind])
    else:
        key = "nightly/licences/turns/a/00000/0000034.checkpoint"
        (given.store / key).write_bytes(b"damaged")
    lines = list(map(json.loads, given("export", "licences", "--run", "a").out.splitlines()))
    told = [line["type"] for line in lines[-2:]]
    assert told == {
        "attempt-001": ["effect", "damaged"],
        "effect-000000": ["damaged", "attempt"],
        "checkpoint": ["effect", "attempt"],
    }.get(kind)


def test_log_tells_a_sub_job_and_a_call_in_vain_without_what_is_damaged(given: Damaged) -> None:
    """Whose sub-job it is, and how its last call failed, are not known: all else is told."""
    written = Written(JobArchive(open_store(str(given.store)), "nightly", "sub.0123456789"))
    written.archive.write_definition({"goal": "x", "model": "openai/m-1", "parent": "licences"})
    parent = write_run(written, "a", range(1, 3), None, chat(random.Random(1), 20))
    assert parent is not None
    failed = written.begin("a", 3, parent, written.archive.layout(parent))
    written.archive.fail_attempt(failure_record(failed))
    written.archive.write_end(NewEnd(run="a", turn=2, parent=parent, status="failed", reason="x"))
    definition = f"{written.archive.prefix}/definition/0001"
    for key in (definition, failure_key(failed)):
        given.flip(key)
    log = given("log", "sub.0123456789", "--json").json()
    assert [gap["key"] for gap in log["damaged"]] == [definition, failure_key(failed)]
    assert (log["parent"], log["end"]["status"]) == (None, "failed")
    assert [turn["outcome"] for turn in log["turns"]][2:] == ["not known"]
