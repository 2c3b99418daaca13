"""Who gives a command."""

from __future__ import annotations


def caller() -> str:
    """``USER@HOST``, as the archive names who decided something."""
    import getpass
    import socket

    return f"{getpass.getuser()}@{socket.gethostname()}"
