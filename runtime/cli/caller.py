"""Who gives a command."""

from __future__ import annotations


def caller() -> str:
    """``USER@HOST``, as the archive names who decided something; of a user that the system has no
    entry for the number.
    """
    import getpass
    import os
    import socket

    try:
        user = getpass.getuser()
    # Python 3.13 raises the latter.
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
