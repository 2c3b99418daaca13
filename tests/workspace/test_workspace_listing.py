"""Listing directories: sorted, bounded, with every name in a form that JSON holds and that opens
the file again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from runtime.base.os_values import ScanEntry, StatResult
from runtime.trees.spellings import unescape_name
from runtime.workspace.files import Limits, Workspace
from runtime.workspace.walk import escape_name


def test_a_listing_has_each_name_once_sorted_and_escaped(workspace: Workspace) -> None:
    """Newlines stay, bytes that are no UTF-8 and backslashes become ``%XX``."""
    names = """around back%5Cslash broken caf%E9 in in_absolute in_dir latin.txt line|break loop out out_absolute out_dir
        passwd ping pipe pong socket sparse src to_pipe"""
    assert workspace.listdir(".") == [name.replace("|", "\n") for name in names.split()]


def test_every_listed_file_can_be_opened_by_its_listed_name(workspace: Workspace) -> None:
    """The escaped form of a name leads back to the file."""
    odd = [name for name in workspace.listdir(".") if "%" in name or "\n" in name]
    assert {name: workspace.read_text(name) for name in odd} == {
        "back%5Cslash": "backslash name\n",
        "caf%E9": "latin-1 name\n",
        "line\nbreak": "odd name\n",
    }


@pytest.mark.parametrize("raw", ["plain", "é", "a%b", "%41", "\udce9\udcff", "a\\b", "\udc80%5c"])
def test_escaping_gives_json_and_can_be_undone(raw: str) -> None:
    """Escaped names survive JSON in UTF-8, and unescaping gives the raw name."""
    escaped = escape_name(raw)
    assert json.loads(json.dumps(escaped, ensure_ascii=False).encode("utf-8")) == escaped
    assert unescape_name(escaped) == raw


def test_a_file_that_vanishes_between_listing_and_reading_is_not_found(root: Path) -> None:
    """The listing promises nothing."""
    (root / "a").write_text("x")
    inside = Workspace(str(root))
    [name] = inside.listdir(".")
    (root / "a").unlink()
    with pytest.raises(FileNotFoundError, match="No such file or directory: 'a'"):
        inside.read_text(name)


def test_a_directory_with_too_many_entries_is_an_error_not_a_part(root: Path) -> None:
    """A bounded answer is never a silently shortened one."""
    for number in range(5):
        (root / str(number)).touch()
    assert Workspace(str(root), Limits(entries=5)).listdir(".") == ["0", "1", "2", "3", "4"]
    with pytest.raises(
        OSError, match=r"More than 4 entries; use a tool, or a smaller directory: '\.'"
    ):
        Workspace(str(root), Limits(entries=4)).listdir(".")
    with pytest.raises(OSError, match="too long together"):
        Workspace(str(root), Limits(listing_bytes=4)).listdir(".")


def test_the_kinds_of_hostile_entries(workspace: Workspace) -> None:
    """``exists``, ``is_file``, ``is_dir`` and ``is_symlink`` answer as ``pathlib`` does, inside the
    wall.
    """
    kinds = {
        name: (
            workspace.exists(name),
            workspace.is_file(name),
            workspace.is_dir(name),
            workspace.is_symlink(name),
        )
        for name in [
            "src",
            "src/a.py",
            "in",
            "in_dir",
            "broken",
            "loop",
            "pipe",
            "to_pipe",
            "missing",
            "src/a.py/x",
        ]
    }
    assert kinds == {
        "src": (True, False, True, False),
        "src/a.py": (True, True, False, False),
        "in": (True, True, False, True),
        "in_dir": (True, False, True, True),
        "broken": (False, False, False, True),
        "loop": (False, False, False, True),
        "pipe": (True, False, False, False),
        "to_pipe": (True, False, False, True),
        "missing": (False, False, False, False),
        "src/a.py/x": (False, False, False, False),
    }
    assert workspace.is_symlink("out")


def test_a_scan_describes_links_by_what_they_lead_to_inside(workspace: Workspace) -> None:
    """Links out, loops and pipes are neither files nor directories, and no link is descended
    into.
    """
    found = {entry.path: entry[1:] for entry in workspace.scan(".")}
    assert found[""] == (True, False, False)
    assert found["src"] == (True, False, False)
    assert found["src/a.py"] == (False, True, False)
    assert found["in_dir"] == (True, False, True)
    assert found["in"] == (False, True, True)
    for name in ("out", "out_dir", "out_absolute", "passwd", "loop", "broken", "to_pipe"):
        assert found[name] == (False, False, True)
    assert found["pipe"] == (False, False, False)
    assert "in_dir/a.py" not in found


def test_a_scan_follows_links_inside_when_asked_and_ends_in_a_cycle(root: Path) -> None:
    """A link to its own parent is descended into 64 levels and no further."""
    (root / "d").mkdir()
    (root / "d" / "up").symlink_to("..")
    found = Workspace(str(root)).scan("d", follow_symlinks=True)
    assert max(entry.path.count("/") for entry in found) == 63
    assert found[:3] == [
        ScanEntry("", True, False, False),
        ScanEntry("up", True, False, True),
        ScanEntry("up/d", True, False, False),
    ]


def test_a_scan_keeps_to_its_depth_and_pattern(root: Path) -> None:
    """Directories stay in a filtered answer, since Monty matches the whole pattern itself."""
    (root / "p" / "q").mkdir(parents=True)
    for name in ("a.py", "p/b.py", "p/c.txt", "p/q/d.PY"):
        (root / name).touch()
    inside = Workspace(str(root))
    assert [entry.path for entry in inside.scan(".", max_depth=1)] == ["", "a.py", "p"]
    assert [entry.path for entry in inside.scan(".", pattern=["**", "*.py"])] == [
        "",
        "a.py",
        "p",
        "p/b.py",
        "p/q",
    ]
    folded = inside.scan(".", pattern=["**", "*.py"], case_sensitive=False)
    assert [entry.path for entry in folded] == ["", "a.py", "p", "p/b.py", "p/q", "p/q/d.PY"]


def test_a_scan_is_bounded_in_what_it_returns_and_what_it_looks_at(root: Path) -> None:
    """Both bounds are errors that name the scanned path."""
    for number in range(10):
        (root / f"{number}.txt").touch()
    with pytest.raises(OSError, match=r"More than 5 entries beneath.*: '\.'"):
        Workspace(str(root), Limits(entries=5)).scan(".")
    with pytest.raises(OSError, match=r"More than 8 entries.*: '\.'"):
        Workspace(str(root), Limits(visited=8)).scan(".", pattern=["*.py"])


def test_a_scan_of_a_file_describes_it_and_of_nothing_is_an_error(workspace: Workspace) -> None:
    """As ``Path.scan`` is specified."""
    assert workspace.scan("src/a.py") == [ScanEntry("", False, True, False)]
    assert workspace.scan("broken") == [ScanEntry("", False, False, True)]
    with pytest.raises(FileNotFoundError, match="'missing'"):
        workspace.scan("missing")


def test_a_stat_tells_nothing_of_the_machine_and_nothing_that_reading_changes(root: Path) -> None:
    """Inode, device and owner are 0, access and change time are the modification time."""
    (root / "a").write_text("12345")
    os.utime(root / "a", (1, 1_700_000_000.5))
    (root / "a").chmod(0o640)
    moment = 1_700_000_000.5
    assert Workspace(str(root)).stat("a") == StatResult(
        0o100640, 0, 0, 1, 0, 0, 5, moment, moment, moment
    )


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        (".", "/workspace"),
        ("src/../in", "/workspace/src/a.py"),
        ("in_dir/new/../file", "/workspace/src/file"),
        ("missing/x", "/workspace/missing/x"),
        ("caf%E9", "/workspace/caf%E9"),
    ],
)
def test_resolve_gives_the_path_as_the_model_knows_it(
    workspace: Workspace, path: str, resolved: str
) -> None:
    """Links inside are resolved, what does not exist is kept, the host's path never shows."""
    assert workspace.resolve(path) == resolved


@pytest.mark.parametrize("path", ["out", "missing/../../x", "in_dir/../../x"])
def test_resolve_refuses_what_leads_out(workspace: Workspace, path: str) -> None:
    """Also where the rest of the path does not exist."""
    with pytest.raises(PermissionError, match="leads out of the workspace"):
        workspace.resolve(path)
