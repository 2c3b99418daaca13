"""Ports that stay free until they are used.

The system gives ports of one range to every connection that a process of the machine opens. One
that is free in there may be somebody's a moment later, before our server listens on it or while it
is down: its clients would not find the next one. So ports are chosen below that range.
"""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

HOST = "127.0.0.1"
"""The embedded server listens on the loopback interface only."""

# Most services have their own ports below it.
LOWEST = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST_OF_CONNECTIONS = 32_768
"""Linux' own setting; other systems begin higher."""
_TRIES = 100
"""More than are asked for, for some may be taken."""


def unused_ports(count: int) -> list[int]:
    """``count`` ports on which nobody listens, and which no outgoing connection is given.

    Where there are none, any that are free now.
    """
    above = _first_of_connections()
    candidates = range(LOWEST, max(LOWEST, above))
    tried = random.SystemRandom().sample(candidates, min(_TRIES, len(candidates)))
    free = list(islice(filter(port_is_free, tried), count))
    with ExitStack() as held:
        others = [held.enter_context(socket.socket()) for _ in range(count - len(free))]
        for one in others:
            one.bind((HOST, 0))
        return [*free, *(int(one.getsockname()[1]) for one in others)]


def port_is_free(port: int) -> bool:
    """Whether nobody listens on ``port``."""
    with socket.socket() as probe:
        # As the server does: connections of a killed server that linger do not make its port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _first_of_connections() -> int:
    try:
        return int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _FIRST_OF_CONNECTIONS
