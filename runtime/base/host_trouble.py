"""Errors of the system that are the host's own, and say nothing of what was asked of it."""

from __future__ import annotations

import errno

_HOSTS = {
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ESTALE),
    # Only a host's own files are written: those that a version is laid out as.
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS),
}


class NoProcess(OSError):
    """A process of ours could not be started: there are too many, say (EAGAIN)."""


def host_trouble(error: BaseException) -> bool:
    """Whether ``error`` says nothing of the file: no descriptors, no memory, no room, no
    process.

    Worth a retry, not the model's concern.
    """
    return isinstance(error, NoProcess) or (isinstance(error, OSError) and error.errno in _HOSTS)
