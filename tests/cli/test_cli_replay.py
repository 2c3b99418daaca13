"""``replay``, ``fork``, ``divergences``, ``compare`` and ``log --graph``, as a user gives them."""

import json
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine, script

pytestmark = pytest.mark.server

STATEMENTS = [
    "n = 1",
    "text = open('data.txt').read()\nprint(text)",
    "n += 1",
    "v = view('data.txt', tokens=100)",
    "finish({'n': n})",
]

FOLLOWING = """
def respond(messages):
    said = [m["content"] for m in messages if m["role"] == "user"]
    n = sum(m["role"] == "assistant" for m in messages)
    if any("stop now" in str(text) for text in said):
        return {"code": "finish('stopped')"}
    return {"code": ["n = 1", "n += 1", "n += 1", "n += 1", "finish(n)"][n]}
"""


@pytest.fixture
def job(cli: CommandLine, request: pytest.FixtureRequest) -> str:
    """A job that has ended; its name."""
    batch = request.node.name.replace("_", "-")[:60]
    cli.write("ws/data.txt", "data\n")
    cli.write("a.json", script(*STATEMENTS))
    file = cli.jobs("id: a, model: scripted/a.json", batch=batch)
    assert cli("run", file).code == 0
    return f"{batch}/a"


def test_a_frozen_replay_proves_the_timeline(cli: CommandLine, job: str) -> None:
    """Nothing diverges, the archive verifies, and the graph shows the replay under the run it went
    back in.
    """
    done = cli("replay", job, "--from", "2", "--mode", "reexecute", "--frozen")
    assert (done.code, done.err) == (0, "")
    assert f"{job}: no divergence in 4 statements" in done.out
    assert cli("divergences", job).code == 0
    assert cli("verify", job).code == 0
    first, second = cli("log", job, "--graph", "--json").json()["runs"]
    assert (first["parent_run"], second["parent_run"], second["first"]) == (None, first["run"], 2)
    assert (second["order"]["mode"], second["order"]["frozen"]) == ("reexecute", True)
    drawn = cli("log", job, "--graph").out.splitlines()
    assert drawn[1].startswith(first["run"])
    assert drawn[2].startswith(
        f"└─ {second['run']}  turns 2 to 5  replay from statement 2 (reexecute, frozen)"
    )
    old = cli("log", job, "--run", first["run"][:13], "--json").json()
    assert [turn["turn"] for turn in old["turns"]] == [1, 2, 3, 4, 5]
    compared = cli("compare", job, "--other-run", first["run"], "--json").json()
    assert (compared["shared_turns"], compared["first_other_statement"]) == (1, None)
    assert compared["first_other_execution"] is None


def test_a_deadline_that_leaves_no_time_is_worth_a_note(cli: CommandLine, job: str) -> None:
    """Of a record that is executed by its own answers no time is asked."""
    over = ("--budget", "deadline=2020-01-01T00:00:00Z")
    told = "the deadline 2020-01-01T00:00:00+00:00 has passed: it ends the run as it begins\n"
    name = f"late-{job.partition('/')[0]}"
    done = cli("fork", f"{job}@3", "--as", name, *over)
    assert (done.code, told in done.err) == (3, True)
    frozen = cli("replay", job, "--from", "3", "--mode", "reexecute", "--frozen", *over)
    assert (frozen.code, frozen.err) == (0, "")


def test_a_changed_file_makes_its_readers_diverge(cli: CommandLine, job: str) -> None:
    """Exit code 4, and the first divergence is the cause."""
    cli.write("ws/data.txt", "other\n")
    done = cli("replay", job, "--from", "1", "--mode", "reexecute")
    assert done.code == 4
    assert "2 of 5 statements diverge" in done.out
    told = cli("divergences", job)
    assert told.code == 4
    first = [line.strip() for line in told.out.splitlines()[1:4]]
    assert first == ["first: statement 2, effect result 0 open data.txt:", "- data", "+ other"]
    listed = cli("divergences", job, "--json").json()["divergences"]
    assert (listed[0]["recorded_text"], listed[0]["now_text"]) == ("data\n", "other\n")
    assert {one["turn"] for one in listed} == {2, 4}
    oldest = cli("log", job, "--graph", "--json").json()["runs"][0]["run"]
    assert cli("divergences", job, "--run", oldest).out.endswith("no replay\n")
    compared = cli("compare", job, "--run", oldest, job, "--other-run", "", "--json")
    assert compared.code == 2


