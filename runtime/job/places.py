"""Where views stand in the prompt, and when what stands there is rewritten (docs/design.md section
7, docs/contract/executable-context.md section 1.2).

A view stands where the statement that made it stands, and is re-evaluated there. Providers bill a
prefix that they know at a tenth, so a rewrite in the middle costs about as much as all that stands
behind it. Three policies:

``inline``  rewrites a place in the turn in which its view changed.
``append``  never rewrites: what changed is told further down, in a message of its own, and only for
            room are places rewritten.
``auto``    does in each turn what costs less until the job's end, as far as that can be foreseen,
            and rewrites several places at one cut: behind a place that is rewritten all the others
            cost nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from runtime.base.fences import fenced, unfenced
from runtime.base.spec.models import ProjectionPolicy
from runtime.base.values import Value
from runtime.context.diffs import line_diff
from runtime.context.states import RenderedView
from runtime.projection.prices import Prices
from runtime.projection.project import MESSAGE_TOKENS, Changes, Standing

LEAST_HORIZON = 8
"""Turns that a job is expected to have left at least, if its budget has them; else as many as it
has had.
"""

WHY_CHARS = 300
"""Characters of the line that says why a prefix moved: it is part of the turn's history."""

SHOWN_CAUSES = 3
"""Causes of one rewrite that are named."""


class Placed(Value):
    """What stands at a view's place: its text under its header, or (not ``shown``) a mark that says
    why it is not there.

    ``first_line`` is the source's line with which the text begins.
    """

    shown: bool
    text: str
    first_line: int = 0


class Place(Value):
    """A view's place as the model has seen it: what stands there, what it was told since, and by
    which messages.

    ``told`` is None if that is what stands there.
    """

    placed: Placed
    told: Placed | None = None
    updates: tuple[str, ...] = ()

    @property
    def known(self) -> Placed:
        """The view's state as the model knows it."""
        return self.told or self.placed


class Current(Protocol):
    """What the places need of the surface."""

    @property
    def places(self) -> Mapping[str, int]:
        """The views that have a place among the events, and the place's number."""
        ...

    def to_place(self) -> set[str]:
        """The nodes for which ``current`` may be another than when this was asked last."""
        ...

    def current(self, obj_id: str) -> Placed:
        """What would stand at the view's place now."""
        ...

    def is_pinned(self, obj_id: str) -> bool:
        """Whether the view is to be seen in full whatever happens."""
        ...


class SavedPlaces(Value):
    """What a checkpoint has of places.

    ``superseded`` are the messages of the framework that the prompt shows no more.
    """

    places: dict[str, Place] = {}
    superseded: tuple[str, ...] = ()
    causes: dict[str, str] = {}
    prices: Prices = Prices()


