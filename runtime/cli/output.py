"""What commands write: text for people, JSON for programs, raw bytes.

JSON is written in ASCII with escapes: exact for a program, and harmless on a terminal whatever a
model wrote.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from runtime.base.controls import clean
from runtime.base.errors import HoldfastError, ReaderGone

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_own: TextIO | None = None
"""Where stdout leads while it is kept for this module."""

_own_stderr: TextIO | None = None
"""Where stderr leads while it is kept for this module."""

_notes_to: Callable[[str], None] | None = None
"""Who takes notes while a table is drawn, which a line from elsewhere would break."""


def stdout() -> TextIO:
    """The stream that this module's output for people and programs goes to."""
    return _own or sys.stdout


def _echo(text: str, *, nl: bool = True) -> None:
    typer.echo(text, file=stdout(), nl=nl)


def say(text: str) -> None:
    """Writes one or more lines to stdout, without terminal control sequences."""
    _echo(clean(text))


def say_all(lines: Iterable[str]) -> None:
    """``say`` of many lines, sent at once. Each is cleaned by itself: none may hide another."""
    _echo("".join(f"{clean(line)}\n" for line in lines), nl=False)


def write(text: str) -> None:
    """Writes a part of a line, or lines, to stdout, without terminal control sequences."""
    _echo(clean(text), nl=False)


def note(text: str) -> None:
    """Writes one or more lines to stderr, without terminal control sequences."""
    if _notes_to is not None:
        _notes_to(clean(text))
        return
    # Of what cannot be told nobody can be told.
    with suppress(OSError, HoldfastError):
        typer.echo(clean(text), file=_own_stderr or sys.stderr)


def stderr_is_terminal() -> bool:
    """Whether somebody reads the notes as they come."""
    return (_own_stderr or sys.stderr).isatty()


class _Descriptor(io.FileIO):
    """Where one of this module's streams leads. When that is a terminal which is gone, it leads
    nowhere from then on: whoever is to hear of that (SIGHUP) hears of it a little later.
    """

    def write(self, data: ReadableBuffer, /) -> int:
        """As many bytes as were written.

        Raises:
            ReaderGone: if it is a pipe that nobody reads from any more.
            HoldfastError: if it cannot be written, as a file on a full disk.
        """
        try:
            return super().write(data)
        except BrokenPipeError as error:
            raise ReaderGone("nobody reads what is printed") from error
        except OSError as error:
            if error.errno != errno.EIO or not _is_device(self.fileno()):
                problem = f"what is printed cannot be written: {error.strerror}"
                raise HoldfastError(problem) from error
            leave_terminal()
            return super().write(data)


def _kept(descriptor: int, like: TextIO) -> TextIO:
    """A stream of its own to where ``descriptor`` leads now."""
    return _stream(_Descriptor(os.dup(descriptor), "w"), like)


def _stream(raw: _Descriptor, like: TextIO) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=like.encoding, errors=like.errors, line_buffering=True
    )


def own_descriptor() -> None:
    """Have stdout tell why it cannot be written whoever prints to it, as help is by others."""
    if _is_stdout(sys.stdout):
        sys.stdout = _stream(_Descriptor(1, "w", closefd=False), sys.stdout)


def _is_device(descriptor: int) -> bool:
    """Whether it may be, or may have been, a terminal: of one that is gone nobody tells."""
    return stat.S_ISCHR(os.fstat(descriptor).st_mode)


def leave_terminal() -> None:
    """Writes no more to a terminal that is gone, where each write would fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, stdout(), _own_stderr or sys.stderr, sys.stdout, sys.stderr):
        # Under a test it may be no descriptor.
        with suppress(OSError, ValueError):
            if _is_device(stream.fileno()):
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def notes_to(taker: Callable[[str], None] | None) -> None:
    """Have ``taker`` take the notes from now on; None: stderr again."""
    global _notes_to
    _notes_to = taker


JSON_VERSION = 1
"""Of the shapes of what ``--json`` prints (docs/json.md).

A key that goes, or whose values change, raises it; a new key does not.
"""


def json_document(value: Any) -> None:
    """Writes ``value``, a JSON value, to stdout as one indented document."""
    _echo(json.dumps(value, indent=2))


def json_line(value: Any) -> None:
    """Writes ``value``, a JSON value, to stdout as one line, at once."""
    _echo(json.dumps(value))


def pretty(value: Any) -> str:
    """``value``, a JSON value, as indented text for people."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def raw(data: bytes) -> None:
    """Writes ``data`` to stdout as it is; to a terminal, which would obey it, without control
    sequences.
    """
    if sys.stdout.isatty():
        text = data.decode("utf-8", "replace")
        typer.echo(clean(text))
        if clean(text).encode() != data:
            note(
                "control sequences and bytes that are no text are left out on a terminal: redirect"
                " for the exact bytes"
            )
        return
    # What was written as text stands in another buffer, and comes before these bytes.
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@contextmanager
def own_stdout() -> Iterator[None]:
    """Keeps stdout for this module: what tools and libraries print meanwhile, child processes too,
    goes to stderr.
    """
    global _own
    original = sys.stdout
    # What waits in the buffer was written before, and still goes to the real one.
    original.flush()
    # Under a test, or in a program that embeds this one, it may be no descriptor.
    kept = os.dup(1) if _is_stdout(original) else None
    if kept is not None:
        _own = _kept(1, original)
        # The descriptor too: child processes and C libraries do not ask ``sys.stdout``.
        os.dup2(2, 1)
    else:
        _own = original
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = original
        mine, _own = _own, None
        mine.flush()
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)
            mine.close()


@contextmanager
def own_stderr(log: Path) -> Iterator[None]:
    """Keeps stderr for this module: what tools, libraries and child processes write there meanwhile
    is appended to ``log``.
    """
    global _own_stderr
    original = sys.stderr
    original.flush()
    # Appended, since several processes write to one log.
    kept, taken = os.dup(2), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _own_stderr = _kept(2, original)
    os.dup2(taken, 2)
    os.close(taken)
    try:
        yield
    finally:
        # What others wrote meanwhile belongs to the log still.
        original.flush()
        mine, _own_stderr = _own_stderr, None
        mine.flush()
        os.dup2(kept, 2)
        os.close(kept)
        mine.close()


def _is_stdout(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (OSError, ValueError):
        return False