def test_an_edited_statement_and_time_travel(cli: CommandLine, job: str) -> None:
    """The statement of the file runs in place of the recorded one; what stood before it is told
    from the archive.
    """
    edit = cli.write("edit.py", "n = 40\n")
    done = cli("replay", job, "--from", "3", "--edit", edit, "--json")
    assert (done.code, done.json()[0]["status"]) == (0, "succeeded")
    assert (
        cli("show", f"{job}@3", "--part", "statement", "--json").json()["statement"]["statement"]
        == "n = 40\n"
    )
    ended = cli("compare", job, "--other-run", _oldest(cli, job), "--json").json()
    assert [side["result"] for side in ended["sides"]] == [{"n": 40}, {"n": 2}]
    assert (
        ended["shared_turns"],
        ended["first_other_statement"],
        ended["first_other_execution"],
    ) == (2, 3, 3)
    then = cli("show", f"{job}@4", "--part", "namespace", "--json").json()["namespace"]
    assert (then["n"]["repr"], then["text"]["size"]) == ("40", 5)
    before = cli("show", f"{job}@4", "--part", "namespace", "--run", _oldest(cli, job)).out
    assert "n: int = 2  (changed: n)\n" in before
    assert "data.txt" in cli("show", f"{job}@5", "--part", "nodes").out


def test_forks_run_side_by_side(cli: CommandLine, job: str) -> None:
    """Each is a job of its own with the other's steps before it; the original is left as it was."""
    before = cli("log", job, "--json").out
    edit = cli.write("edit.py", "n = 7")
    done = cli("fork", f"{job}@3", "--as", "b", "--count", "2", "--edit", edit, "--json")
    assert (done.code, [one["status"] for one in done.json()]) == (0, ["succeeded"] * 2)
    assert cli("log", job, "--json").out == before
    batch = job.partition("/")[0]
    for name in (f"{batch}/b-1", f"{batch}/b-2"):
        found = cli("compare", job, name, "--json").json()
        assert (found["shared_turns"], found["sides"][1]["result"]) == (2, {"n": 7})
        assert cli("verify", name).code == 0
    assert f"fork of {job} from statement 3" in cli("log", f"{batch}/b-1", "--graph").out
    again = cli("fork", f"{job}@3", "--as", "b-1")
    assert (again.code, f"b-1 already, a fork of {job}@3 with other options" in again.err) == (
        2,
        True,
    )
    run = cli("log", f"{batch}/b-1", "--graph", "--json").json()["runs"]
    same = cli("fork", f"{job}@3", "--as", "b-1", "--edit", edit)
    assert (same.code, f"(rerun): is there already, run {run[0]['run']}\n" in same.out) == (0, True)
    assert cli("log", f"{batch}/b-1", "--graph", "--json").json()["runs"] == run
    zero = cli("fork", f"{job}@0", "--as", "zero")
    assert (zero.code, "names no statement" in zero.err) == (2, True)


def test_of_several_forks_none_begins_where_one_cannot(cli: CommandLine, job: str) -> None:
    """The second of them is another job: the first would wait for a worker, and nobody knew."""
    edit = cli.write("edit.py", "n = 7")
    assert cli("fork", f"{job}@3", "--as", "b-2", "--edit", edit).code == 0
    refused = cli("fork", f"{job}@3", "--as", "b", "--count", "2")
    assert (refused.code, "b-2 already, a fork of" in refused.err) == (2, True)
    assert [row["id"] for row in cli("ls", job.partition("/")[0], "--json").json()] == ["a", "b-2"]
    # Given as before, that one is followed beside the other.
    both = cli("fork", f"{job}@3", "--as", "b", "--count", "2", "--edit", edit)
    assert (both.code, both.out.count("is there already")) == (0, 1)


