"""What a run's archive holds beside its turns: summaries that a model wrote for it, and the results
of its effects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runtime.archive import keys
from runtime.archive.forms import Attempt, Step
from runtime.archive.gaps import Gap, named_gap, start_gap
from runtime.archive.job import JobArchive
from runtime.archive.lineage import Span
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
    from, in turn order; also in the runs on the way there that made no call.

    Starts that cannot be read are put into ``gaps``; what nobody knows the turn of is left out.
    """
    calls = []
    for span in archive.lineage.spans(run):
        of = JobArchive.of(archive.store, span.job)
        for side, turn in _sides(of, span, gaps):
            calls.append(SideCall(of, side, turn))
            if (gap := start_gap(of, keys.run_prefix(of.prefix, side))) is not None:
                gaps.append(gap)
    return sorted(calls, key=lambda call: call.turn)


def _sides(of: JobArchive, span: Span, gaps: list[Gap]) -> Iterator[tuple[str, int]]:
    """The side runs of a span, each with its turn: that before whose call it was made."""
    for one in reversed(span.with_through):
        for side in of.side_runs(one.run):
            try:
                turn = of.lineage.spans(side)[-1].first
            except ObjectCorrupt as error:
                gaps.append(named_gap(error))
                continue
            # On the way to a run what precedes its first call is written.
            if span.holds(turn) if one is span else turn == span.first:
                yield side, turn


def recorded_effect(archive: JobArchive, key: str, digest: str | None = None) -> dict[str, Any]:
    """The recorded result of an effect: with run, turn, number, value, and the ``digest`` by which
    it is named, its own if nothing names it.
    """
    archived = archive.objects.get(key, "effect")
    told = {name: archived.header[name] for name in ("run", "turn", "effect", "value")}
    return {"key": key, "digest": digest or archived.digest, **told}
