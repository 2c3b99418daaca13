"""How much of a prompt stands as it stood in the one before: what a provider's cache can serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from runtime.projection.segments import Segment, common

_TOKENS = attrgetter("tokens")


@dataclass(frozen=True)
class Prefix:
    """The common beginning of two prompts, in tokens.

    ``stable`` are the tokens of the later prompt's segments that stand as in the earlier one,
    ``new`` those behind them that later prompts will keep, ``tail`` those that they will not,
    ``tokens`` all. ``segments`` counts the stable ones. ``broken`` is the first segment that moved
    or changed although the earlier prompt had it in front of its tail, None if only the tail did;
    ``lost`` are the tokens of the earlier prompt, from that segment to its tail, that had been
    worth keeping.
    """

    stable: int
    new: int
    tail: int
    broken: Segment | None
    lost: int
    segments: int = 0

    @property
    def tokens(self) -> int:
        """The whole later prompt."""
        return self.stable + self.new + self.tail

    @property
    def share(self) -> float:
        """The stable tokens' share of the later prompt, from 0 to 1."""
        return self.stable / self.tokens if self.tokens else 1.0


def _kept(layout: Sequence[Segment]) -> tuple[Segment, ...]:
    """What is in front of a layout's tail."""
    # Behind which nothing stands that is not of it: of a long prompt only the end is looked at.
    stop = len(layout)
    while stop and layout[stop - 1].tail:
        stop -= 1
    return tuple(layout[:stop])


def prefix_of(
    before: Sequence[Segment], after: Sequence[Segment], tokens: int | None = None
) -> Prefix:
    """What ``after`` has in common with ``before``, from the beginning on; ``tokens`` are those of
    all of ``before``, if they are known.
    """
    # Without the tail of before: that it moved is no break, it is never cached.
    kept = _kept(before)
    count = common(kept, tuple(after))
    rest = after[count:]
    whole = sum(map(_TOKENS, before)) if tokens is None else tokens
    return Prefix(
        # What is stable of a long prompt is not looked at one by one.
        stable=whole - sum(map(_TOKENS, before[count:])),
        new=sum(segment.tokens for segment in rest if not segment.tail),
        tail=sum(segment.tokens for segment in rest if segment.tail),
        # The tail may change as it likes: only what was in front of it can break.
        broken=kept[count] if count < len(kept) else None,
        lost=sum(segment.tokens for segment in kept[count:]),
        segments=count,
    )
