"""What calls of a statement make of a tree, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.trees import editing
from runtime.trees.editing import Edited
from runtime.trees.entries import Entry, directory_entry, file_entry, link_entry
from runtime.trees.places import place_of
from runtime.trees.tree import Tree
from runtime.workspace.files import Workspace

TEXT = "def f(a):\n    return a\n\n\ndef g(a):\n    return a\n"
FILES = {"src/a.py": TEXT.encode(), "run": b"x", "crlf": b"one\r\ntwo\r\n", "bin": b"\xff"}
CONTENT = {file_entry(data).content: data for data in FILES.values()}
TREE = Tree().changed(
    {
        **{path: file_entry(data) for path, data in FILES.items()},
        "run": file_entry(b"x", 0o755),
        "in": link_entry("src/a.py"),
        "up": link_entry("../../etc/passwd"),
        "out": link_entry("/etc/passwd"),
        "abs": link_entry("/workspace/src"),
        "loop": link_entry("loop"),
        "empty": directory_entry(),
    }
)


def read(entry: Entry) -> bytes:
    """The bytes of a file of the tree."""
    return CONTENT[entry.content]


def after(made: Edited) -> dict[str, bytes]:
    """The files of the tree after a change."""
    known = {**CONTENT, **made.data}
    return {p: known[e.content] for p, e in TREE.changed(made.changes).under() if e.is_file}


def test_writing_follows_links_and_keeps_modes() -> None:
    """A file's mode stays; a link is written through; directories are made where asked."""
    made = editing.write(TREE, "run", b"y", parents=True)
    assert made.changes == {"run": file_entry(b"y", 0o755)}
    assert editing.write(TREE, "in", b"z", parents=False).changes.keys() == {"src/a.py"}
    assert editing.write(TREE, "abs/new/b.py", b"", parents=True).changes.keys() == {"src/new/b.py"}
    assert after(editing.append(TREE, "/workspace/run", b"+", read))["run"] == b"x+"
    assert after(editing.append(TREE, "fresh", b"+", read))["fresh"] == b"+"


def test_an_edit_replaces_what_is_there_as_often_as_it_says() -> None:
    """Also where lines end as on Windows."""
    made = editing.edit(TREE, "in", "return a", "return b", 2, read)
    assert after(made)["src/a.py"] == TEXT.replace("return a", "return b").encode()
    crlf = editing.edit(TREE, "crlf", "one\ntwo\n", "1\n2\n", 1, read)
    assert after(crlf)["crlf"] == b"1\r\n2\r\n"
    assert after(editing.edit(TREE, "crlf", "one\ntwo\n", "1\r\n2\n", 1, read)) == after(crlf)


@pytest.mark.parametrize(
    ("old", "count", "message"),
    [
        (
            "return a",
            1,
            "edit(): old is in 'src/a.py' 2 times, not once: at lines 1, 5; give more of the text"
            " around it, or count=2",
        ),
        (
            "def f(a, b):\n    return a",
            1,
            "edit(): old is not in 'src/a.py'; nearest is, from line 0 on (lines count from 0):\n"
            "0: def f(a):\n1:     return a\n2: ",
        ),
        ("zzzzzz", 1, "edit(): old is not in 'src/a.py'; nothing in it is like its first line"),
        ("", 1, "edit(): old is empty; to write a whole file use write(path, text)"),
        ("def", 0, "edit(): count is how often old is replaced: 1 or more"),
    ],
)
def test_an_edit_that_finds_something_else_says_what(old: str, count: int, message: str) -> None:
    """Absent, ambiguous, or near: the message is all that the model has."""
    with pytest.raises(ValueError) as refused:
        editing.edit(TREE, "src/a.py", old, "", count, read)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "old", "message"),
    [
        ("if a:\n        b\n        c\n", "    ", "4 times, not once: at lines 1, 1, 2, 2;"),
        ("a\n\n\n\nb\r\r\nc\n\n", "\n\n", "3 times, not once: at lines 0, 2, 6;"),
        ("# a\f\n# b\u2028c\rdef f(a):\n", "def f(b):", "from line 2 on (lines count from 0):"),
    ],
)
def test_an_edit_tells_lines_as_views_number_them(text: str, old: str, message: str) -> None:
    """Each place once that would be replaced, and none that begins in another; what Python takes
    for a line's end beside, ends none.
    """
    data = text.encode()
    tree = Tree().changed({"f": file_entry(data)})
    with pytest.raises(ValueError) as refused:
        editing.edit(tree, "f", old, "", 1, lambda _: data)
    assert message in str(refused.value)


