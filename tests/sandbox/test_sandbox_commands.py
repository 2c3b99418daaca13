"""What a command gets, and what comes back, with a sandbox and without."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime.sandbox import following, process_groups
from runtime.sandbox.command import Command, Limits, Place
from runtime.sandbox.process_groups import ProcessGroup
from runtime.sandbox.system import python_prefix
from tests.sandbox.conftest import Bench

pytestmark = pytest.mark.slow


def test_what_is_printed_and_the_exit_code_come_back(bench: Bench) -> None:
    """Standard output, standard error and the exit code are the command's."""
    finished = bench.run("echo out; echo err >&2; exit 7")

    assert (bench.stdout, bench.stderr) == ("out\n", "err\n")
    assert (finished.exit_code, finished.stopped, finished.output_cut) == (7, "", False)


def test_a_command_reads_its_input_and_sees_its_variables(bench: Bench) -> None:
    """Input of any bytes arrives whole, variables by their names."""
    data = bytes(range(256)) * 1000
    bench.run('cat > got; printf %s "$GIVEN"', stdin=data, env={"GIVEN": "a 'b' $c\n"})

    assert (bench.workspace / "got").read_bytes() == data
    assert bench.stdout == "a 'b' $c\n"


def test_a_command_of_any_length_and_form_is_run_as_written(bench: Bench) -> None:
    """Longer than an argument of the kernel's may be, with quotes and lines."""
    text = 'it\'s "long" é\n' * 20_000
    bench.run(f"cat > got <<'END'\n{text}END\n")

    assert (bench.workspace / "got").read_text() == text


def test_a_signal_is_told_as_shells_tell_it(bench: Bench) -> None:
    """128 and the signal's number."""
    assert bench.run("kill -TERM $$").exit_code == 128 + signal.SIGTERM


