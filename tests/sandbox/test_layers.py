"""What a command changed, read from an overlay's upper layer."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.sandbox.choice import overlays_work
from runtime.sandbox.command import Finished, Limits, Place, SandboxFailed
from runtime.sandbox.layers import (
    Changed,
    changed_in,
    fit_in_a_mount,
    remove_tree,
)
from tests.sandbox.conftest import Bench


@pytest.fixture
def layered(sandboxed: Bench, tmp_path: Path) -> Bench:
    """A workspace of two lower layers and an upper one."""
    assert overlays_work(tmp_path), "these tests need a file system that can hold an overlay"
    layers = [tmp_path / name for name in ("bottom", "top", "upper", "work")]
    for layer in layers:
        layer.mkdir()
    sandboxed.place = Place(lowers=(layers[0], layers[1]), upper=layers[2], work=layers[3])
    return sandboxed


def _in(layer: Path, **files: str) -> None:
    for name, text in files.items():
        (layer / name).parent.mkdir(parents=True, exist_ok=True)
        (layer / name).write_text(text)


def _run(bench: Bench, shell: str) -> list[Changed]:
    finished = bench.run(shell)
    assert finished == Finished(0, finished.seconds), bench.stderr
    assert bench.place.upper is not None
    return list(changed_in(bench.place.upper))


def test_the_upper_layers_of_the_lower_ones_hide_those_below(layered: Bench) -> None:
    """Lower layers are given from the bottom up."""
    _in(layered.place.lowers[0], a="bottom", b="bottom")
    _in(layered.place.lowers[1], a="top")

    assert _run(layered, "cat a b") == []
    assert layered.stdout == "topbottom"


def test_what_changed_is_told_and_nothing_else(layered: Bench) -> None:
    """Directories before what is in them, in the order of names; the lower layers stay as they
    are.
    """
    bottom = layered.place.lowers[0]
    _in(bottom, kept="x", gone="x", changed="x", **{"d/inner": "x", "old/f": "x"})

    changed = _run(
        layered,
        "rm gone; echo y > changed; chmod 600 changed; rm -r old; mkdir -p new/empty;"
        " ln -s nowhere link; mv d/inner d/moved; chmod 700 new/empty",
    )

    assert changed == [
        Changed("changed", "file", 0o600),
        Changed("d", "directory", 0o755),
        Changed("gone", "deleted"),
        Changed("link", "symlink", 0o777),
        Changed("new", "directory", 0o755),
        Changed("old", "deleted"),
        Changed("d/inner", "deleted"),
        Changed("d/moved", "file", 0o644),
        Changed("new/empty", "directory", 0o700),
    ]
    assert sorted(path.name for path in bottom.iterdir()) == ["changed", "d", "gone", "kept", "old"]
    assert (bottom / "changed").read_text() == "x"


def test_a_directory_made_anew_hides_the_old_one(layered: Bench) -> None:
    """It is told as opaque: what the layers below had in it is gone."""
    _in(layered.place.lowers[0], **{"d/old": "x"})

    assert _run(layered, "rm -r d; mkdir d; touch d/new") == [
        Changed("d", "directory", 0o755, opaque=True),
        Changed("d/new", "file", 0o644),
    ]


def test_pipes_and_sockets_are_told_as_dropped(layered: Bench) -> None:
    """A version cannot hold them."""
    made = "mkfifo pipe; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\""

    assert _run(layered, made) == [
        Changed("pipe", "dropped", reason="a FIFO"),
        Changed("socket", "dropped", reason="a socket"),
    ]


def test_names_that_are_no_utf8_come_through(layered: Bench) -> None:
    """As Python tells them: with surrogates."""
    assert _run(layered, r"touch $'caf\xe9' $'new\nline'") == [
        Changed("caf\udce9", "file", 0o644),
        Changed("new\nline", "file", 0o644),
    ]


def test_modes_have_no_set_user_id(tmp_path: Path) -> None:
    """A version never holds a program that runs as somebody else, whoever made it."""
    (tmp_path / "program").touch()
    (tmp_path / "program").chmod(0o6755)

    assert list(changed_in(tmp_path)) == [Changed("program", "file", 0o755)]


def test_what_nobody_may_read_is_told_all_the_same(layered: Bench) -> None:
    """With the modes that it has, and so that it can be read then."""
    changed = _run(layered, "mkdir d; echo x > d/f; chmod 0 d/f d")

    assert changed == [Changed("d", "directory", 0), Changed("d/f", "file", 0)]
    assert layered.place.upper is not None
    assert (layered.place.upper / "d" / "f").read_text() == "x\n"


@pytest.mark.slow
def test_paths_that_are_too_long_are_dropped_where_they_get_so(layered: Bench) -> None:
    """A tree deeper than any path may be long: told once, and deleted like any other."""
    script = (
        "import os\nfor _ in range(2000):\n    os.mkdir('d' * 20)\n    os.chdir('d' * 20)\n"
        "open('deep', 'w').close()\n"
    )
    changed = _run(layered, f"python3 - <<'END'\n{script}END")

    assert [entry.kind for entry in changed] == ["directory"] * 146 + ["dropped"]
    assert changed[-1].reason == "longer than 3,072 bytes as a path"
    assert layered.place.upper is not None
    remove_tree(layered.place.upper)
    assert not layered.place.upper.exists()


def test_a_tree_with_everything_in_it_is_deleted(tmp_path: Path) -> None:
    """Unreadable directories, links out of it, and a file beside them."""
    (tmp_path / "kept").write_text("x")
    top = tmp_path / "tree"
    (top / "a" / "b" / "c").mkdir(parents=True)
    (top / "a" / "out").symlink_to(tmp_path / "kept")
    (top / "a" / "b" / "dir").symlink_to(tmp_path)
    os.link(tmp_path / "kept", top / "a" / "b" / "c" / "hard")
    (top / "a" / "b").chmod(0)
    (top / "a").chmod(0)

    remove_tree(top)

    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept").read_text() == "x"


def test_what_a_removal_has_left_that_was_killed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a process of the same number, as each worker in a container has."""
    top = tmp_path / "tree"
    (top / "a" / "b" / "c" / "d" / "e").mkdir(parents=True)

    def killed(_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("runtime.sandbox.layers.os.rmdir", killed)
        remove_tree(top)
    remove_tree(top)

    assert not top.exists()


def test_the_kernel_and_we_agree_on_what_is_there(layered: Bench) -> None:
    """A copy made by the changes alone is what the command saw, for many small changes."""
    bottom = layered.place.lowers[0]
    for number in range(200):
        _in(bottom, **{f"d{number % 7}/f{number}": str(number)})

    changed = _run(
        layered,
        "rm -r d1; rm d2/f2 d3/*; mkdir d1; echo n > d1/n; rm -r d4; ln -s d5 d4;"
        " mv d6 d7; find . -type f | sort | xargs sha256sum",
    )

    copy = layered.top / "copy"
    subprocess.run(["cp", "-a", bottom, copy], check=True)
    assert layered.place.upper is not None
    for entry in changed:
        path = copy / entry.path
        if (entry.kind != "directory" or entry.opaque) and path.exists():
            remove_tree(path)
        if entry.kind == "directory":
            path.mkdir(exist_ok=True)
        elif entry.kind in ("file", "symlink"):
            subprocess.run(["cp", "-a", layered.place.upper / entry.path, path], check=True)
    listed = "find . -type f | sort | xargs sha256sum"
    mine = subprocess.run(listed, shell=True, cwd=copy, capture_output=True, text=True, check=True)
    assert mine.stdout == layered.stdout


def test_as_many_layers_as_the_kernel_takes_are_mounted_and_no_more(layered: Bench) -> None:
    """To the byte: what fits by our count is mounted, and what does not is refused by us."""
    top = layered.top / ("directory-with,odd:name" * 3)
    layers: list[Path] = []
    while fit_in_a_mount(replace(layered.place, lowers=tuple(layers))):
        layers.append(top / f"{len(layers):060d}")
        _in(layers[-1], **{f"file{len(layers)}": "x"})
    # Names of every length at the border, of the last layer or of the one before.
    last = replace(layered.place, lowers=(*layers[:-1], top / "n"))
    if not fit_in_a_mount(last):
        layers.pop()
    for length in (*range(1, 201), *range(202, 400)):
        # Two of them never one in the other: what a layer shows is counted below.
        name = top / ("n" * length if length < 201 else f"{'m' * 200}/{'n' * (length - 201)}")
        name.mkdir(parents=True)
        place = replace(layered.place, lowers=(*layers[:-1], name))
        if not fit_in_a_mount(place):
            break
        last = place

    with pytest.raises(SandboxFailed, match=f"cannot mount {len(layers)} layers: merge some"):
        layered.run("true", place=place)
    assert layered.run("ls | wc -l", place=last).exit_code == 0
    assert int(layered.stdout) == len(layers) - 1


@pytest.mark.parametrize("empty", [False, True], ids=["layers", "nothing"])
def test_a_workspace_in_memory_is_counted(sandboxed: Bench, tmp_path: Path, *, empty: bool) -> None:
    """What is written to layers without an upper one, or to none at all."""
    (lower := tmp_path / "lower").mkdir()
    finished = sandboxed.run(
        "head -c 90000000 /dev/zero > large; sleep 60",
        place=Place() if empty else Place(lowers=(lower,)),
        limits=Limits(memory_bytes=64 << 20, seconds=20),
    )

    assert finished.stopped == "its processes used more than 64 MiB of memory"