def test_moving_and_deleting() -> None:
    """Directories go with what is in them; a link itself is moved, not what it leads to."""
    assert after(editing.move(TREE, "src", "lib/python", into=True)).keys() >= {"lib/python/a.py"}
    assert after(editing.move(TREE, "run", "src", into=True)).keys() >= {"src/run"}
    assert editing.move(TREE, "in", "out", into=False).changes == {
        "in": None,
        "out": link_entry("src/a.py"),
    }
    assert editing.delete(TREE, "src").changes == {"src": None}
    assert editing.unlink(TREE, "out").changes == {"out": None}
    assert editing.rmdir(TREE, "empty").changes == {"empty": None}
    assert editing.mkdir(TREE, "empty", parents=False, exist_ok=True).changes == {}
    assert editing.mkdir(TREE, "a/b", parents=True, exist_ok=False).changes.keys() == {"a/b"}


Call = Callable[[], object]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: editing.write(TREE, "up", b"", parents=True), PermissionError),
        (lambda: editing.write(TREE, "out", b"", parents=True), PermissionError),
        (lambda: editing.write(TREE, "/etc/x", b"", parents=True), PermissionError),
        (lambda: editing.write(TREE, "src/../../x", b"", parents=True), PermissionError),
        (lambda: editing.write(TREE, "loop", b"", parents=True), OSError),
        (lambda: editing.write(TREE, "run/x", b"", parents=True), NotADirectoryError),
        (lambda: editing.write(TREE, "src", b"", parents=True), IsADirectoryError),
        (lambda: editing.write(TREE, "no/x", b"", parents=False), FileNotFoundError),
        (lambda: editing.write(TREE, "a\0b", b"", parents=False), ValueError),
        (lambda: editing.edit(TREE, "no", "a", "b", 1, read), FileNotFoundError),
        (lambda: editing.edit(TREE, "bin", "a", "b", 1, read), UnicodeDecodeError),
        (lambda: editing.edit(TREE, "src", "a", "b", 1, read), IsADirectoryError),
        (lambda: editing.delete(TREE, "."), PermissionError),
        (lambda: editing.delete(TREE, "no"), FileNotFoundError),
        (lambda: editing.unlink(TREE, "src"), IsADirectoryError),
        (lambda: editing.rmdir(TREE, "src"), OSError),
        (lambda: editing.rmdir(TREE, "run"), NotADirectoryError),
        (lambda: editing.mkdir(TREE, "src", parents=False, exist_ok=False), FileExistsError),
        (lambda: editing.mkdir(TREE, "a/b", parents=False, exist_ok=False), FileNotFoundError),
        (lambda: editing.move(TREE, "src", "src/deeper", into=True), OSError),
        (lambda: editing.move(TREE, "empty", "src", into=False), OSError),
    ],
)
def test_what_a_file_system_refuses_is_refused(call: Call, kind: type[Exception]) -> None:
    """By the exception that Python's own call would raise."""
    with pytest.raises(kind):
        call()


def test_names_are_written_as_they_are_read(tmp_path: Path) -> None:
    """The workspace as ``~``, and what a listing escapes: bytes that are no UTF-8, a backslash. One
    that is there as it is written is that one.
    """
    raw = {"latin\udce9": b"1", "back\\slash": b"2", "both%E9": b"3", "both\udce9": b"4"}
    tree = Tree().changed({name: file_entry(data) for name, data in raw.items()})
    for name, data in raw.items():
        (tmp_path / name).write_bytes(data)
    workspace = Workspace(str(tmp_path))
    assert set(workspace.listdir(".")) == {"latin%E9", "back%5Cslash", "both%E9"}
    for path in (*workspace.listdir("."), "~/latin%E9", "/workspace/~/latin%E9", "new%E9"):
        there = (tmp_path / place_of(tree, path)).exists()
        assert workspace.exists(path) is there
        if there:
            assert (tmp_path / place_of(tree, path)).read_bytes() == workspace.read_bytes(path)
    assert editing.write(tree, "~/a", b"", parents=True).changes.keys() == {"a"}
    assert editing.delete(tree, "latin%E9").changes == {"latin\udce9": None}


def test_places_are_those_of_the_kernel(tmp_path: Path) -> None:
    """Each path that leads somewhere inside leads there on a disk too."""
    (tmp_path / "src/deep").mkdir(parents=True)
    (tmp_path / "a").symlink_to("src/deep")
    (tmp_path / "b").symlink_to("a/..")
    (tmp_path / "src/deep/c").symlink_to("../../b")
    tree = Tree().changed(
        {
            "src/deep": directory_entry(),
            "a": link_entry("src/deep"),
            "b": link_entry("a/.."),
            "src/deep/c": link_entry("../../b"),
        }
    )
    for path in ("a", "b", "a/c", "b/deep/../x", "a/c/deep/c/new", "src/./deep//c"):
        real = (tmp_path / path).resolve()
        assert place_of(tree, path) == str(real.relative_to(tmp_path.resolve()))
