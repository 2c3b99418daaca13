"""Directories and globs as sources of views, and files in the states in which they are met."""

from __future__ import annotations

import os
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from activities.contracts import ReadBatch
from activities.workspace import WorkspaceActivities
from runtime.base.digests import digest_bytes
from runtime.base.redaction.rules import Redaction
from runtime.context.sources import ALL_TOKENS, ReadRequest, ReadResult, ReadStatus
from runtime.sources.files import FileSource
from runtime.workspace.files import Limits, Workspace
from runtime.workspace.fingerprints import FingerprintCache


def read(root: Path, path: str, **fields: Any) -> ReadResult:
    """One reading, by a worker that knows nothing yet."""
    redact = fields.pop("redact", Redaction())
    request = ReadRequest(**{"obj_id": "n1", "path": path, "tokens": 400, **fields})
    done = WorkspaceActivities().read_sources(
        ReadBatch(workspace=str(root), requests=(request,), encoding="cl100k_base", redact=redact)
    )
    return done.results[0]


@pytest.fixture
def project(root: Path) -> Path:
    """A small project with what is not looked into."""
    for path, text in {
        "README.md": "# Read me\n",
        "src/a.py": 'class A:\n    """Doc."""\n\n    def f(self): ...\n',
        "src/deep/b.py": "def b(): ...\n",
        "src/deep/c.txt": "words\n",
        ".git/objects/aa/bb": "x",
        ".env": "x",
        "weird[1].txt": "not a pattern",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "link").symlink_to("src/a.py")
    (root / "out").symlink_to("../secret.txt")
    (root / "loop").symlink_to(".")
    return root


