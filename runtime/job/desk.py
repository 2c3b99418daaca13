"""What the parts of a job share: none of them is handed the job itself (docs/design.md section 3)."""

from __future__ import annotations

from collections.abc import Callable

from runtime.context.graph import ContextGraph
from runtime.history.log import EventLog
from runtime.history.properties import ALL_PROPERTIES, USER_MESSAGES_PINNED
from runtime.interpreter.run import Session
from runtime.job.places import Places
from runtime.job.surface import Surface
from runtime.projection.project import Projector
from runtime.projection.segments import Segment
from runtime.spec.models import JobSpec


class Desk:
    """The conversation, the nodes and how they are shown, the interpreter, and the last prompt.

    ``key`` seeds the interpreter's random numbers; ``count`` counts tokens. ``replies`` are the segments of the
    model's replies by turn, ``shown`` the digests of the last prompt's segments.
    """

    def __init__(self, spec: JobSpec, key: str, count: Callable[[str], int]) -> None:
        self.spec = spec
        self.key = key
        self.count = count
        self.turn = 0
        self.log = EventLog(USER_MESSAGES_PINNED if spec.pin_user_messages else ALL_PROPERTIES)
        self.graph = ContextGraph(count, writer=spec.writer is not None)
        self.places = Places(spec.projection, count)
        self.surface = Surface(self.graph, count, self.places)
        self.session = Session()
        self.projector = Projector(count)
        self.replies: dict[int, Segment] = {}
        self.shown: tuple[str, ...] = ()
