"""``workspace apply``: what a job changed onto the user's directory, three-way, never silently."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runtime.archive.stores import open_store
from tests.cli.command_line import ROOT, CommandLine
from tests.cli.terminal import on_a_terminal
from tests.git.jobs import What, hands_job, written_tree


@pytest.fixture
def mine(cli: CommandLine, tmp_path: Path) -> Path:
    """A directory as the job ``one`` found it."""
    target = tmp_path / "mine"
    assert cli("workspace", "export", "one@0", target).code == 0
    return target


def test_an_untouched_directory_becomes_the_jobs(
    cli: CommandLine, mine: Path, tmp_path: Path
) -> None:
    """Every kind of change arrives; a second time there is nothing to do."""
    assert cli("workspace", "export", "one", tmp_path / "theirs").code == 0
    before = written_tree(mine)
    shown = cli("workspace", "apply", "one", "--to", mine, "--dry-run")
    assert (shown.code, written_tree(mine)) == (0, before)
    assert shown.out.splitlines()[1:] == [
        "M caf\\xe9.txt",
        "M data.bin",
        "A empty",
        "D gone.txt",
        "M link",
        "A new",
        "A new/n.txt",
        "M pkg/a.py",
        "D pkg/b.py",
        "A pkg/moved.py",
        "M private",
        "M run.sh",
    ]
    done = cli("workspace", "apply", "one", "--to", mine, "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, f"12 paths written in {mine}")
    assert written_tree(mine) == written_tree(tmp_path / "theirs")
    again = cli("workspace", "apply", "one", "--to", mine, "--yes", "--json").json()
    assert (again["paths"], again["applied"]) == ([], False)


def test_changes_in_other_places_stay(cli: CommandLine, mine: Path) -> None:
    """The user's lines, modes and files stay beside the job's; a .git is not looked at. A second
    time there is nothing to do.
    """
    (mine / "pkg/a.py").write_text("one\ntwo\nthree\nfour\nfive\nsix\nseven\nEIGHT\n")
    (mine / "pkg/a.py").chmod(0o755)
    (mine / "own.txt").write_text("own\n")
    (mine / ".git").mkdir()
    (mine / ".git/HEAD").write_text("mine\n")
    done = cli("workspace", "apply", "one", "--to", mine, "--yes")
    assert "M pkg/a.py  (merged with your changes)" in done.out
    found = written_tree(mine)
    assert found["pkg/a.py"] == (0o755, b"one\nTWO\nthree\nfour\nfive\nsix\nseven\nEIGHT\n")
    assert found["own.txt"] == (0o644, b"own\n")
    assert found[".git/HEAD"] == (0o644, b"mine\n")
    again = cli("workspace", "apply", "one", "--to", mine, "--yes", "--json").json()
    assert (again["paths"], again["applied"]) == ([], False)


def test_a_text_with_a_nul_far_down_is_merged_whole(cli: CommandLine, tmp_path: Path) -> None:
    """It is text to git, which looks at the first 8,000 bytes."""
    lines = [b"%d\n" % number for number in range(2_000)]
    base = b"".join([*lines, b"a\0b\n", *lines])
    job = {"long.txt": base.replace(b"\n5\n", b"\nfive\n", 1)}
    hands_job(open_store(str(cli.home / "archive")), {"long.txt": base}, [("x", job)], job="long")
    mine = tmp_path / "mine"
    cli("workspace", "export", "long@0", mine)
    (mine / "long.txt").write_bytes(base + b"own\n")
    assert cli("workspace", "apply", "long", "--to", mine, "--yes").code == 0
    assert (mine / "long.txt").read_bytes() == job["long.txt"] + b"own\n"


def test_changes_in_the_same_places_are_refused(cli: CommandLine, mine: Path) -> None:
    """Nothing is written; with --conflicts, what is text has both between markers, and the rest is
    written but for what cannot be told by lines.
    """
    (mine / "pkg/a.py").write_bytes(b"one\nzwei\nthree\nfour\nfive\nsix\nseven\neight\n")
    (mine / "data.bin").write_bytes(b"\0other")
    (mine / "gone.txt").write_text("changed\n")
    before = written_tree(mine)
    refused = cli("workspace", "apply", "one", "--to", mine, "--yes")
    assert (refused.code, written_tree(mine)) == (1, before)
    assert "C pkg/a.py  (both changed the same lines)" in refused.out
    assert "C data.bin  (both changed it, and it is no text)" in refused.out
    assert "C gone.txt  (the job deleted it, you changed it)" in refused.out
    assert "3 paths changed in" in refused.err
    assert cli("workspace", "apply", "one", "--to", mine, "--yes", "--conflicts").code == 1
    found = written_tree(mine)
    assert found["pkg/a.py"] == (
        0o644,
        b"one\n<<<<<<< yours\nzwei\n=======\nTWO\n>>>>>>> the job's\n"
        b"three\nfour\nfive\nsix\nseven\neight\n",
    )
    assert found["data.bin"] == before["data.bin"]
    assert found["gone.txt"] == before["gone.txt"]
    assert found["new/n.txt"] == (0o644, b"n")


@pytest.mark.slow
def test_nobody_to_ask(cli: CommandLine, mine: Path) -> None:
    """Without a terminal and without --yes nothing is written."""
    before = written_tree(mine)
    process = cli.start("workspace", "apply", "one", "--to", str(mine))
    done = cli.finished(process)
    assert (done.code, written_tree(mine)) == (2, before)
    assert "there is no terminal to ask on" in done.err
    assert "is not there: name one with --to" in cli("workspace", "apply", "one").err


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "code", "written"), [("y\n", 0, True), ("\n", 0, False)])
def test_a_person_is_asked(
    cli: CommandLine, mine: Path, typed: str, code: int, written: bool
) -> None:
    """On a terminal, after what will change was shown; nothing is done unless they say so."""
    before = written_tree(mine)
    command = [sys.executable, "-m", "holdfast", "workspace", "apply", "one", "--to", str(mine)]
    done, told = on_a_terminal(command, ROOT, typed=typed)
    assert f"Change 12 paths in {mine}? [y/N]: " in told.partition("M run.sh")[2]
    assert (done, written_tree(mine) != before) == (code, written)


def test_a_directory_that_is_not_there_is_refused(cli: CommandLine, tmp_path: Path) -> None:
    """It would get what the job changed, and nothing beside it."""
    (tmp_path / "file").touch()
    for name, why in (("gone", "is not there: 'workspace export' makes it"), ("file", "is no dir")):
        done = cli("workspace", "apply", "one", "--to", tmp_path / name, "--dry-run")
        assert (done.code, done.out, f"{tmp_path / name} {why}" in done.err) == (2, "", True)


def test_nothing_is_written_through_a_link(cli: CommandLine, mine: Path, tmp_path: Path) -> None:
    """A directory that the user made a link of is a conflict, wherever the link leads."""
    (mine / "pkg").rename(tmp_path / "elsewhere")
    (mine / "pkg").symlink_to(tmp_path / "elsewhere")
    before = written_tree(tmp_path / "elsewhere")
    told = cli("workspace", "apply", "one", "--to", mine, "--yes", "--conflicts")
    assert told.code == 1
    assert "C pkg/moved.py  (pkg is no directory here)" in told.out
    assert written_tree(tmp_path / "elsewhere") == before
    assert (mine / "pkg").is_symlink()


@pytest.mark.parametrize(
    ("name", "base", "job"),
    [
        ("filed", {"d/x": b"1", "d/e/y": b"2"}, {"d": b"file"}),
        ("foldered", {"d": b"file"}, {"d": None, "d/x": b"1"}),
        ("unlinked", {"d": ("link", "e"), "e/x": b"1"}, {"d": None, "d/x": b"1"}),
        ("linked", {"d/x": b"1"}, {"d": ("link", "e")}),
        ("emptied", {"d/x": b"1"}, {"d": None}),
    ],
)
def test_files_become_directories_and_back(
    cli: CommandLine, tmp_path: Path, name: str, base: What, job: What
) -> None:
    """Whatever kind a path was and is."""
    hands_job(open_store(str(cli.home / "archive")), base, [("x", job)], job=name)
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    cli("workspace", "export", f"{name}@0", mine)
    cli("workspace", "export", name, theirs)
    assert cli("workspace", "apply", name, "--to", mine, "--yes").code == 0
    assert written_tree(mine) == written_tree(theirs)


@pytest.mark.parametrize("own", ["own.txt", "left.log"])
def test_a_directory_that_holds_something_of_the_users_is_replaced_by_no_file(
    cli: CommandLine, tmp_path: Path, own: str
) -> None:
    """Be it what the job's workspace leaves out. It is told before anything is written."""
    base: What = {"d/x": b"1", "z": b"2"}
    job: What = {"d": b"file", "z": b"3"}
    hands_job(open_store(str(cli.home / "archive")), base, [("x", job)], job=f"filed-{own[:3]}")
    mine = tmp_path / "mine"
    cli("workspace", "export", f"filed-{own[:3]}@0", mine)
    (mine / "d" / own).write_text("mine\n")
    before = written_tree(mine)
    refused = cli("workspace", "apply", f"filed-{own[:3]}", "--to", mine, "--yes")
    assert (refused.code, written_tree(mine)) == (1, before)
    assert "C d  (the directory is not empty here)" in refused.out
    written = cli("workspace", "apply", f"filed-{own[:3]}", "--to", mine, "--yes", "--conflicts")
    assert (written.code, (mine / "z").read_bytes()) == (1, b"3")
    assert (mine / "d" / own).read_text() == "mine\n"
