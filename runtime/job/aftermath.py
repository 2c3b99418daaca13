"""What a turn leaves behind that is archived later: with the next call, or with the run's end."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any

from runtime.base.values import Later, LeftOut, Value
from runtime.context.interim import Interim
from runtime.job.condensed import CondensationOutcome


class Aftermath(Value):
    """What came of the last turn's statement, and of what else happened since its call.

    ``execution`` is the statement's. ``nodes`` are the states of live nodes by their ``obj_id``:
    all of them or those that changed since the call; one with ``"removed": true`` is gone.
    ``condensations`` are those that took effect. ``events`` are the context's, None in archives
    from before they were recorded. ``workspace`` is the version that the job's own workspace is at
    now. All of it is JSON, and not interpreted here.
    """

    execution: dict[str, Any] | None = None
    nodes: tuple[dict[str, Any], ...] = ()
    condensations: Annotated[tuple[CondensationOutcome, ...], LeftOut()] = ()
    events: Annotated[tuple[dict[str, Any], ...] | None, Later()] = None
    workspace: Annotated[str, LeftOut()] = ""


class BetweenCalls(Aftermath):
    """What a call is told, and its step says, of the time since the call before.

    ``interim`` is what came between the statement and this prompt. ``reset_event_id`` is the event
    to which a Temporal reset takes the run back to before this call.
    """

    interim: Annotated[Interim, LeftOut(attrgetter("empty"))] = Interim()
    reset_event_id: int
