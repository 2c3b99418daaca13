"""What a run's archive holds beside its turns: summaries that a model wrote for it, and the results
of its effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.archive.container import unseal
from runtime.archive.forms import Attempt, Step
from runtime.archive.job import JobArchive
from runtime.archive.stores.protocol import ObjectStore


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


def side_calls(archive: JobArchive, run: str) -> list[SideCall]:
    """The summaries that were written for a run, and for the turns of the runs that it started
    from, in turn order.
    """
    calls = []
    for span in archive.lineage.spans(run):
        of = JobArchive.of(archive.store, span.job)
        for side in of.side_runs(span.run):
            # A side run has one turn: that before whose call it was made.
            turn = of.lineage.spans(side)[-1].first
            if span.holds(turn):
                calls.append(SideCall(of, side, turn))
    return sorted(calls, key=lambda call: call.turn)


def recorded_effects(store: ObjectStore, effects: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The recorded results of effects, given by their keys and digests: with run, turn, number and
    value.
    """
    for key, digest in effects.items():
        header = unseal(key, store.get(key), "effect").header
        yield {
            "key": key,
            "digest": digest,
            **{name: header[name] for name in ("run", "turn", "effect", "value")},
        }
