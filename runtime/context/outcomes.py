"""How a call on the context ends: with a value, with an exception for the model, or with a source
to be read first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runtime.context.sources import ReadRequest
from runtime.context.states import ViewState


@dataclass(frozen=True)
class NodeRef:
    """A node as it crosses between the interpreter and the context."""

    obj_id: str


@dataclass(frozen=True)
class Returned:
    """The call's value: JSON-like, ``None``, a ``NodeRef`` or a list of them.

    With ``display``, the value is text for the framework message: print it, and resume the
    statement with ``None``.
    """

    value: Any = None
    display: bool = False


@dataclass(frozen=True)
class Raised:
    """The name and message of the Python exception that the call raises in the statement."""

    type: str
    message: str


@dataclass(frozen=True)
class PendingCall:
    """A call that waits for a read; hand it to ``ContextGraph.complete`` with the result.

    ``draft`` is the node that ``view(...)`` makes if the read succeeds. ``keep`` tells that the
    reading becomes the node's rendering; without it the reading is for this answer alone
    (``show(foo, lod=1)``).
    """

    name: str
    obj_id: str
    request: ReadRequest
    keep: bool = True
    draft: ViewState | None = None
    lod: int | None = None
    tokens: int | None = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NeedsRead:
    """Read ``request``'s source, an effect, then go on with ``call``."""

    request: ReadRequest
    call: PendingCall


Outcome = Returned | Raised | NeedsRead


class Refused(Exception):
    """A call that the model got wrong, on its way to becoming ``Raised``. No node was changed."""

    def __init__(self, type_: type[Exception], message: str) -> None:
        super().__init__(message)
        self.raised = Raised(type_.__name__, message)
