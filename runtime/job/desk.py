"""What the parts of a job share: none of them is handed the job itself (docs/design.md section
3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from runtime.base.digests import joined_digests, split_digests
from runtime.base.spec.models import JobSpec
from runtime.base.spec.servers import ServerListing
from runtime.base.values import fields_of
from runtime.context.graph import ContextGraph
from runtime.history.codec import event_from_json, event_to_json
from runtime.history.events import is_shown
from runtime.history.log import EventLog
from runtime.history.properties import ALL_PROPERTIES, USER_MESSAGES_PINNED
from runtime.interpreter.hands import Outputs
from runtime.interpreter.session import SavedSession, Session
from runtime.job.places import Places, SavedPlaces
from runtime.job.saved_prompt import SavedReply, restored_replies, saved_replies
from runtime.job.surface import SavedSurface, Surface
from runtime.projection.project import Projector
from runtime.projection.segments import Segment


class SavedDesk(SavedSession, SavedSurface, SavedPlaces):
    """What a checkpoint has of a desk.

    What only looks back is not in it: events that were forgotten stay in the checkpoints and steps
    before, and the previous prompt is there as the digests of its segments.
    """

    key: str
    turn: int
    events: tuple[dict[str, Any], ...]
    condensation_requested: bool = False
    graph: dict[str, Any]
    replies: tuple[SavedReply, ...] = ()
    layout: str
    servers: tuple[ServerListing, ...] = ()
    workspace: str = ""
    outputs: dict[str, str] = {}
    approved: tuple[str, ...] = ()


class Desk:
    """The conversation, the nodes and how they are shown, the interpreter, and the last prompt.

    ``key`` seeds the interpreter's random numbers; ``count`` counts tokens. ``replies`` are the
    segments of the model's replies by turn, ``shown`` the digests of the last prompt's segments,
    ``servers`` what the job's MCP servers offered when it began. ``workspace`` is the version that
    the job's own workspace is at, if it has one, and ``outputs`` what its commands printed;
    ``approved`` are the digests of calls that need no further approval.
    """

    def __init__(
        self,
        spec: JobSpec,
        key: str,
        count: Callable[[str], int],
        servers: tuple[ServerListing, ...] = (),
    ) -> None:
        self.spec = spec
        self.servers = servers
        # A list and no set: what is saved of it must be the same in each process.
        self.approved: list[str] = []
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
        self.workspace = ""
        self.outputs = Outputs()

    # They come from the definition.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset({"spec", "count", "projector"})

    def saved(self) -> SavedDesk:
        """For a checkpoint."""
        shown = list(self.log.view)
        parts = (
            self.session.saved(),
            self.surface.saved(),
            self.places.saved(event.id for event in shown),
        )
        return SavedDesk(
            **fields_of(*parts),
            key=self.key,
            turn=self.turn,
            events=tuple(event_to_json(event) for event in shown),
            condensation_requested=self.log.view.unhandled_condensation_request,
            graph=self.graph.dump(),
            replies=saved_replies(self.replies, shown, self.turn),
            layout=joined_digests(self.shown),
            servers=self.servers,
            workspace=self.workspace,
            outputs=self.outputs.known,
            approved=tuple(self.approved),
        )

    def restore(self, saved: SavedDesk) -> None:
        """As it was saved.

        Raises:
            InputError: if the graph is damaged.
            ValueError: if anything else is.
        """
        self.key, self.turn, self.servers = saved.key, saved.turn, saved.servers
        self.approved = list(saved.approved)
        events = [event for event in map(event_from_json, saved.events) if is_shown(event)]
        self.log = EventLog.resumed(
            events,
            unhandled_request=saved.condensation_requested,
            properties=self.log.view.properties,
        )
        self.graph = ContextGraph.load(saved.graph, self.count, writer=self.spec.writer is not None)
        self.session = Session.restored(saved)
        self.places.restore(saved)
        self.surface.restore(saved)
        # The surface was made with the graph of before: it must look at the one that was loaded.
        self.surface.graph, self.surface.names = self.graph, self.session.names.handles
        self.replies = restored_replies(saved.replies, events)
        self.shown = split_digests(saved.layout)
        self.workspace, self.outputs = saved.workspace, Outputs(saved.outputs)
