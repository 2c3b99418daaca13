"""What came between a statement and the next prompt, beside readings: what a replay must know to
come to the same.
"""

from __future__ import annotations

from runtime.base.values import Compact, Usage
from runtime.context.sub_job_end import SubJobEnd


class Interim(Compact):
    """What a step records of the time before its call.

    ``payloads`` are those that the turn's tick applied and that changed something: the node, and
    the turn and the number under which the archive has what was read (0: a summary could not be
    written); ``dropped`` are those that it, or a tick of the sleep before, dropped, stale or
    superseded. ``at`` is the workflow time of the turn's tick, in seconds, where nodes' ticks
    depend on it. ``woken`` is the delta feed's line on the sleep that the statement before asked
    for; ``ticks`` are the times of those of its ticks that brought something new, and ``asleep``
    the payloads that they applied, each after the number of its tick. ``usage`` and ``cost_usd``
    are those of summaries that were written in the background and booked since the call before.
    ``condense``: a user had asked that older turns be condensed. ``limits`` are the most tokens
    that a prompt might have after each refusal of the turn's prompt as too long. ``ended`` are the
    ends of sub-jobs that the turn began with.
    """

    at: float | None = None
    payloads: tuple[tuple[str, int, int], ...] = ()
    dropped: int = 0
    woken: str = ""
    ticks: tuple[float, ...] = ()
    asleep: tuple[tuple[int, str, int, int], ...] = ()
    usage: Usage = Usage()
    cost_usd: float = 0.0
    condense: bool = False
    limits: tuple[int, ...] = ()
    ended: tuple[SubJobEnd, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing of it need be recorded."""
        return self == Interim()
