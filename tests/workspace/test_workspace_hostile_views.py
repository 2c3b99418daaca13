"""Views of what is in a bad state: unreadable, oddly named, a single line of a gigabyte, a log that
runs away, a file half written.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from activities.contracts import ReadBatch
from activities.workspace import WorkspaceActivities
from runtime.context.sources import ReadRequest, ReadResult, ReadStatus
from runtime.sources.files import ATTEMPTS, FileSource
from runtime.workspace.files import Limits, Workspace
from runtime.workspace.fingerprints import FingerprintCache

NOBODY = 65534
ENDS = 2 * Limits().end_bytes


def read(root: Path, path: str, **fields: object) -> ReadResult:
    """One reading, by a worker that knows nothing yet."""
    request = ReadRequest.model_validate({"obj_id": "n1", "path": path, "tokens": 60, **fields})
    batch = ReadBatch(workspace=str(root), requests=(request,), encoding="cl100k_base")
    return WorkspaceActivities().read_sources(batch).results[0]


@contextmanager
def traced() -> Iterator[list[int]]:
    """The most memory that Python used meanwhile, in bytes, once it is over."""
    peaks: list[int] = []
    tracemalloc.start()
    yield peaks
    peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()


@contextmanager
def without_privileges() -> Iterator[None]:
    """This thread's look at files, as a user who owns none; root is refused nothing."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.setfsuid(NOBODY)
    try:
        assert libc.setfsuid(-1) == NOBODY
        yield
    finally:
        libc.setfsuid(0)


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A workspace in a directory that others may enter, as a user's own one for temporary files
    need not be.
    """
    root = Path(tempfile.mkdtemp(dir="/tmp"))
    root.chmod(0o755)
    yield root
    (root / "closed").chmod(0o755)
    shutil.rmtree(root)


def test_what_may_not_be_read_is_an_error_and_the_rest_is_shown(open_root: Path) -> None:
    """A file, a directory that may not be listed, and the tree around it."""
    (open_root / "secret.txt").write_text("x")
    (open_root / "secret.txt").chmod(0)
    (open_root / "closed").mkdir()
    (open_root / "closed" / "in.txt").write_text("x")
    (open_root / "closed").chmod(0)
    (open_root / "plain.txt").write_text("plain\n")
    with without_privileges():
        refused = read(open_root, "secret.txt")
        assert (refused.error_type, refused.error_message) == (
            "PermissionError",
            "[Errno 13] Permission denied: 'secret.txt'",
        )
        assert read(open_root, "closed").error_type == "PermissionError"
        assert read(open_root, "closed/in.txt").error_type == "PermissionError"
        assert read(open_root, ".").text.splitlines() == [
            "closed/",
            "plain.txt  6 bytes",
            "secret.txt  1 bytes",
        ]
        assert read(open_root, ".", lod=1).text.splitlines() == [
            "0: ./ 2 files: 2 .txt",
            "0:   closed/ cannot be listed: Permission denied",
        ]
        assert read(open_root, "*.txt", lod=1).text.splitlines()[:2] == [
            "0: plain.txt  6 bytes",
            "1: secret.txt  1 bytes",
        ]
        assert read(open_root, "plain.txt").text == "plain"


def test_a_name_that_is_no_utf8_can_be_viewed_by_the_name_that_is_listed(root: Path) -> None:
    """The listing's own spelling leads back to the file, in a directory and in a glob."""
    Path(os.fsdecode(bytes(root) + b"/caf\xe9.txt")).write_text("latin-1 name\n")
    listed = read(root, ".").text.partition("  ")[0]
    assert listed.encode() and read(root, listed).text == "latin-1 name"
    assert read(root, "*.txt").text.partition("  ")[0] == listed


def test_one_line_of_a_gigabyte_shows_its_ends(root: Path) -> None:
    """No line break anywhere: of the file 8 MB are read, whatever is asked for."""
    with (root / "line.json").open("wb") as file:
        file.write(b"[1, 2, " * 1_000_000)
        file.seek(1_000_000_000)
        file.write(b"3, 4, " * 1_000_000 + b"5]")
    with traced() as peaks:
        begin = read(root, "line.json")
        end = read(root, "line.json", pos="9999")
        structure = read(root, "line.json", lod=1)
    assert begin.text.startswith("[1, 2, [1, 2, ") and begin.text.endswith("[cut]")
    assert end.last_line == end.total_lines == 3
    assert (
        begin.note == "the ends of a file of 1,006,000,002 bytes; lines are counted in what is here"
    )
    assert structure.status is ReadStatus.OK and structure.tokens <= 60
    assert peaks[0] < 6 * ENDS


def test_a_file_of_300_000_lines_is_viewed_anywhere(root: Path) -> None:
    """At its beginning, in the middle, at its end, at a text, and as structure."""
    (root / "long.txt").write_text("".join(f"line {n}\n" for n in range(300_000)))
    with traced() as peaks:
        for pos, first in {"0": 0, "150000": 150_000, "/line 299900": 299_900}.items():
            shown = read(root, "long.txt", pos=pos)
            assert (shown.first_line, shown.total_lines) == (first, 300_000)
            assert shown.text.splitlines()[0] == f"line {first}"
        assert read(root, "long.txt", pos="999999").last_line == 300_000
        assert read(root, "long.txt", lod=1).tokens <= 60
    assert peaks[0] < 20 * (root / "long.txt").stat().st_size


@pytest.mark.slow
def test_a_log_that_grows_past_the_bound_is_read_in_bounded_memory(root: Path) -> None:
    """It grows by many megabytes while it is read again and again; each reading is whole lines, but
    for the last one, which may still be written.
    """
    log, grown, stop = root / "grows.log", threading.Event(), threading.Event()
    line = b"a line of the log, of which there are many\n"
    log.write_bytes(line * 4_000_000)  # 172 MB: more than is read whole

    def grow() -> None:
        with log.open("ab", buffering=0) as file:
            while not stop.wait(0.01):
                file.write(line * 25_000)
                grown.set()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        assert grown.wait(30)
        with traced() as peaks:
            shown = [read(root, "grows.log", pos="999999999") for _ in range(4)]
    finally:
        stop.set()
        writer.join()
    assert {one.status for one in shown} == {ReadStatus.OK}
    written = line.decode().strip()
    for one in shown:
        *whole, last = one.text.splitlines()
        assert {*whole} == {written}
        # The kernel shows a write before all of it is there: the file may end within a line.
        assert written.startswith(last)
    assert all(one.last_line == one.total_lines for one in shown)
    assert len({one.fingerprint for one in shown}) > 1
    assert peaks[0] < 12 * ENDS


def test_a_file_that_is_written_again_and_again_is_read_three_times_at_most(root: Path) -> None:
    """Then it is shown as it was found, with a note; what was read is what is told."""
    (root / "busy.txt").write_text("0\n")
    reads: list[str] = []

    class Busy(Workspace):
        """Somebody writes whenever the file is read."""

        def content(self, path: str) -> object:  # type: ignore[override]
            found = super().content(path)
            reads.append(path)
            (root / "busy.txt").write_text(f"{len(reads)}\n" * (len(reads) + 1))
            return type(found)(found.data, found.before, self.identity(path), found.missing)

    opened = FileSource(Busy(str(root)), "busy.txt", FingerprintCache(), lambda: 0).open()
    assert len(reads) == ATTEMPTS
    assert (opened.data, opened.note) == (b"2\n2\n2\n", "it was being written while it was read")
