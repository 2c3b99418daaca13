"""What is run in a sandbox, where, within which limits, and how it ended.

A ``Sandbox`` is the seam: anything that keeps these promises, a container engine for one, may take
bubblewrap's place.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from runtime.base.errors import HoldfastError
from runtime.base.os_values import VIRTUAL_ROOT

SETUP_ROOT = "/env"
"""Where a command sees what its job's set-up made, in a sandbox that can mount it there."""
SETUP_VARIABLE = "HOLDFAST_SETUP"
"""Tells a command where that is, in any sandbox."""

_MIB = 1024 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SandboxUnavailable(HoldfastError):
    """No command can be run in a sandbox on this host: what is missing, and what to do."""

    exit_code = 2


class SandboxFailed(HoldfastError):
    """The sandbox of one command could not be made; the command has not run."""


class SandboxKilled(SandboxFailed):
    """The sandbox of one command was ended by a signal that came from outside, neither from us nor
    from the command, which cannot reach it: how the command would have ended, nobody knows.
    """


@dataclass(frozen=True)
class Limits:
    """What one command may use, with all the processes that it starts."""

    seconds: float = 60.0
    memory_bytes: int = 2048 * _MIB
    """Of all its processes together, and of its temporary files, a workspace in memory included."""
    processes: int = 512
    """Threads count as processes."""
    file_bytes: int = 1024 * _MIB
    """The longest file that it may write."""
    output_bytes: int = 16 * _MIB
    """Standard output and error together."""
    disk_bytes: int = 4096 * _MIB
    """What it writes to the workspace, and to what set-up makes."""

    @property
    def beyond_processes(self) -> int:
        """How many processes the kernel lets it have. More than it may: who looks sees that they
        are too many, ends it, and says why, while a fork that is refused tells the command alone.
        """
        return 2 * (self.processes + 1)


@dataclass(frozen=True)
class Command:
    """A shell command.

    Raises:
        ValueError: if a variable has no name that a shell knows, or there is a NUL in anything.
    """

    shell: str
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    """Whether it gets the host's network, loopback included."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if "\0" in self.shell:
            raise ValueError("a command cannot have a NUL character in it")
        for name, value in self.env.items():
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot be the name of an environment variable")
            if "\0" in value:
                raise ValueError(f"the environment variable {name} has a NUL character in it")


@dataclass(frozen=True)
class Place:
    """What a command sees as its workspace, and of its job's set-up.

    Either ``directory``, or ``lowers`` with ``upper`` and ``work``; ``lowers`` alone is a
    workspace whose changes are thrown away, nothing at all an empty one. What is written to these
    two is memory.
    """

    root: str = VIRTUAL_ROOT
    """Where the workspace is; the working directory too."""
    directory: Path | None = None
    """A plain directory, writable."""
    lowers: tuple[Path, ...] = ()
    """An overlay's lower layers, the bottom one first; never written."""
    upper: Path | None = None
    """What the command changes lands here."""
    work: Path | None = None
    """An empty directory on the file system of ``upper``, for the kernel."""
    setup: Path | None = None
    """A directory of this host, at ``/env``."""
    setup_writable: bool = False

    def __post_init__(self) -> None:
        if self.directory is not None and (self.lowers or self.upper is not None):
            raise ValueError("a place is a directory or layers, not both")
        if (self.upper is None) != (self.work is None):
            raise ValueError("an upper layer needs a work directory, and the other way round")


@dataclass(frozen=True)
class Finished:
    """How a command ended. All its processes are gone."""

    exit_code: int
    """128 + n for signal n, as shells say."""
    seconds: float
    stopped: str = ""
    """Why it was ended, ``it ran for more than 60 s``; empty if it ended by itself."""
    output_cut: bool = False
    """Whether there was more output than was kept."""


class Sandbox(Protocol):
    """Runs one command at a time in each thread that asks."""

    @property
    def name(self) -> str:
        """``bwrap`` or ``none``, as in ``sandbox:`` of a workspace."""

    @property
    def system(self) -> str:
        """Which system's programs a command finds, as far as what it makes depends on that."""

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
        """Run ``command`` and write what it prints to ``stdout`` and ``stderr``.

        ``on_beat`` is called in this thread about once a second with the last whole line that was
        printed, once ``stop`` is set the command is ended. Its processes end with it, and with
        this process, however that ends.

        Raises:
            SandboxFailed: if it could not be started.
            SandboxKilled: if its sandbox was killed.
            Exception: what ``on_beat`` raises, after the command was ended.
        """