@dataclass
class Places:
    """The places of one job.

    ``reason`` says why places were rewritten in this turn, or is empty.
    """

    policy: ProjectionPolicy
    count: Callable[[str], int]
    prices: Prices = field(default_factory=Prices)
    known: dict[str, Place] = field(default_factory=dict)
    dropped: dict[str, None] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    told_this_turn: frozenset[str] = frozenset()
    _open: set[str] = field(default_factory=set)
    _moved: set[str] = field(default_factory=set)
    _superseded: int = 0

    # The rest is of one turn, or of the definition.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset(
        {"policy", "count", "reasons", "told_this_turn", "_open", "_moved", "_superseded"}
    )

    def saved(self, shown: Iterable[str]) -> SavedPlaces:
        """For a checkpoint; ``shown`` are the ids of the View's events."""
        return SavedPlaces(
            places=self.known,
            superseded=tuple(event for event in shown if event in self.dropped),
            causes={obj_id: cause for obj_id, cause in self.causes.items() if obj_id in self.known},
            prices=self.prices,
        )

    def restore(self, saved: SavedPlaces) -> None:
        """As it was saved."""
        self.known, self.dropped = dict(saved.places), dict.fromkeys(saved.superseded)
        self.causes, self.prices = dict(saved.causes), saved.prices

    @property
    def why(self) -> str:
        """The reasons in a line."""
        return "; ".join(self.reasons)[:WHY_CHARS]

    def begin_turn(self) -> None:
        """Forget what the prompt before was rewritten for."""
        self.reasons.clear()
        self.told_this_turn = frozenset()

    def changed(self, obj_id: str, turn: int, cause: str) -> None:
        """Remember what changed a view last, and in which turn."""
        self.causes[obj_id] = f"turn {turn}: {cause}"

    def at(self, obj_id: str) -> Placed | None:
        """What stands at the place; None for one that is new."""
        place = self.known.get(obj_id)
        return None if place is None else place.placed

    def settle(
        self,
        surface: Current,
        stable: Callable[[], Standing],
        horizon: int,
        tell: Callable[[str], str],
    ) -> None:
        """Decide once a turn, before its first prompt: rewrite, or tell.

        ``tell`` appends a message and returns its event's id.

        ``stable`` tells how the prompt's segments without the tail stand before that.
        """
        now = self._stale(surface)
        stale = list(now)
        if not stale:
            return
        updates = {
            o: self._update(self.known[o].known, now[o], whole=surface.is_pinned(o)) for o in stale
        }
        cut = self._cut(stale, now, updates, stable, horizon)
        self._rewrite(stale[cut:], now)
        told = set()
        for obj_id in stale[:cut]:
            place = self.known[obj_id]
            # A change that a message told in an earlier turn is not told again.
            if place.known != now[obj_id]:
                event = tell(updates[obj_id])
                told.add(obj_id)
                self.known[obj_id] = place.model_copy(
                    update={"told": now[obj_id], "updates": (*place.updates, event)}
                )
        # Still behind: weighed again in each turn, since a cut in front of them may pay by then.
        self._open = set(stale[:cut])
        self.told_this_turn = frozenset(told)

    def flush(self, surface: Current, why: str) -> bool:
        """Rewrite all places that are behind, since the prompt is rewritten before them anyway.

        False if none is.
        """
        now = self._stale(surface)
        # Also where no place is behind: the prefix has moved for this all the same.
        if why not in self.reasons:
            self.reasons.append(why)
        self._rewrite(list(now), now)
        self._open = set()
        return bool(now)

    def behind(self, surface: Current) -> bool:
        """Whether some place does not show its view as it is."""
        return any(place.told is not None for place in self.known.values())

    def changes(self) -> Changes:
        """Where another text stands, and whether messages were superseded, since this was asked
        last.
        """
        made = Changes(frozenset(self._moved), len(self.dropped) > self._superseded)
        self._moved, self._superseded = set(), len(self.dropped)
        return made

    def _stale(self, surface: Current) -> dict[str, Placed]:
        """The places of which the model knows another state than the present one, or knows it from
        a message; with that state.
        """
        touched = surface.to_place()
        self._follow(surface, touched)
        # In the order of the prompt, by which a cut has all later places behind it.
        asked = sorted(
            (touched & self.known.keys()) | self._open & self.known.keys(),
            key=surface.places.__getitem__,
        )
        now = {obj_id: surface.current(obj_id) for obj_id in asked}
        return {
            o: at
            for o, at in now.items()
            if self.known[o].placed != at or self.known[o].known != at
        }

    def _follow(self, surface: Current, touched: set[str]) -> None:
        """Take in places that are new, and let go those that are gone with their events."""
        # Sorted: places are kept, and saved, in the order in which they were taken in, and a set
        # has none that is the same in two processes.
        for obj_id in sorted(touched):
            if obj_id in surface.places and obj_id not in self.known:
                self._stands(obj_id, surface.current(obj_id))
            elif obj_id not in surface.places and obj_id in self.known:
                # What its messages told was of a place that is not there any more.
                self.dropped.update(dict.fromkeys(self.known.pop(obj_id).updates))

    def _stands(self, obj_id: str, placed: Placed) -> None:
        self.known[obj_id] = Place(placed=placed)
        self._moved.add(obj_id)

    def _rewrite(self, obj_ids: Sequence[str], now: Mapping[str, Placed]) -> None:
        causes = list(dict.fromkeys(self._why(obj_id, now[obj_id]) for obj_id in obj_ids))
        if causes:
            more = [f"{len(causes) - SHOWN_CAUSES} more"] if len(causes) > SHOWN_CAUSES else []
            self.reasons.append("; ".join([*causes[:SHOWN_CAUSES], *more]))
        for obj_id in obj_ids:
            self.causes.pop(obj_id, None)
            self.dropped.update(dict.fromkeys(self.known[obj_id].updates))
            self._stands(obj_id, now[obj_id])

    def _why(self, obj_id: str, now: Placed) -> str:
        """Why another text is to stand at a view's place: what became of the view there, else what
        changed the view itself.
        """
        place, cause = self.known[obj_id], self.causes.get(obj_id)
        name, was = _name(now.text), _name(place.placed.text)
        if not now.shown:
            # The mark's words, without what they advise.
            return f"{name}: {now.text.strip('[]').rpartition('; ')[2].partition(': ')[0]}"
        if not place.placed.shown:
            return f"{name}: shown on its own again"
        if cause is not None:
            return f"{cause}, told further down until now" if place.told == now else cause
        return (
            f"{name}: another variable holds it, before it was {was}"
            if name != was
            else f"{name}: cut for room"
        )

    def _update(self, before: Placed, after: Placed, *, whole: bool) -> str:
        """The message that tells of a change: the diff, or the ``whole``, also where that is
        shorter.
        """
        if before == after or not after.shown:
            return after.text
        head, body = _parts(after.text)
        text = f"[as it is now, in place of what is shown above]\n{after.text}"
        # The model has seen a mark there, so there is no text that a difference could start from.
        if not before.shown:
            return text
        old = _parts(before.text)[1]
        if old == body:
            return f"[now, the text being the same as above]\n{head}"
        lines = line_diff(
            RenderedView(text=old, first_line=before.first_line),
            RenderedView(text=body, first_line=after.first_line),
        ).lines
        diff = "\n".join(
            ["[changed since it was last shown above]", head, fenced("\n".join(lines))]
        )
        return diff if lines and not whole and self.count(diff) < self.count(text) else text

    def _cut(
        self,
        stale: Sequence[str],
        now: Mapping[str, Placed],
        updates: Mapping[str, str],
        stable: Callable[[], Standing],
        horizon: int,
    ) -> int:
        """The first of the ``stale`` places that is rewritten; all behind it are too.

        ``len(stale)``: none is.
        """
        if self.policy is ProjectionPolicy.INLINE:
            return 0
        if self.policy is ProjectionPolicy.APPEND:
            return len(stale)
        read, write, rewrite = self.prices.read, self.prices.write, self.prices.rewrite
        standing = stable()
        keep: list[float] = []
        anew: list[float] = []
        old: list[int] = []
        for obj_id in stale:
            place, state = self.known[obj_id], now[obj_id]
            told = 0 if place.known == state else self.count(updates[obj_id]) + MESSAGE_TOKENS
            # With its messages, which go when the place is rewritten.
            stands = self.count(place.placed.text) + sum(map(standing.size_of, place.updates))
            fresh = self.count(state.text)
            old.append(stands)
            # Kept, a place is read in each turn that is left; rewritten, it is written once, then
            # read.
            keep.append(stands * read + told * write + horizon * (stands + told) * read)
            anew.append(fresh * write + horizon * fresh * read)
        best, least = len(stale), sum(keep)
        # From the back: a cut further in front takes in all those behind it.
        for cut in range(len(stale) - 1, -1, -1):
            moved = max(standing.behind(stale[cut]) - sum(old[cut:]), 0)
            cost = sum(keep[:cut]) + moved * rewrite + sum(anew[cut:])
            if cost < least:
                best, least = cut, cost
        return best


def _name(text: str) -> str:
    """The name with which a header or a mark begins."""
    return text.partition(":")[0].removeprefix("[")


def _parts(text: str) -> tuple[str, str]:
    """A rendering's header, and what is fenced below it."""
    head, _, body = text.partition("\n")
    return head, unfenced(body)
