"""``blame JOB PATH``: each line's statement, through edits and moves."""

from __future__ import annotations

import random
from itertools import count

import pytest

from runtime.archive.stores.memory import MemoryStore
from runtime.archive.trees import Trees
from runtime.archive.workspace_history import workspace_history
from runtime.workspace.git.lines import lines_of
from tests.cli.command_line import CommandLine
from tests.git.jobs import RUN, What, hands_job


def test_each_line_names_its_statement(cli: CommandLine) -> None:
    """With the statement's first line, and where the file was then."""
    words = r"""edit("pkg/moved.py", "gamma", "GAMMA\nand m…"""
    assert cli("blame", "one", "pkg/moved.py").out.splitlines() == [
        f"base  {'':44}  1  alpha",
        f"base  {'':44}  2  beta",
        f"@5    {words}  3  GAMMA",
        f"@5    {words}  4  and more",
        f"base  {'':44}  5  delta",
        f"base  {'':44}  6  epsilon",
    ]
    assert cli("blame", "one", "pkg/a.py:2-3").out.splitlines() == [
        '@1    edit("pkg/a.py", "two", "TWO")  2  TWO',
        "base                                  3  three",
    ]
    found = cli("blame", "one@4", "new/n.txt", "--json").json()
    assert found["lines"] == [
        {
            "line": 1,
            "turn": 1,
            "statement": 'edit("pkg/a.py", "two", "TWO")\nwrite("new/n.txt", "n")',
            "path": "new/n.txt",
            "text": "n",
        }
    ]


def test_show_opens_what_the_model_saw(cli: CommandLine) -> None:
    """As ``show JOB@N`` of the turn that wrote the lines."""
    shown = cli("blame", "one", "pkg/moved.py:3-4", "--show")
    assert (shown.code, shown.out) == (0, cli("show", "one@5").out)


def test_what_cannot_be_blamed_is_told(cli: CommandLine) -> None:
    """Lines that are not there, lines of several statements, no file: one error, exit code 2."""
    for arguments, words in [
        (("one", "pkg/a.py:9"), "pkg/a.py has lines 1 to 8, not 9"),
        (("one", "pkg/a.py:3-2"), "has lines 1 to 8, not 3-2"),
        (("one", "pkg/a.py:3-"), "lines of pkg/a.py as FROM or FROM-TO, as in 3-7, got '3-'"),
        (("one", "pkg/a.py:-3"), "lines of pkg/a.py as FROM or FROM-TO, as in 3-7, got '-3'"),
        (("one", ""), "hands/one@5: '': That is the workspace itself"),
        (("one", "pkg"), "pkg is a directory"),
        (("one", "gone.txt"), "gone.txt: No such file"),
        (("one", "pkg/a.py", "--show"), "these are of: base, @1"),
        (("one", "pkg/a.py:1", "--show"), "no statement wrote these lines"),
        (("one", "--show"), "name its PATH"),
    ]:
        done = cli("blame", *arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert words in done.err


@pytest.mark.parametrize("seed", range(12))
def test_lines_are_followed_exactly(seed: int) -> None:
    """Of lines that differ from each other, the one that is known to have written each is found,
    whatever is put in, taken out, changed or moved between.
    """
    rng, numbers = random.Random(seed), count()

    def new_lines(turn: int, most: int) -> list[tuple[str, int]]:
        return [(f"line {next(numbers)} of it", turn) for _ in range(rng.randint(0, most))]

    path, lines = "f0.txt", [*new_lines(0, 30), ("last", 0)]
    base: What = {path: text(lines), "other": b"o\n"}
    statements: list[tuple[str, What]] = []
    for turn in range(1, 25):
        if rng.random() < 0.2:
            old, path = path, f"d{turn}/f.txt"
            statements.append((f"move {turn}", {old: None, path: text(lines)}))
            continue
        for _ in range(rng.randint(0, 3)):
            at = rng.randint(0, len(lines))
            lines[at : at + rng.randint(0, 2)] = new_lines(turn, 3)
        statements.append((f"edit {turn}", {path: text(lines), "other": b"%d\n" % turn}))
    store = MemoryStore()
    archive = hands_job(store, base, statements)
    found = lines_of(Trees(store), workspace_history(archive, RUN), 24, path)
    assert [(line.text, line.turn) for line in found] == [
        (f"{told}\n".encode(), turn) for told, turn in lines
    ]


def text(lines: list[tuple[str, int]]) -> bytes:
    """A file of lines."""
    return "".join(f"{told}\n" for told, _ in lines).encode()
