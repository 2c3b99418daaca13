"""Files that git or a text merge could get wrong: repositories among a job's files, line ends and
encodings.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from runtime.archive.stores import MemoryStore, open_store
from runtime.archive.trees import Trees
from runtime.trees.entries import file_entry
from runtime.trees.tree import Tree
from runtime.workspace.git.differences import differences
from tests.cli.command_line import CommandLine
from tests.git.jobs import hands_job, written_tree


def test_a_repository_among_the_files(cli: CommandLine, tmp_path: Path) -> None:
    """It is a file like others to ls and diff; git's forms and export leave it out and say so, and
    apply leaves the user's alone.
    """
    store = open_store(str(cli.home / "archive"))
    base = {".git/HEAD": b"ref: a\n", "sub/.git/HEAD": b"ref: b\n", "a": b"1\n"}
    after = {".git/HEAD": b"ref: c\n", "sub/.git/HEAD": None, "a": b"2\n"}
    hands_job(store, base, [("x", after), ("y", {".git/new": b"n"})], job="nested")
    told = cli("workspace", "diff", "nested").out
    assert "-ref: a\n+ref: c\n" in told and "b/.git/new" in told
    patch = cli("workspace", "patch", "nested")
    assert ".git" not in patch.out.replace("diff --git", "")
    assert "+2\n" in patch.out
    assert "not in the patch: .git/HEAD is left out: git takes nothing" in patch.err
    mine = tmp_path / "mine"
    cli("workspace", "export", "nested@0", mine, "--repositories")
    applied = cli("workspace", "apply", "nested", "--to", mine, "--yes")
    assert (applied.code, applied.out.splitlines()[1:]) == (0, ["M a", f"1 path written in {mine}"])
    assert applied.err == ".git is left alone: git runs what is set there\n"
    assert (mine / "a").read_bytes() == b"2\n"
    assert (mine / ".git/HEAD").read_bytes() == b"ref: a\n"
    done = cli("workspace", "export", "nested", tmp_path / "repo", "--git")
    assert (done.code, ".git is left out" in done.err) == (0, True)
    log = ["git", "log", "--format=%s"]
    said = subprocess.run(log, cwd=tmp_path / "repo", capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["x", "What the job began with"]


def test_no_repository_of_a_job_is_exported_unasked(cli: CommandLine, tmp_path: Path) -> None:
    """The next git there would run what the job has set, under whatever spelling of the name."""
    store = open_store(str(cli.home / "archive"))
    evil = b"[core]\n\tfsmonitor = touch ran\n"
    after = {".git/config": evil, "sub/.GIT": b"gitdir: ../x\n", "a": b"1\n", ".gitignore": b"\n"}
    hands_job(store, {}, [("x", after)], job="evil")
    done = cli("workspace", "export", "evil", tmp_path / "plain")
    assert done.out == f"hands/evil@1: 2 files, 3 bytes in {tmp_path / 'plain'}\n"
    assert done.err.splitlines() == [
        f"{name} is left out: git runs what is set there; --repositories writes it"
        for name in (".git", "sub/.GIT")
    ]
    written = {".gitignore": (0o644, b"\n"), "a": (0o644, b"1\n"), "sub": 0o755}
    assert written_tree(tmp_path / "plain") == written
    asked = cli("workspace", "export", "evil", tmp_path / "asked", "--repositories")
    assert (asked.code, asked.err) == (0, "")
    assert (tmp_path / "asked/.git/config").read_bytes() == evil
    wrong = cli("workspace", "export", "evil", tmp_path / "git", "--git", "--repositories")
    assert (wrong.code, wrong.err) == (2, "error: --repositories is of a plain DIR\n")


def test_what_git_takes_for_a_repository_is_left_out_too(cli: CommandLine, tmp_path: Path) -> None:
    """Names that lead into a .git on other file systems: git refused the whole tree and the whole
    patch.
    """
    store = open_store(str(cli.home / "archive"))
    own = ("GIT~1", ".git ", ".Git. .", ".git::$INDEX_ALLOCATION", ".g\u200cit", "sub/.git\\x")
    others = ("git~2", ".gitignore", ".git~1", "git~1x", "a\\b", "con")
    hands_job(store, {}, [("x", dict.fromkeys((*own, *others), b"1\n"))], job="alike")
    repository, plain = tmp_path / "repository", tmp_path / "plain"
    done = cli("workspace", "export", "alike", repository, "--git")
    assert (done.code, len(done.err.splitlines())) == (0, len(own))
    status = ["git", "-C", str(repository), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, check=True).stdout == b""
    patch = cli("workspace", "patch", "alike")
    assert len(patch.err.splitlines()) == len(own)
    plain.mkdir()
    apply = ["git", "apply", "-"]
    subprocess.run(apply, cwd=plain, input=patch.out.encode(), check=True)
    expected = dict.fromkeys(others, (0o644, b"1\n"))
    assert written_tree(plain) == expected
    assert cli("workspace", "export", "alike", tmp_path / "files").code == 0
    assert written_tree(tmp_path / "files") == {**expected, "sub": 0o755}


def test_a_link_that_git_refuses_by_its_name_is_left_out(cli: CommandLine, tmp_path: Path) -> None:
    """One called .gitmodules, on whatever file system: git checked nothing out of a repository with
    it, and took nothing of a patch.
    """
    store = open_store(str(cli.home / "archive"))
    names = (
        ".gitmodules",
        "sub/.GitModules",
        "GITMOD~4",
        ".gitmodules .:x",
        "gi7eb~12",
        "GI7EBA~1",
    )
    others = ("gitmod~5", ".gitmodules.x", "gi7eba~12", ".gitignore")
    base = {names[0]: ("link", "a"), "a": b"0\n"}
    after = {**dict.fromkeys((*names[1:], *others), ("link", "a")), "a": b"1\n"}
    modules = {names[0]: b"[core]\n", names[1]: b"[core]\n"}
    hands_job(store, base, [("x", after), ("y", modules)], job="links")
    repository, clone, mine = (tmp_path / name for name in ("repository", "clone", "mine"))
    done = cli("workspace", "export", "links@1", repository, "--git")
    assert done.err.splitlines() == [
        f"{name} is left out: git takes no link that is called .gitmodules"
        for name in sorted(names)
    ]
    for command in (
        ["git", "-C", str(repository), "fsck", "--strict"],
        ["git", "clone", "-q", str(repository), str(clone)],
    ):
        subprocess.run(command, capture_output=True, check=True)
    assert sorted(path.name for path in clone.iterdir()) == sorted([*others, "a", ".git"])
    cli("workspace", "export", "links@0", mine)
    patch = cli("workspace", "patch", "links@1")
    assert patch.err.count("is left out: git takes no link") == len(names) - 1
    subprocess.run(["git", "apply", "-"], cwd=mine, input=patch.out.encode(), check=True)
    assert sorted(path.name for path in mine.iterdir()) == sorted([*others, "a", names[0]])
    # A file of that name is one that git takes.
    files = cli("workspace", "patch", "links@2")
    assert (files.out.count("diff --git"), files.err) == (2, "")


def test_merges_keep_line_ends_and_encodings(cli: CommandLine, tmp_path: Path) -> None:
    """Of both sides, byte for byte, also where the last line has no end."""
    store = open_store(str(cli.home / "archive"))
    base = b"caf\xe9\r\n" + b"b\r\nc\r\nd\r\ne\r\n" + b"\x85\xff last"
    hands_job(store, {"a": base}, [("x", {"a": base.replace(b"b\r", b"\xb2\r")})], job="bytes")
    mine = tmp_path / "mine"
    cli("workspace", "export", "bytes@0", mine)
    (mine / "a").write_bytes(base.replace(b"last", b"l\xe4st"))
    assert cli("workspace", "apply", "bytes", "--to", mine, "--yes").code == 0
    merged = base.replace(b"b\r", b"\xb2\r").replace(b"last", b"l\xe4st")
    assert written_tree(mine) == {"a": (0o644, merged)}


@pytest.mark.parametrize("literal", ["plain", "b\\xff", "b\\xff/below", "b\\\\xff"])
def test_the_table_counts_names_that_look_alike_once_each(literal: str) -> None:
    """A name that is no UTF-8, and another one that reads as that one is shown."""
    told = _table("b\udcff", literal)
    assert " 2 files changed, 2 insertions(+)" in told
    assert " b\\xff " in told


def test_the_table_has_a_line_for_each_name() -> None:
    """Whatever is in a name."""
    told = _table("a | 9 +++\n README.md", "b\x1b[2K\u202e").splitlines()
    assert [line.partition(" | ")[0].strip() for line in told[:2]] == ["a", "b\\u001b[2K\\u202e"]
    assert told[0].startswith(" a | 9 +++\\n README.md")
    assert [line.split(maxsplit=3)[3] for line in told[3:]] == [
        "a | 9 +++\\n README.md",
        "b\\u001b[2K\\u202e",
    ]


def _table(*names: str) -> str:
    """The table of a change that brings files with these names."""
    trees = Trees(MemoryStore())
    content = {name: name.encode(errors="surrogateescape") + b"\n" for name in names}
    empty = trees.write_base(Tree(), content.__getitem__).tree.version
    made = Tree().changed({path: file_entry(data) for path, data in content.items()})
    return differences(trees, empty, trees.write_base(made, content.__getitem__).tree.version).stat


def test_a_name_is_told_on_one_line(cli: CommandLine, tmp_path: Path) -> None:
    """As it is, with escapes: it hides nothing, and is no other file's line."""
    after = {"new\nM README.md": b"1\n", "a\x1b]0;b\x07c": b"2\n"}
    hands_job(open_store(str(cli.home / "archive")), {}, [("x", after)], job="named")
    listed = cli("workspace", "ls", "named").out.splitlines()
    assert [line.split(maxsplit=2)[2] for line in listed[1:-1]] == [
        "a\\u001b]0;b\\u0007c",
        "new\\nM README.md",
    ]
    told = cli("workspace", "apply", "named", "--to", tmp_path, "--dry-run").out.splitlines()
    assert told[1:] == ["A a\\u001b]0;b\\u0007c", "A new\\nM README.md"]
    told = cli("workspace", "diff", "named", "--stat").out
    assert " a\\u001b]0;b\\u0007c" in told and " new\\nM README.md" in told


def test_what_no_patch_tells_is_told_on_one_line(cli: CommandLine) -> None:
    """A line for each, and for programs the names as they are."""
    after = {"new\nM README.md": ("directory", 0o755)}
    hands_job(open_store(str(cli.home / "archive")), {}, [("x", after)], job="empty")
    assert cli("workspace", "diff", "empty").out == "empty directory new\\nM README.md is new\n"
    assert cli("workspace", "diff", "empty", "--stat").out.splitlines()[1:] == [
        "empty directory new\\nM README.md is new"
    ]
    told = cli("workspace", "patch", "empty").err
    assert told == "not in the patch: empty directory new\\nM README.md is new\n"
    rows = cli("workspace", "diff", "empty", "--json").json()
    assert rows["other"] == ["empty directory new\nM README.md is new"]
