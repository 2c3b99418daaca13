"""``workspace ls``, ``cat``, ``diff``, ``patch`` and ``export``: versions of a job's files,
read.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runtime.archive.stores import open_store
from tests.cli.command_line import ROOT, CommandLine
from tests.git.conftest import BASE, STATEMENTS
from tests.git.jobs import What, hands_job, written_tree


def test_ls_lists_each_version(cli: CommandLine) -> None:
    """With modes, targets and names that are no UTF-8; a path names what is at and beneath it."""
    told = cli("workspace", "ls", "hands/one@3").out.splitlines()
    assert told[0].startswith("hands/one@3  sha256:")
    assert [line[:10] + line[24:] for line in told[1:-1]] == [
        "-rw-r--r--  caf\\xe9.txt",
        "-rw-r--r--  data.bin",
        "drwxr-xr-x  empty",
        "lrwxrwxrwx  link -> pkg/b.py",
        "-rw-r--r--  new/n.txt",
        "-rw-r--r--  pkg/a.py",
        "-rw-r--r--  pkg/b.py",
        "-rw-r-----  private",
        "-rw-r--r--  run.sh",
    ]
    assert told[-1] == "7 files, 176 bytes"
    assert "gone.txt" in cli("workspace", "ls", "one@2").out
    found = cli("workspace", "ls", "one", "pkg", "--json").json()
    assert [entry["path"] for entry in found["entries"]] == ["pkg/a.py", "pkg/moved.py"]
    assert (found["turn"], found["entries"][0]["size"]) == (5, 40)


def printed(cli: CommandLine, *arguments: str) -> tuple[bytes, str]:
    """What a command printed, byte for byte, and what it said on stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "workspace", *arguments],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return done.stdout, done.stderr.decode()


def test_cat_gives_the_bytes(cli: CommandLine) -> None:
    """Byte for byte; links are followed as they were in that version."""
    assert printed(cli, "cat", "one@5", "caf\udce9.txt")[0] == b"latin\xe9\nmore\n"
    assert cli("workspace", "cat", "one@2", "link").out.startswith("one\nTWO\n")
    assert cli("workspace", "cat", "one@3", "link").out.startswith("alpha\n")


