"""What ``setup:`` makes: once for equal inputs, whole or not at all."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.sandbox.choice import sandbox_of
from runtime.sandbox.command import Limits, Place
from runtime.sandbox.setup import Made, Setup, SetupFailed, made
from tests.eventually import eventually
from tests.sandbox.conftest import Bench

_ROOT = Path(__file__).resolve().parents[2]


def _made(bench: Bench, setup: Setup, on_beat: Callable[[str], None] = lambda _: None) -> Made:
    return made(
        setup,
        bench.sandbox,
        bench.place,
        bench.top / "setups",
        on_beat=on_beat,
        stop=bench.stop,
    )


INSTALLS = (
    "mkdir $HOLDFAST_SETUP/bin;"
    " printf '#!/bin/sh\\necho installed\\n' > $HOLDFAST_SETUP/bin/tool;"
    " chmod +x $HOLDFAST_SETUP/bin/tool; echo made by $(wc -l < file)"
)


def _setup(shell: str = INSTALLS, base: str = "sha256:1", **options: object) -> Setup:
    return replace(Setup(shell, base, network=False), **options)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _file(bench: Bench) -> None:
    (bench.workspace / "file").write_text("a line\n")


def test_what_set_up_made_is_there_for_commands_and_cannot_be_changed(bench: Bench) -> None:
    """Its programs are found first; in a sandbox it is read-only for them."""
    ready = _made(bench, _setup())
    bench.run(
        'tool; touch "$HOLDFAST_SETUP/more"', place=replace(bench.place, setup=ready.directory)
    )

    assert (ready.ran, ready.log) == (True, b"made by 1\n")
    assert bench.stdout == "installed\n"
    assert bench.sandbox.name == "none" or "Read-only file system" in bench.stderr


@pytest.mark.slow
def test_equal_inputs_run_once_and_others_anew(bench: Bench) -> None:
    """The commands, the files, the variables."""
    first = _made(bench, _setup())

    assert _made(bench, _setup()) == replace(first, ran=False)
    others = (
        _setup(INSTALLS + "\n"),
        _setup(base="sha256:2"),
        _setup(env={"A": "1"}),
        _setup(env={"A": "2"}),
    )
    made_of_others = [_made(bench, other) for other in others]
    assert all(other.ran for other in made_of_others)
    assert len({each.directory for each in (first, *made_of_others)}) == 5


def test_the_first_command_that_fails_ends_it_and_is_told(bench: Bench) -> None:
    """With the end of what it printed, errors among them in order; nothing is left."""
    with pytest.raises(SetupFailed) as raised:
        _made(bench, _setup("echo before\nls /no/such/place\necho after"))

    assert str(raised.value).startswith("the set-up failed: it ended with exit code 2. The end of")
    assert raised.value.log.startswith(b"before\nls: ")
    assert b"after" not in raised.value.log
    assert not list((bench.top / "setups").glob("*/env"))


def test_the_end_of_what_it_printed_has_no_half_of_a_line(bench: Bench) -> None:
    """A secret is masked in what is told, and would not be known by its second half."""
    with pytest.raises(SetupFailed) as raised:
        _made(bench, _setup("echo key-one-two; printf '%1990s\\n' end; false"))
    assert str(raised.value).endswith("The end of what it printed:\nend")
    assert raised.value.log.startswith(b"key-one-two\n")


def test_a_failure_is_tried_again_by_who_comes_later(bench: Bench) -> None:
    """A network that was down is up again."""
    setup = _setup("grep -q ready file")
    with pytest.raises(SetupFailed, match="It printed nothing"):
        _made(bench, setup)
    (bench.workspace / "file").write_text("ready\n")

    assert _made(bench, setup).ran


def test_a_failure_whose_note_a_power_cut_took_is_tried_again(bench: Bench) -> None:
    """The file has its name then, and nothing in it."""
    setup = _setup("grep -q ready file")
    with pytest.raises(SetupFailed):
        _made(bench, setup)
    (note,) = (bench.top / "setups").glob("*/failed")
    note.write_bytes(b"")
    (bench.workspace / "file").write_text("ready\n")

    assert _made(bench, setup).ran


def test_a_limit_that_is_passed_is_told(bench: Bench) -> None:
    """As for any command."""
    with pytest.raises(SetupFailed, match=r"the set-up failed: it ran for more than 0.3 s"):
        _made(bench, _setup("while :; do :; done", limits=Limits(seconds=0.3)))


def test_who_asks_while_it_runs_waits_for_that_run(bench: Bench) -> None:
    """Eight at once: one runs it, all get the same."""
    with ThreadPoolExecutor(8) as pool:
        ready = list(pool.map(lambda _: _made(bench, _setup("sleep 0.5; date +%N")), range(8)))

    assert [each.ran for each in ready].count(True) == 1
    assert len({(each.directory, each.log) for each in ready}) == 1


@pytest.mark.slow
async def test_who_waits_for_a_run_that_fails_fails_with_it(bench: Bench) -> None:
    """And does not run it once more."""
    waiting: set[int] = set()

    def beat(doing: str) -> None:
        if doing == "waiting for the same set-up of another job":
            waiting.add(threading.get_ident())

    setup = _setup("until [ -e go ]; do sleep 0.05; done; date +%N; exit 3")
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(_made, bench, setup, beat) for _ in range(4)]
        await eventually(lambda: len(waiting) == 3, "the others wait")
        (bench.workspace / "go").touch()

    errors = [run.exception() for run in runs]
    assert all(isinstance(error, SetupFailed) for error in errors)
    assert len({str(error) for error in errors}) == 1


def test_who_is_cancelled_while_it_waits_leaves_the_run_alone(bench: Bench) -> None:
    """Its own wait ends, nothing else."""
    begun, stop = threading.Event(), threading.Event()

    def beat(_: str) -> None:
        begun.set()
        stop.set()

    with ThreadPoolExecutor(1) as pool:
        setup = _setup("touch seen; until [ -e go ]; do sleep 0.05; done; echo whole")
        run = pool.submit(_made, bench, setup)
        while not (bench.workspace / "seen").exists():
            assert not run.done()
        with pytest.raises(SetupFailed, match="cancelled while it waited"):
            made(setup, bench.sandbox, bench.place, bench.top / "setups", on_beat=beat, stop=stop)
        (bench.workspace / "go").touch()

    assert run.result().log == b"whole\n"


_WORKER = """
import sys, threading
from pathlib import Path
from runtime.sandbox.choice import sandbox_of
from runtime.sandbox.command import Place
from runtime.sandbox.setup import Setup, made
kind, top = sys.argv[1], Path(sys.argv[2])
made(Setup(sys.argv[3], "sha256:1", network=False), sandbox_of(kind),
     Place(directory=top / "workspace"), top / "setups",
     on_beat=lambda _: None, stop=threading.Event())
