"""Questions of a job that wait for a person's answer, as the archive has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime.archive import keys
from runtime.archive.job import JobArchive

QUESTIONS = 760_000
DECISIONS = 770_000
"""A question, and the decision on it, are archived as effects of the statement that they are about:
of its effect 0 under these numbers.
"""


@dataclass(frozen=True)
class Waiting:
    """A question that nobody has answered, about an effect of a turn's statement; ``asked`` is what
    it says.
    """

    run: str
    turn: int
    effect: int
    asked: dict[str, Any]

    @property
    def asker(self) -> str:
        """The run that asked it: ``run``, or one that this goes on from."""
        return str(self.asked["id"]).partition("/")[0]


def waiting_question(archive: JobArchive) -> Waiting | None:
    """The question that a job waits for; a statement asks one at a time.

    Raises:
        ObjectCorrupt: if the question cannot be read; that of a job which has ended is not asked
            for, whatever its end says.
    """
    runs = archive.runs()
    if not runs or archive.has_end(runs[-1]):
        return None
    listed = archive.store.list(keys.run_prefix(archive.prefix, runs[-1]))
    places = [place for key in listed if (place := keys.parse_turn_key(key)) is not None]
    effects = {(place.turn, place.number) for place in places if place.kind == "effect"}
    # The newest first: a statement asks one question at a time, so only the last may be open.
    for turn, number in sorted(effects, reverse=True):
        if not QUESTIONS <= number < DECISIONS:
            continue
        effect = number - QUESTIONS
        # The call's own result comes after the decision: either says that nobody waits.
        if {(turn, effect), (turn, DECISIONS + effect)} & effects:
            return None
        # A run that came after it, and ended before its first call, is none of ``runs``.
        if archive.end_without_calls() is not None:
            return None
        value = archive.effect(runs[-1], turn, number)
        return None if value is None else Waiting(runs[-1], turn, effect, value["question"])
    return None
