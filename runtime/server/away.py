"""Which errors say that no server has answered."""

from __future__ import annotations

from temporalio.service import RPCError, RPCStatusCode

_BROKEN_OFF = ("transport error", "h2 protocol error", "error reading a body from connection")
"""What the SDK's core says, as of an error that it does not know, of a request whose server died
before it had answered.
"""

_BUSY = {
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.CANCELLED,
}
"""What a server answers that is busy or just begins: the jobs are safe in it."""


def is_away(error: RPCError) -> bool:
    """Whether no server has answered, as while it is started again."""
    broken_off = error.status is RPCStatusCode.UNKNOWN and error.message.startswith(_BROKEN_OFF)
    return broken_off or error.status is RPCStatusCode.UNAVAILABLE


def is_passing(error: RPCError) -> bool:
    """Whether the server is to be waited for: it is away, or has no time."""
    return is_away(error) or error.status in _BUSY
