"""A command on a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.cli.command_line import ROOT


def on_a_terminal(
    command: Sequence[str],
    directory: Path,
    environment: Mapping[str, str] | None = None,
    *,
    lines: int = 24,
    columns: int = 120,
    typed: str = "",
    shown: Callable[[str], None] = lambda written: None,
) -> tuple[int, str]:
    """Runs a command on a terminal of that size, with what is typed there; its exit code and all
    that was written to it. ``shown`` is called with what has been so far, each time that it grows.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = subprocess.Popen(
        command,
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TERM": "xterm-256color",
            **(environment or {}),
        },
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.write(ours, typed.encode())
    os.close(theirs)
    written = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        written += data
        shown(written.decode(errors="ignore"))
    os.close(ours)
    return process.wait(), written.decode().replace("\r\n", "\n")
