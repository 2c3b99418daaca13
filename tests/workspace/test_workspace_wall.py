"""The workspace is a wall: what is outside is an ordinary exception, and nothing outside is
opened.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from runtime.workspace.files import Limits, Workspace
from runtime.workspace.walk import MAX_LOOKUPS

OUTSIDE = [
    "../secret.txt",
    "src/../../secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/workspace/../secret.txt",
    "/workspaces/src/a.py",
    "~/../secret.txt",
    "out",
    "out_dir/key",
    "out_dir/../secret.txt",
    "out_absolute",
    "passwd",
    "around",
    "in_dir/../../secret.txt",
]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize(
    "operation",
    [
        "read_bytes",
        "read_text",
        "content",
        "stat",
        "exists",
        "is_file",
        "is_dir",
        "listdir",
        "scan",
    ],
)
def test_every_operation_on_a_path_that_leads_out_is_a_permission_error(
    workspace: Workspace, operation: str, path: str
) -> None:
    """Absolute paths, ``..`` and links out are refused alike, and the message names only what the
    model wrote.
    """
    with pytest.raises(PermissionError) as refused:
        getattr(workspace, operation)(path)
    assert str(refused.value) == f"[Errno 13] The path leads out of the workspace: {path!r}"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("src/a.py", "print(1)\n"),
        ("./src//./a.py", "print(1)\n"),
        ("src/../src/a.py", "print(1)\n"),
        ("~/src/a.py", "print(1)\n"),
        ("/workspace/src/a.py", "print(1)\n"),
        ("in", "print(1)\n"),
        ("in_absolute", "print(1)\n"),
        ("in_dir/a.py", "print(1)\n"),
        ("in_dir/../in", "print(1)\n"),
        ("line\nbreak", "odd name\n"),
        ("caf%E9", "latin-1 name\n"),
        ("back%5Cslash", "backslash name\n"),
        ("back\\slash", "backslash name\n"),
    ],
)
def test_paths_and_links_inside_are_read(workspace: Workspace, path: str, content: str) -> None:
    """Whatever spelling, a path that stays inside gives the file."""
    assert workspace.read_text(path) == content


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        ("missing", FileNotFoundError, "[Errno 2] No such file or directory: 'missing'"),
        ("", FileNotFoundError, "[Errno 2] No such file or directory: ''"),
        ("broken", FileNotFoundError, "[Errno 2] No such file or directory: 'broken'"),
        ("src", IsADirectoryError, "[Errno 21] Is a directory: 'src'"),
        (".", IsADirectoryError, "[Errno 21] Is a directory: '.'"),
        ("src/a.py/", NotADirectoryError, "[Errno 20] Not a directory: 'src/a.py/'"),
        ("src/a.py/b", NotADirectoryError, "[Errno 20] Not a directory: 'src/a.py/b'"),
        ("loop", OSError, "[Errno 40] Too many levels of symbolic links: 'loop'"),
        ("ping/x", OSError, "[Errno 40] Too many levels of symbolic links: 'ping/x'"),
        ("pipe", PermissionError, "[Errno 13] Not a regular file but a named pipe: 'pipe'"),
        ("to_pipe", PermissionError, "[Errno 13] Not a regular file but a named pipe: 'to_pipe'"),
        ("socket", PermissionError, "[Errno 13] Not a regular file but a socket: 'socket'"),
        (
            "sparse",
            OSError,
            (
                "[Errno 27] The file is too large (more than 262,144 bytes); use view(...) or a"
                " tool: 'sparse'"
            ),
        ),
        ("a\0b", ValueError, "embedded null byte"),
        ("\ud800", ValueError, "the path holds characters that no file name can have: '\\ud800'"),
        ("x" * 300, OSError, f"[Errno 36] File name too long: '{'x' * 300}'"),
    ],
)
def test_what_cannot_be_read_is_an_ordinary_exception(
    workspace: Workspace, path: str, kind: type[Exception], message: str
) -> None:
    """Each hostile entry ends as the exception that Python itself would raise, and none blocks."""
    with pytest.raises(kind) as refused:
        workspace.read_bytes(path)
    assert str(refused.value) == message


def test_a_device_is_refused_without_being_opened() -> None:
    """A directory of devices as workspace: the device is told from its status alone."""
    with pytest.raises(PermissionError, match=r"Not a regular file but a device: 'null'"):
        Workspace("/dev").read_bytes("null")


def test_text_that_is_not_utf8_is_a_decode_error_that_says_what_to_do(workspace: Workspace) -> None:
    """``open(...).read()`` raises as in Python; the bytes can be had."""
    with pytest.raises(
        UnicodeDecodeError,
        match=re.escape("in 'latin.txt'; open it in mode 'rb', or use view(...)"),
    ):
        workspace.read_text("latin.txt")
    assert workspace.read_bytes("latin.txt") == b"caf\xe9\n"


def test_text_has_universal_newlines(root: Path) -> None:
    """``\\r\\n`` and ``\\r`` are read as ``\\n``."""
    (root / "dos").write_bytes(b"a\r\nb\rc\n")
    assert Workspace(str(root)).read_text("dos") == "a\nb\nc\n"


def test_a_file_is_read_up_to_exactly_its_bound(root: Path) -> None:
    """The bound itself is allowed, one byte more is not."""
    inside = Workspace(str(root), Limits(read_bytes=10))
    (root / "ten").write_bytes(b"x" * 10)
    (root / "eleven").write_bytes(b"x" * 11)
    assert inside.read_bytes("ten") == b"x" * 10
    with pytest.raises(OSError, match="more than 10 bytes"):
        inside.read_bytes("eleven")


def test_a_workspace_that_vanished_says_so(root: Path) -> None:
    """The message names the workspace, not its place on the host; a workspace that is back is read
    again.
    """
    inside = Workspace(str(root))
    (root / "a").write_text("1")
    shutil.rmtree(root)
    with pytest.raises(FileNotFoundError) as gone:
        inside.read_text("a")
    assert str(gone.value) == "[Errno 2] The workspace's own directory is missing: 'a'"
    root.mkdir()
    (root / "a").write_text("2")
    assert inside.read_text("a") == "2"


def test_a_name_as_written_comes_before_its_unescaped_form(root: Path) -> None:
    """Escapes are tried only when no entry has the name itself."""
    (root / "caf%E9").write_text("literal")
    Path(os.fsdecode(bytes(root) + b"/caf\xe9")).write_text("raw")
    assert Workspace(str(root)).read_text("caf%E9") == "literal"


def test_a_path_of_endless_steps_ends(root: Path) -> None:
    """A chain of ``a/..`` costs at most a bounded number of lookups."""
    (root / "a").mkdir()
    with pytest.raises(OSError, match="The path takes too many steps"):
        Workspace(str(root)).read_bytes("a/../" * MAX_LOOKUPS + "x")


def test_links_are_followed_to_a_bounded_depth(root: Path) -> None:
    """Forty links in a row are followed, forty-one are a loop, as on Linux."""
    (root / "l0").write_text("end")
    for number in range(1, 42):
        (root / f"l{number}").symlink_to(f"l{number - 1}")
    inside = Workspace(str(root))
    assert inside.read_text("l40") == "end"
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        inside.read_text("l41")


def test_no_descriptor_is_left_open(workspace: Workspace) -> None:
    """Good and bad calls alike close what they opened."""
    before = sorted(Path("/proc/self/fd").iterdir())
    for path in [*OUTSIDE, "src/a.py", "missing", "loop", "pipe", "sparse", "src", "in_dir/../in"]:
        for operation in (
            workspace.read_bytes,
            workspace.listdir,
            workspace.resolve,
            workspace.scan,
        ):
            try:
                operation(path)
            except OSError:
                continue
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_a_directory_swapped_for_a_link_out_never_gives_what_is_outside(root: Path) -> None:
    """While another thread swaps a directory and a link out, each read gives the inside or an
    error.
    """
    (root / "real").mkdir()
    (root / "real" / "key").write_text("inside")
    (root / "link").symlink_to("../private")
    (root / "real").rename(root / "door")
    done = threading.Event()

    def swap() -> None:
        for _ in range(300):
            (root / "door").rename(root / "aside")
            (root / "link").rename(root / "door")
            (root / "door").rename(root / "link")
            (root / "aside").rename(root / "door")
        done.set()

    inside, seen = Workspace(str(root)), set()
    thread = threading.Thread(target=swap)
    thread.start()
    while not done.is_set():
        try:
            seen.add(inside.read_text("door/key"))
        except OSError:
            continue
    thread.join()
    assert seen <= {"inside"}
    assert inside.read_text("door/key") == "inside"
