"""What a job's ``setup:`` makes: once on a host for equal inputs, then ``/env`` of its commands.

A directory of its own holds each: ``env``, which the commands made, and ``log``, what they printed.
The log is put in place last: where there is none, a run was cut off, and what it left is deleted.
It is made where it stays: virtual environments know their own path, and without a sandbox that is
not ``/env``.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock, Timeout

from runtime.base.digests import digest_bytes
from runtime.base.errors import HoldfastError
from runtime.base.kept import put_in_place
from runtime.base.spec.models import SETUP_SECONDS
from runtime.sandbox.command import Command, Limits, Place, Sandbox
from runtime.sandbox.layers import remove_tree

_GIB = 1024**3
SETUP_LIMITS = Limits(
    seconds=SETUP_SECONDS,
    memory_bytes=8 * _GIB,
    file_bytes=8 * _GIB,
    disk_bytes=32 * _GIB,
)
"""Downloads and builds take more than a statement's commands."""

_FORMAT = 1
_PAUSE = 0.2
_TAIL = 2000
"""Bytes of the log that an error shows."""


class SetupFailed(HoldfastError):
    """A job's set-up ended with an error, or was ended: how, and the end of its log."""

    def __init__(self, message: str, log: bytes) -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True)
class Setup:
    """The commands of ``setup:``, and all that their outcome depends on."""

    shell: str
    """Run with ``set -e``: the first command that fails ends it."""
    base: str
    """The digest of the files that it finds in the workspace."""
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = True
    limits: Limits = SETUP_LIMITS

    def key(self, sandbox: Sandbox) -> str:
        """Names what it makes on this host, in ``sandbox``."""
        inputs = [_FORMAT, sandbox.name, self.shell, self.base, sorted(self.env.items())]
        inputs += [self.network, sandbox.system]
        digest = digest_bytes(json.dumps(inputs).encode("utf-8", "surrogatepass"))
        return digest.rpartition(":")[2][:32]


@dataclass(frozen=True)
class Made:
    """What a set-up made."""

    directory: Path
    """For ``Place.setup``."""
    log: bytes
    """What it printed, here or when it was run for another job."""
    ran: bool
    """Whether it was run now."""


def already_made(setup: Setup, sandbox: Sandbox, top: Path) -> Made | None:
    """What ``setup`` made in ``top``; None if it has not run to its end there."""
    return _made(top / setup.key(sandbox))


def made(
    setup: Setup,
    sandbox: Sandbox,
    place: Place,
    top: Path,
    *,
    on_beat: Callable[[str], None],
    stop: threading.Event,
) -> Made:
    """What ``setup`` makes, from ``top`` or by running it there.

    ``place`` has the workspace's files, and is not kept: layers, or a copy.
    Who asks while another runs it, in whatever process, waits and shares what comes of that.

    Raises:
        SetupFailed: if it fails, or is stopped.
        SandboxFailed: if there could be no sandbox.
    """
    home = top / setup.key(sandbox)
    home.mkdir(parents=True, exist_ok=True)
    # Before the lock: who fails while this waits has failed for it too.
    failures = _failure(home)[0]
    with _alone(home, on_beat, stop):
        if (there := _made(home)) is not None:
            return there
        number, message = _failure(home)
        if number != failures:
            raise SetupFailed(message, _read(home / "printed"))
        _run(setup, sandbox, place, home, number, on_beat=on_beat, stop=stop)
        return Made(home / "env", (home / "log").read_bytes(), ran=True)


def _made(home: Path) -> Made | None:
    log = home / "log"
    return Made(home / "env", log.read_bytes(), ran=False) if log.exists() else None


def _run(
    setup: Setup,
    sandbox: Sandbox,
    place: Place,
    home: Path,
    number: int,
    *,
    on_beat: Callable[[str], None],
    stop: threading.Event,
) -> None:
    _clear(home)
    (home / "env").mkdir()
    finished = sandbox.run(
        # On one line, so that the shell tells the user's own line numbers.
        Command(
            f"set -e; exec 2>&1; {setup.shell}",
            env=setup.env,
            network=setup.network,
            limits=setup.limits,
        ),
        replace(place, setup=home / "env", setup_writable=True),
        home / "printed",
        home / "errors",
        on_beat=on_beat,
        stop=stop,
    )
    if finished.exit_code or finished.stopped:
        how = finished.stopped or f"it ended with exit code {finished.exit_code}"
        message = f"the set-up failed: {how}. {_tail(home / 'printed')}"
        _clear(home)
        # A run that was cancelled says nothing of its commands.
        if not stop.is_set():
            _note_failure(home, number + 1, message)
        raise SetupFailed(message, _read(home / "printed"))
    # The log says that the rest is whole.
    put_in_place(home / "printed", home / "log")


def _clear(home: Path) -> None:
    """Delete what a run has left: aside, as the last processes of a killed worker may write yet."""
    with suppress(FileNotFoundError):
        (home / "env").rename(home / f"cut-off-{os.getpid()}-{time.monotonic_ns()}")
    for left in home.glob("cut-off-*"):
        with suppress(OSError):
            remove_tree(left)


@contextmanager
def _alone(home: Path, on_beat: Callable[[str], None], stop: threading.Event) -> Iterator[None]:
    """Hold the lock of one set-up on this host; its holder's death gives it free."""
    lock = FileLock(home / "lock", thread_local=False)
    while True:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            on_beat("waiting for the same set-up of another job")
            if stop.wait(_PAUSE):
                raise SetupFailed("the set-up was cancelled while it waited", b"") from None
        else:
            break
    try:
        yield
    finally:
        lock.release()


def _failure(home: Path) -> tuple[int, str]:
    """How often it failed here, and how the last time."""
    try:
        number, message = json.loads((home / "failed").read_bytes())
    # After a power cut the name may be on the disk, and what it names not.
    except (FileNotFoundError, ValueError):
        return 0, ""
    return number, message


def _note_failure(home: Path, number: int, message: str) -> None:
    """For those who wait now; who comes later tries again."""
    aside = home / "failed.new"
    aside.write_text(json.dumps([number, message]))
    aside.rename(home / "failed")


def _tail(log: Path) -> str:
    printed = _read(log)
    end = printed[-_TAIL:]
    # In whole lines: secrets are masked by who tells it, and half of one is found by no search.
    if len(printed) > _TAIL:
        end = end.partition(b"\n")[2].strip() or end
    text = end.decode("utf-8", "replace").strip()
    return f"The end of what it printed:\n{text}" if text else "It printed nothing."


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