def test_a_message_and_another_model_from_n_on(cli: CommandLine) -> None:
    """The message is shown at N, the model is called from N on."""
    cli.write("m.py", FOLLOWING)
    file = cli.jobs("id: m, model: scripted/m.py", batch="replay-message")
    assert cli("run", file).code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cli.path)
        done = cli("replay", "replay-message/m", "--from", "3", "--message", "stop now", "--json")
        assert (done.code, done.json()[0]["turns"]) == (0, 3)
        cli.write("other.json", script("n = 0", "finish('other')"))
        other = cli(
            "replay", "replay-message/m", "--from", "2", "--model", "scripted/other.json", "--json"
        )
    assert (other.code, other.json()[0]["turns"]) == (0, 2)
    shown = cli("show", "replay-message/m@2", "--part", "request", "--json")
    assert shown.code == 0
    budget = cli(
        "replay",
        "replay-message/m",
        "--from",
        "1",
        "--run",
        _oldest(cli, "replay-message/m"),
        "--budget",
        "turns=2",
    )
    assert budget.code == 3


def test_a_record_that_a_budget_cuts_short(cli: CommandLine, job: str) -> None:
    """Nothing differs, and the end is a budget's, as it is for ``run``."""
    frozen = ("--mode", "reexecute", "--frozen")
    done = cli("replay", job, "--from", "2", *frozen, "--budget", "turns=3")
    assert (done.code, f"{job}: no divergence in 2 statements" in done.out) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "9"), "has no statement 9: they are numbered 1 to 5"),
        (("--from", "2", "--message", " "), "expected a message that says something"),
        (("--from", "2", "--frozen"), "--frozen follows the record"),
        (
            ("--from", "2", "--mode", "reexecute", "--message", "x"),
            "--message leads away from the record",
        ),
        (("--from", "2", "--budget", "turns"), "expected limits such as"),
        (("--from", "2", "--budget", "turns=0"), "--budget"),
        (("--from", "2", "--model", "scripted/none.json"), "expected the file of a script"),
        (("--from", "2", "--model", "opanai/gpt-5"), "--model: litellm knows no provider"),
        (("--from", "2", "--edit", "none.py"), "cannot be read: No such file"),
        (("--from", "2", "--edit", "bad.py"), "bad.py: line 2"),
        (("--from", "2", "--run", "zzz"), "has no run 'zzz'"),
    ],
)
def test_what_cannot_be_replayed_is_one_error(
    cli: CommandLine,
    ended: str,
    arguments: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit code 2, one line, and no run is made."""
    monkeypatch.chdir(cli.path)
    cli.write("bad.py", "n = 1\nif n\n")
    before = cli("log", ended, "--graph").out
    done = cli("replay", ended, *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert cli("log", ended, "--graph").out == before


@pytest.fixture(scope="module")
def ended_batch() -> dict[str, str]:
    """The one job of the tests of errors, once it is run."""
    return {}


@pytest.fixture
def ended(cli: CommandLine, ended_batch: dict[str, str], tmp_path: Path) -> str:
    """A job that has ended, the same for every test of errors."""
    if not ended_batch:
        cli.write("ws/data.txt", "data\n")
        cli.write("a.json", json.dumps([{"code": code} for code in STATEMENTS]))
        assert (
            cli("run", cli.jobs("id: a, model: scripted/a.json", batch="replay-errors")).code == 0
        )
        ended_batch["job"] = "replay-errors/a"
    return ended_batch["job"]


def _oldest(cli: CommandLine, job: str) -> str:
    runs = cli("log", job, "--graph", "--json").json()["runs"]
    return str(runs[0]["run"])


def test_a_run_says_where_a_replay_goes_on(cli: CommandLine) -> None:
    """One that nobody has worked on yet: behind the turn before the statement to which it was taken
    back, the last time.
    """
    cli.write("a.json", script("x = 1", "y = 2", "z = 3", "finish(x + y + z)"))
    file = cli.jobs("id: a, model: scripted/a.json", batch="going-on")
    assert cli("run", file).code == 0
    for start, turn in ((3, 2), (2, 1)):
        assert cli("replay", "going-on/a", "--from", str(start), "--detach").code == 0
        planned = cli("run", file, "--dry-run")
        assert (planned.code, planned.err) == (0, "")
        assert planned.out.startswith(f"batch going-on: 1 resumed at turn {turn} (")