def test_what_is_not_there_is_told(cli: CommandLine) -> None:
    """A turn, a path, a directory, a job without a workspace: one error, exit code 2."""
    for arguments, words in [
        (("ls", "one@9"), "has no version of its workspace after turn 9: it has those of turns 0"),
        (("ls", "one", "no"), "the version has no 'no'"),
        (("cat", "one", "pkg"), "pkg is a directory"),
        (("cat", "one@3", "gone.txt"), "gone.txt: No such file or directory"),
        (("cat", "one", "../x"), "leads out of the workspace"),
        (("diff", "one@4..2"), "turn 4 is after turn 2"),
        (("diff", "one@0"), "no statement is before turn 1"),
        (("diff", "one@x"), "is no JOB[@A[..B]]"),
        (("ls", "none"), "none"),
    ]:
        done = cli("workspace", *arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert words in done.err


@pytest.mark.slow
def test_diff_tells_all_that_changed(cli: CommandLine) -> None:
    """Texts by lines; binary files, modes, links, renames, and what git has no words for."""
    told = printed(cli, "diff", "one")[0].decode("utf-8", "replace")
    for words in [
        "-two\n+TWO\n",
        "rename from pkg/b.py\nrename to pkg/moved.py\n",
        "-gamma\n+GAMMA\n+and more\n",
        "deleted file mode 100644\nindex",
        "Binary files a/data.bin and b/data.bin differ",
        "old mode 100755\nnew mode 100644",
        "-pkg/a.py\n\\ No newline at end of file\n+pkg/b.py\n",
        "mode of private: 600 -> 640\n",
        "empty directory empty is new\n",
        '"a/caf\\351.txt"',
    ]:
        assert words in told, words
    one = cli("workspace", "diff", "one@4", "--json").json()
    assert (one["first"], one["last"], one["other"]) == (3, 4, [])
    assert [(f["status"], f["was"], f["path"]) for f in one["files"]] == [
        ("R", "pkg/b.py", "pkg/moved.py")
    ]
    assert cli("workspace", "diff", "one@2").out == ""
    assert cli("workspace", "diff", "one@2", "--stat").out == "no file changed\n"
    table = cli("workspace", "diff", "one", "--stat").out
    assert "pkg/{b.py => moved.py} | 3 ++-" in table
    assert " caf\\xe9.txt            | 1 +\n" in table


@pytest.mark.slow
@pytest.mark.parametrize("turns", ["", "@0..1", "@3", "@1..4"])
def test_the_patch_leads_git_to_the_same_files(
    cli: CommandLine, tmp_path: Path, turns: str
) -> None:
    """``git apply`` makes the later version of the earlier one, binary files and links too."""
    first, last = {"": (0, 5), "@0..1": (0, 1), "@3": (2, 3), "@1..4": (1, 4)}[turns]
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    assert cli("workspace", "export", f"one@{first}", mine).code == 0
    assert cli("workspace", "export", f"one@{last}", theirs).code == 0
    patch, said = printed(cli, "patch", f"one{turns}")
    (tmp_path / "p").write_bytes(patch)
    subprocess.run(["git", "init", "-q", mine], check=True)
    subprocess.run(["git", "apply", "--binary", tmp_path / "p"], cwd=mine, check=True)
    expected = written_tree(theirs)
    found = {k: v for k, v in written_tree(mine).items() if not k.startswith(".git")}
    if expected.pop("empty", None) and first < 3:
        assert "not in the patch: empty directory empty is new" in said
        expected["private"] = (0o600, b"p\n")
        assert "not in the patch: mode of private: 600 -> 640" in said
    found.pop("empty", None)
    assert found == expected


def applied_patch(cli: CommandLine, path: Path, base: What, changes: What) -> bytes:
    """The patch of a job that made these changes, of its archive in ``path``; git makes the job's
    files of those that it began with.
    """
    hands_job(open_store(str(path / "archive")), base, [("sh('x')", changes)])
    mine, theirs = path / "mine", path / "theirs"
    assert cli("workspace", "export", "one@0", mine).code == 0
    assert cli("workspace", "export", "one", theirs).code == 0
    patch, _ = printed(cli, "patch", "one")
    subprocess.run(["git", "apply"], cwd=mine, check=True, input=patch)
    assert written_tree(mine) == written_tree(theirs)
    return patch


def test_the_patch_has_a_binary_file_that_was_moved_or_made_a_program(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes are the same: git is told the name and the mode alone, and takes that."""
    base: What = {"a.bin": b"\0a", "b": b"\0b", "c": b"\0c"}
    moved: What = {
        "a.bin": None,
        "new.bin": b"\0a",
        "b": ("mode", (0o755, b"\0b")),
        "c": None,
        "d": ("mode", (0o755, b"\0c")),
    }
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    patch = applied_patch(cli, tmp_path, base, moved)
    assert b"Binary files" not in patch + printed(cli, "diff", "one")[0]


def test_the_patch_has_a_file_that_became_a_link(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a link that became a file: each is one change, deleted and new as git has it, and no
    rename of one another.
    """
    base: What = {"a": b"one\ntwo\n", "b": ("link", "x"), "c": b"three\n"}
    changed: What = {"a": ("link", "c"), "b": b"one\ntwo\n"}
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    patch = applied_patch(cli, tmp_path, base, changed)
    assert patch == printed(cli, "diff", "one")[0]
    files = cli("workspace", "diff", "one", "--json").json()["files"]
    assert [(f["status"], f["path"], f["added"], f["deleted"]) for f in files] == [
        ("T", "a", 1, 2),
        ("T", "b", 2, 1),
    ]


def test_export_writes_a_version(cli: CommandLine, tmp_path: Path) -> None:
    """All of it, into a directory that is empty or not there; another is left alone."""
    target = tmp_path / "out" / "deep"
    assert cli("workspace", "export", "one@0", target).code == 0
    found = written_tree(target)
    assert found["caf\udce9.txt"] == (0o644, b"latin\xe9\n")
    assert found["run.sh"] == (0o755, b"#!/bin/sh\n")
    assert found["private"] == (0o600, b"p\n")
    assert found["link"] == "pkg/a.py"
    assert len(found) == len(BASE) + 1
    refused = cli("workspace", "export", "one", target)
    assert (refused.code, written_tree(target)) == (2, found)
    assert "is not empty" in refused.err
    assert len(STATEMENTS) == cli("workspace", "ls", "one", "--json").json()["turn"]
