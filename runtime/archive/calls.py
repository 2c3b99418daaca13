"""What a run's archive holds beside its turns: summaries that a model wrote for it, and the results
of its effects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime.archive import keys
from runtime.archive.forms import Attempt, Step
from runtime.archive.gaps import Gap, named_gap, start_gap
from runtime.archive.job import JobArchive
from runtime.base.errors import ObjectCorrupt


@dataclass(frozen=True)
class SideCall:
    """A model call that wrote a summary before the call of ``turn``.

    ``run`` is the side run of ``archive`` that holds it.
    """

    archive: JobArchive
    run: str
    turn: int

    @property
    def step(self) -> Step | None:
        """The reply; None if there is none."""
        return self.archive.find_step(self.run, self.turn)

    @property
    def attempts(self) -> list[Attempt]:
        """The attempts at the call."""
        return self.archive.attempts(self.run, self.turn)


def side_calls(archive: JobArchive, run: str, gaps: list[Gap]) -> list[SideCall]:
    """The summaries that were written for a run, and for the turns of the runs that it started
    from, in turn order.

    Starts that cannot be read are put into ``gaps``; what nobody knows the turn of is left out.
    """
    calls = []
    for span in archive.lineage.spans(run):
        of = JobArchive.of(archive.store, span.job)
        for side in of.side_runs(span.run):
            try:
                # A side run has one turn: that before whose call it was made.
                turn = of.lineage.spans(side)[-1].first
            except ObjectCorrupt as error:
                gaps.append(named_gap(error))
                continue
            if not span.holds(turn):
                continue
            calls.append(SideCall(of, side, turn))
            if (gap := start_gap(of, keys.run_prefix(of.prefix, side))) is not None:
                gaps.append(gap)
    return sorted(calls, key=lambda call: call.turn)


def recorded_effect(archive: JobArchive, key: str, digest: str | None = None) -> dict[str, Any]:
    """The recorded result of an effect: with run, turn, number, value, and the ``digest`` by which
    it is named, its own if nothing names it.
    """
    archived = archive.objects.get(key, "effect")
    told = {name: archived.header[name] for name in ("run", "turn", "effect", "value")}
    return {"key": key, "digest": digest or archived.digest, **told}
