"""The exceptions that Holdfast raises to its users.

::

    HoldfastError                 exit code 1
    ├── InputError                2   a jobs file, a flag or an argument is wrong; nothing was
    │                                 started
    │   └── DefinitionChanged     2   a started job's definition differs from the one it was started
    │                                 with
    ├── NotFound                  2   no such batch, job, run or turn
    ├── ServerError               1   Temporal cannot be started or reached
    ├── ArchiveError              1   the object store cannot be read or written
    │   ├── ObjectMissing         4   an object that should be there is not
    │   └── ObjectCorrupt         4   an object's bytes do not have the digest it is known by
    ├── VerificationError         4   verification or replay found a difference
    └── ReaderGone              141   what is printed has no reader any more, as with ``| head``

A message says what happened, to what, and what to do about it.
"""

from __future__ import annotations


class HoldfastError(Exception):
    """Base of every error that is shown to a user without a traceback."""

    exit_code = 1


class InputError(HoldfastError):
    """Bad input: which file, which line, which key, and what was expected."""

    exit_code = 2


class DefinitionChanged(InputError):
    """The definition of a job that was already started differs from the one given now."""


class NotFound(HoldfastError):
    """The named batch, job, run or turn does not exist."""

    exit_code = 2


class ServerError(HoldfastError):
    """A Temporal server cannot be started or reached."""


class ArchiveError(HoldfastError):
    """The archive's object store cannot be read or written."""


class ObjectMissing(ArchiveError):
    """An object that the archive should hold is not there."""

    exit_code = 4


class ObjectCorrupt(ArchiveError):
    """An object's bytes do not have the digest by which it is known."""

    exit_code = 4


class VerificationError(HoldfastError):
    """Verification or replay found a difference."""

    exit_code = 4


class ReaderGone(HoldfastError):
    """The reader of a pipe has gone before the command had ended; nobody is left to tell."""

    exit_code = 141
    """As a shell has it of a program that SIGPIPE ends."""