def test_the_environment_is_clean(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the worker's environment is a command's."""
    monkeypatch.setenv("WORKERS_OWN", "secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    bench.run("env; cat /proc/self/environ", env={"PATH": "/usr/bin:/bin"})

    assert "secret" not in bench.stdout
    names = {line.partition("=")[0] for line in bench.stdout.splitlines() if "=" in line}
    assert {"HOME", "LANG", "TERM", "PYTHONDONTWRITEBYTECODE"} <= names


def test_only_the_three_streams_are_open_in_a_command(bench: Bench) -> None:
    """No descriptor of the worker's, or of the sandbox's own."""
    bench.run("for fd in /proc/$$/fd/*; do :; done; /bin/ls /proc/self/fd | sort -n | xargs")

    # The last one is that of ls itself, in the directory that it lists.
    assert bench.stdout == "0 1 2 3\n"


def test_what_works_in_the_workspace_is_kept(bench: Bench) -> None:
    """The working directory is the workspace, and what is written there stays."""
    bench.run("echo one > a; mkdir -p d/e; ln -s a link; chmod 750 a")

    assert (bench.workspace / "a").read_text() == "one\n"
    assert (bench.workspace / "a").stat().st_mode & 0o777 == 0o750
    assert (bench.workspace / "d" / "e").is_dir()
    assert (bench.workspace / "link").readlink().name == "a"


def test_the_last_whole_line_is_told_while_a_command_runs(bench: Bench) -> None:
    """A beat has the line before the one that is being written."""
    told: list[str] = []

    def on_beat(line: str) -> None:
        told.append(line)
        # On a busy machine a beat may come before that line does.
        if line == "second":
            (bench.workspace / "heard").touch()

    finished = bench.sandbox.run(
        Command("echo first; printf 'second\\n\\nthi'; until [ -e heard ]; do :; done"),
        bench.place,
        bench.top / "stdout",
        bench.top / "stderr",
        on_beat=on_beat,
        stop=threading.Event(),
    )

    assert finished.exit_code == 0
    assert {*told} <= {"", "first", "second"}


def test_an_error_in_a_beat_ends_the_command(bench: Bench) -> None:
    """What the caller raises reaches the caller, and nothing goes on behind it."""

    def on_beat(_: str) -> None:
        raise RuntimeError("cancelled")

    with pytest.raises(RuntimeError, match="cancelled"):
        bench.sandbox.run(
            Command("while :; do :; done"),
            bench.place,
            bench.top / "stdout",
            bench.top / "stderr",
            on_beat=on_beat,
            stop=threading.Event(),
        )


def test_a_command_is_ended_when_it_is_stopped(bench: Bench) -> None:
    """What it printed until then is kept."""
    bench.stop.set()
    finished = bench.run("echo begun; while :; do :; done")

    assert finished.stopped == "it was cancelled"
    assert finished.exit_code == 128 + signal.SIGKILL


def test_a_command_that_takes_too_long_is_ended(bench: Bench) -> None:
    """Its limit is told."""
    finished = bench.run("while :; do :; done", limits=Limits(seconds=0.2))

    assert finished.stopped == "it ran for more than 0.2 s"
    assert finished.exit_code == 128 + signal.SIGKILL


def test_endless_output_is_cut_and_ends_the_command(bench: Bench) -> None:
    """The first bytes are kept, of both streams together."""
    finished = bench.run("yes & yes >&2", limits=Limits(output_bytes=100_000))

    assert finished.stopped == "it printed more than 97.66 KiB"
    assert finished.output_cut
    assert len(bench.stdout) + len(bench.stderr) == 100_000


def test_output_of_exactly_the_limit_is_kept_whole(bench: Bench) -> None:
    """The limit itself is allowed."""
    finished = bench.run("head -c 100000 /dev/zero", limits=Limits(output_bytes=100_000))

    assert (finished.exit_code, finished.stopped, finished.output_cut) == (0, "", False)
    assert len(bench.stdout) == 100_000


@pytest.mark.parametrize("name", ["", "1A", "A=B", "A B", "A\0"])
def test_a_variable_that_no_shell_could_name_is_refused(name: str) -> None:
    """Before anything is started."""
    with pytest.raises(ValueError, match="cannot be the name of an environment variable"):
        Command("true", env={name: "x"})


def test_a_place_is_a_directory_or_layers(bench: Bench) -> None:
    """Both at once is a mistake of the caller's."""
    with pytest.raises(ValueError, match="a directory or layers"):
        Place(directory=bench.workspace, lowers=(bench.top,))


def test_commands_run_side_by_side(bench: Bench) -> None:
    """Twelve at once, in threads of one process: each has its own input, output and exit code."""

    def one(number: int) -> tuple[int, str, bytes]:
        out, err = bench.top / f"out{number}", bench.top / f"err{number}"
        finished = bench.sandbox.run(
            Command(f"cat; seq 20000; exit {number}", stdin=b"%d\n" % number),
            bench.place,
            out,
            err,
            on_beat=lambda _: None,
            stop=threading.Event(),
        )
        return finished.exit_code, out.read_text().partition("\n")[0], out.read_bytes()[-6:]

    with ThreadPoolExecutor(12) as pool:
        ended = list(pool.map(one, range(12)))

    assert ended == [(number, str(number), b"20000\n") for number in range(12)]


def test_a_python_outside_the_system_is_the_one_of_commands(bench: Bench) -> None:
    """The one that runs us, without its virtual environment; else the system's own."""
    bench.run("python3 -c 'import sys; print(sys.prefix, sys.base_prefix)'")

    prefix, base = bench.stdout.split()
    assert prefix == base
    assert (prefix == str(python_prefix())) is (python_prefix() is not None)


_MIB = 1024 * 1024
_PASSED = {
    "processes": (
        "for n in $(seq 100); do sleep 60 & done; wait",
        Limits(processes=40),
        "it had more than 40 processes",
    ),
    "memory": (
        'for n in 1 2 3 4; do python3 -c "import time; x = bytearray(60 << 20); time.sleep(60)" &'
        " done; wait",
        Limits(memory_bytes=150 * _MIB),
        "its processes used more than 150 MiB of memory",
    ),
    "disk": (
        "for n in 1 2 3 4; do head -c 30000000 /dev/zero > $n; done; sleep 60",
        Limits(disk_bytes=64 * _MIB),
        "it wrote more than 64 MiB",
    ),
    "file": (
        "exec head -c 30000000 /dev/zero > long",
        Limits(file_bytes=16 * _MIB),
        "it wrote a file of more than 16 MiB",
    ),
}


@pytest.mark.parametrize("passed", _PASSED)
def test_a_command_that_passes_a_limit_is_ended_and_told_which(bench: Bench, passed: str) -> None:
    """With a sandbox and without. A shell may hear of the limit of processes from the kernel."""
    shell, limits, told = _PASSED[passed]
    finished = bench.run(shell, limits=limits)

    assert finished.stopped == told or (passed == "processes" and "fork" in bench.stderr)
    assert finished.exit_code != 0


def test_the_kernel_bounds_processes_while_nobody_looks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine so busy that the worker comes too late; where it counts them at all."""
    group = ProcessGroup.made(1)
    if group is None and (bench.sandbox.name == "none" or os.geteuid() == 0):
        pytest.skip("this kernel, or this host, counts no processes of this user")
    if group is not None:
        group.remove()
    monkeypatch.setattr(following, "TICK", 3600.0)
    shell = (
        "import os, signal\npids = []\n"
        "try:\n    while len(pids) < 300:\n"
        "        pids.append(os.fork() or signal.pause())\n"
        "except BlockingIOError:\n    pass\n"
        "[os.kill(pid, 9) for pid in pids]\nprint(len(pids))"
    )
    limits = Limits(processes=40)
    bench.run(f"exec python3 - <<'END'\n{shell}\nEND", limits=limits)

    assert 30 < int(bench.stdout) <= limits.beyond_processes


def test_what_a_killed_worker_left_of_groups_is_removed(tmp_path: Path) -> None:
    """Those of workers that live stay."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    for pid in (gone.pid, os.getpid()):
        (tmp_path / f"holdfast-{pid}-1").mkdir()
    process_groups._sweep(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == [f"holdfast-{os.getpid()}-1"]


def test_what_processes_share_counts_once(bench: Bench) -> None:
    """Five processes with the same 60 MiB use 60 MiB."""
    shell = (
        "import os, signal, time\nheld = bytearray(b'x') * (60 << 20)\n"
        "pids = [pid for _ in range(4) if (pid := os.fork()) == 0 and signal.pause() or pid]\n"
        "until = time.monotonic() + 0.5\nwhile time.monotonic() < until: pass\n"
        "[os.kill(pid, 9) for pid in pids]\nprint(len(pids))"
    )
    finished = bench.run(
        f"exec python3 - <<'END'\n{shell}\nEND", limits=Limits(memory_bytes=150 * _MIB)
    )

    assert (finished.stopped, finished.exit_code, bench.stdout) == ("", 0, "4\n"), bench.stderr


@pytest.mark.parametrize("made", ["mmap.mmap(-1, SIZE)", "mmap.mmap(file(), SIZE)"])
def test_memory_that_is_mapped_counts_once(bench: Bench, made: str) -> None:
    """Not as a process's and as a file's, with a descriptor and without."""
    shell = (
        "import mmap, os, time\nSIZE = 100 << 20\n"
        "def file():\n    made = os.memfd_create('x')\n    os.truncate(made, SIZE)\n"
        "    return made\n"
        f"held = {made}\n"
        "for _ in range(100):\n    held.write(bytes([1]) * (1 << 20))\n"
        "until = time.monotonic() + 1.5\nwhile time.monotonic() < until: time.sleep(0.1)"
    )
    finished = bench.run(
        f"exec python3 - <<'END'\n{shell}\nEND", limits=Limits(memory_bytes=160 * _MIB)
    )

    assert (finished.stopped, finished.exit_code) == ("", 0), bench.stderr
