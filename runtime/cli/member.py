"""The processes that work together (``runtime/worker/crew.py``): the one that all others are forked
from, and these, each of which is a command, and ends with the process that started the first.
"""

from __future__ import annotations

import socket
import sys
from contextlib import suppress

from runtime.base.collector import loading
from runtime.base.roles import roles_in
from runtime.base.unused import leave_out
from runtime.cli.main import entry
from runtime.worker.crew import leave_with_parent
from runtime.worker.nursery import forks


def main() -> None:
    """Be the nursery of the socket and roles that ``sys.argv`` names behind this module, and in
    what it forks run the command behind them.
    """
    channel = socket.socket(fileno=int(sys.argv[2]))
    roles = roles_in(sys.argv[3], "roles")
    del sys.argv[1:4]
    leave_out()
    # Elsewhere a fork may not use what the system's own libraries have begun.
    if sys.platform == "linux":
        # The processes load it again, and say what is wrong.
        with suppress(Exception), loading():
            # What the command imports when it knows what it is to do.
            from runtime.cli import working  # noqa: F401
            from runtime.worker import serving  # noqa: F401
            from runtime.worker.worker import load

            load(roles)
    forks(channel)
    leave_with_parent()
    entry()