class Growing(Workspace):
    """A workspace in which somebody writes to each file while it is read."""

    @contextmanager
    def _file(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        with super()._file(path) as (file, before):
            host = Path(self._root, path)
            host.write_text(host.read_text() + "+")
            yield file, before


def test_a_directory_shows_its_entries(project: Path) -> None:
    """Directories with a slash, files with their sizes, links as what they lead to inside."""
    shown = read(project, ".")
    assert shown.text.splitlines() == [
        ".env  1 bytes",
        ".git/",
        "README.md  10 bytes",
        "link  8 bytes",
        "loop/  link",
        "out  broken link",
        "src/",
        "weird[1].txt  13 bytes",
    ]
    assert (shown.status, shown.size, shown.total_lines) == (ReadStatus.OK, 8, 8)


def test_the_structure_of_a_directory_is_its_tree(project: Path) -> None:
    """Each directory with how many files of which kinds; links and what holds no sources are not
    entered.
    """
    assert read(project, ".", lod=1).text.splitlines() == [
        "0: ./ 5 files: 2 others, 1 .env, 1 .md, 1 .txt",
        "0:   .git/ …",
        "0:   src/ 1 file: 1 .py",
        "0:     deep/ 2 files: 1 .py, 1 .txt",
    ]


def test_a_glob_shows_the_files_that_match(project: Path) -> None:
    """In the order of their paths; hidden files only where the pattern names them."""
    assert read(project, "**/*.py").text.splitlines() == [
        "src/a.py  46 bytes",
        "src/deep/b.py  13 bytes",
    ]
    assert read(project, "*").text.splitlines() == [
        "README.md  10 bytes",
        "link  8 bytes",
        "weird[1].txt  13 bytes",
    ]
    assert read(project, ".e*").text == ".env  1 bytes"
    assert read(project, "src/**").total_lines == 3


def test_the_structure_of_a_glob_is_that_of_its_files(project: Path) -> None:
    """Each file, and beneath it what it defines, with the lines of that file."""
    assert read(project, "src/**/*.py", lod=1).text.splitlines() == [
        "0: src/a.py  46 bytes",
        "0:   class A  # Doc.",
        "3:     def f(self)",
        "1: src/deep/b.py  13 bytes",
        "0:   def b()",
    ]


def test_a_pattern_of_too_many_files_is_a_cut_listing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how many are left out, at both levels; one more file is another listing."""
    monkeypatch.setattr("runtime.workspace.glob.MAX_FOUND", 3)
    for name in "abcde":
        (root / f"{name}.txt").write_text("x")
    said = "[the first 3 files; 2 more match: narrow the pattern]"
    assert read(root, "*.txt").text.splitlines() == [
        said,
        *(f"{name}.txt  1 bytes" for name in "abc"),
    ]
    assert read(root, "*.txt", lod=1).text.splitlines()[:2] == [f"0: {said}", "1: a.txt  1 bytes"]
    before = read(root, "*.txt")
    (root / "f.txt").write_text("x")
    assert "; 3 more match: " in read(root, "*.txt", known=before.basis).text


def test_a_pattern_that_would_look_at_too_much_says_where_it_stopped(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found until then is listed."""
    monkeypatch.setattr("runtime.workspace.glob.MAX_VISITED", 4)
    for place in "abc":
        (root / place).mkdir()
        for name in "xy":
            (root / place / name).write_text("1")
    said, *files = read(root, "*/*").text.splitlines()
    assert (
        said == f"[the first {len(files)} files; not all directories were looked into: narrow the"
        " pattern]"
    )
    assert 2 <= len(files) < 6


def test_a_name_that_exists_is_no_pattern(project: Path) -> None:
    """Brackets in a file's name are its own."""
    assert read(project, "weird[1].txt").text == "not a pattern"


def test_a_pattern_that_finds_nothing_or_leads_out_is_an_error(project: Path) -> None:
    """As for a file: the model is told."""
    assert read(project, "*.rs").error_type == "FileNotFoundError"
    assert read(project, "src/../../*").error_type == "PermissionError"
    assert read(project, "../*").error_type == "PermissionError"
    assert read(project, "/etc/*").error_type == "PermissionError"


def test_a_change_of_a_file_is_a_change_of_what_lists_it(project: Path) -> None:
    """Also if its size stays: then the text is the same, and the fingerprint is another."""
    for path in ("src", "src/*.py"):
        before = read(project, path)
        assert read(project, path, known=before.basis).status is ReadStatus.UNCHANGED
        os.utime(project / "src/a.py", ns=(1, 1 + (project / "src/a.py").stat().st_mtime_ns))
        after = read(project, path, known=before.basis)
        assert (after.status, after.text) == (ReadStatus.OK, before.text)


def test_secrets_in_the_files_of_a_glob_are_masked_in_its_outline(root: Path) -> None:
    """An outline is made of text, which is masked first."""
    (root / "a.py").write_text('KEY = "very-secret-value"\n')
    shown = read(root, "*.py", lod=1, redact=Redaction(patterns=("very-[a-z-]+",)))
    assert "very-secret" not in shown.text and "KEY = " in shown.text


@pytest.mark.slow
def test_a_directory_with_100_000_files_is_listed(root: Path) -> None:
    """The answer holds what the budget allows, and how many lines there are."""
    (root / "many").mkdir()
    directory = os.open(root / "many", os.O_RDONLY)
    for number in range(100_000):
        os.close(os.open(f"{number:06d}", os.O_CREAT | os.O_WRONLY, dir_fd=directory))
    os.close(directory)
    shown = read(root, "many", pos="99990", tokens=100)
    assert (shown.total_lines, shown.last_line, shown.tokens <= 100) == (100_000, 100_000, True)


def test_listings_are_bounded_by_what_must_be_looked_at(project: Path) -> None:
    """Beyond the bound there is an error that says what helps, and no part of an answer."""
    few = WorkspaceActivities(limits=Limits(visited=5))
    requests = (
        ReadRequest(obj_id="a", path=".", tokens=100),
        ReadRequest(obj_id="b", path="**", tokens=100),
    )
    results = few.read_sources(
        ReadBatch(workspace=str(project), requests=requests, encoding="cl100k_base")
    ).results
    assert [one.error_message for one in results] == [
        "[Errno 27] More than 5 entries; use a pattern, or a smaller directory: '.'",
        "[Errno 27] More than 5 entries; use a pattern, or a smaller directory: '.'",
    ]


def test_a_file_of_5_gb_shows_its_ends(root: Path) -> None:
    """In bounded memory, with a line that says how much is missing between, and whatever the
    position.
    """
    with (root / "huge.log").open("wb") as file:
        file.write(b"first line\n" * 500_000)
        file.seek(5_000_000_000)
        file.write(b"\n" + b"a middle line\n" * 400_000 + b"last line\n")
    tracemalloc.start()
    begin, end = (
        read(root, "huge.log", tokens=20),
        read(root, "huge.log", pos="999999999", tokens=20),
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert begin.text.startswith("first line\nfirst line\n")
    assert end.text.endswith("a middle line\nlast line")
    assert begin.size == 5_005_600_011
    assert (
        begin.note == "the ends of a file of 5,005,600,011 bytes; lines are counted in what is here"
    )
    assert read(root, "huge.log", pos="/[… ", tokens=40).text.startswith(
        "[… 4,997,211,413 bytes are not shown …]"
    )
    assert peak < 60_000_000


def test_a_log_that_grows_by_a_megabyte_a_second_is_read(root: Path) -> None:
    """Each reading is whole lines of the file as it was."""
    log, stop = root / "grows.log", threading.Event()
    log.write_text("begin\n" * 1000)

    def grow() -> None:
        with log.open("a") as file:
            while not stop.wait(0.001):
                file.write("more of it\n" * 100)
                file.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        shown = [read(root, "grows.log", pos="9999999", tokens=50) for _ in range(20)]
    finally:
        stop.set()
        writer.join()
    assert {one.status for one in shown} == {ReadStatus.OK}
    assert {line for one in shown for line in one.text.splitlines()} <= {"begin", "more of it"}


def test_a_file_that_is_written_while_it_is_read_says_so(root: Path) -> None:
    """After three attempts it is shown as it was found, and what is shown is what was hashed."""
    (root / "a.txt").write_text("half")
    workspace = Growing(str(root))
    opened = FileSource(workspace, "a.txt", FingerprintCache(), lambda: 0).open()
    assert (opened.data, opened.note) == (b"half+++", "it was being written while it was read")
    assert opened.fingerprint == digest_bytes(opened.data)


def test_a_file_that_is_replaced_after_its_fingerprint_was_asked_for_is_read_as_it_is_then(
    root: Path,
) -> None:
    """The fingerprint that comes back is that of the bytes that were read, never of those
    before.
    """
    (root / "a.txt").write_text("old\n")
    other = read(root, "a.txt")

    class Replaced(WorkspaceActivities):
        """Replaces the file between the look at it and the read."""

        def _sources(self, batch: ReadBatch, workspace: Workspace) -> Any:
            sources = super()._sources(batch, workspace)
            real = sources.workspace.content

            def content(path: str) -> Any:
                (root / "b.txt").write_text("new\n")
                (root / "b.txt").replace(root / "a.txt")
                return real(path)

            sources.workspace.content = content
            return sources

    request = ReadRequest(obj_id="n1", path="a.txt", tokens=ALL_TOKENS, known=other.basis)
    [shown] = (
        Replaced()
        .read_sources(ReadBatch(workspace=str(root), requests=(request,), encoding="cl100k_base"))
        .results
    )
    (root / "a.txt").write_text("new\n")
    assert (shown.text, shown.fingerprint) == ("new", read(root, "a.txt").fingerprint)


def test_what_vanishes_between_look_and_read_is_an_error_of_the_source(root: Path) -> None:
    """A directory whose entry goes is listed without it; a file that goes is not found."""
    (root / "gone.txt").write_text("x")
    workspace = Workspace(str(root))
    (root / "gone.txt").unlink()
    with pytest.raises(FileNotFoundError):
        workspace.content("gone.txt")
    assert read(root, "gone.txt").error_type == "FileNotFoundError"