"""


def _started(bench: Bench, shell: str) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-c", _WORKER, bench.sandbox.name, bench.top, shell]
    return subprocess.Popen(arguments, cwd=_ROOT)


@pytest.mark.kill
async def test_a_worker_killed_in_the_middle_leaves_nothing_that_is_taken_for_whole(
    bench: Bench,
) -> None:
    """The next one starts over, in an empty directory, without waiting for the dead."""
    shell = (
        'ls -A "$HOLDFAST_SETUP"; touch "$HOLDFAST_SETUP/half"; touch seen;'
        " until [ -e go ]; do sleep 0.05; done; echo whole"
    )
    worker = _started(bench, shell)
    await eventually(lambda: (bench.workspace / "seen").exists(), "the set-up runs", 60)
    worker.kill()
    worker.wait()
    (bench.workspace / "go").touch()

    ready = _made(bench, _setup(shell))

    assert (ready.ran, ready.log) == (True, b"whole\n")


def test_a_virtual_environment_works_where_it_was_made(bench: Bench) -> None:
    """By its own path, which is ``/env`` in a sandbox."""
    ready = _made(bench, _setup('python3 -m venv --without-pip "$HOLDFAST_SETUP"'))
    bench.run(
        'python3 -c "import sys; print(sys.prefix)"; echo "$HOLDFAST_SETUP"',
        place=replace(bench.place, setup=ready.directory),
    )

    prefix, told = bench.stdout.split()
    assert prefix == told
    assert told == ("/env" if bench.sandbox.name == "bwrap" else str(ready.directory))


def test_layers_without_an_upper_one_are_thrown_away(tmp_path: Path) -> None:
    """A set-up may build in the workspace; its files stay as they are."""
    lower = tmp_path / "lower"
    lower.mkdir()
    (lower / "file").write_text("a line\n")
    ready = made(
        _setup("echo more >> file; cat file"),
        sandbox_of("bwrap"),
        Place(lowers=(lower,)),
        tmp_path / "setups",
        on_beat=lambda _: None,
        stop=threading.Event(),
    )

    assert ready.log == b"a line\nmore\n"
    assert (lower / "file").read_text() == "a line\n"
