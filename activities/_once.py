"""Calls that are made at most once: who calls has claimed the call in the archive before, and a
claim is given once.

A claim stands among the effects of its statement, ``CLAIMS`` behind the effect that it is for.
Whoever finds one that is not its own does not call: the call may have been made, or not.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from activities._held import Held
from activities.contracts import ToolRequest, ToolResult
from runtime.archive.job import JobArchive
from runtime.base.digests import digest_of
from runtime.base.effect_classes import OUTCOME_UNKNOWN, EffectClass

CLAIMS = 700_000
"""The number of the claim on a statement's effect 0; behind all effects, before those that ticks
read.
"""

T = TypeVar("T")
NOT_TOLD = "whoever made it ended without telling its result"


def held_result(request: ToolRequest) -> Held:
    """How what came of such a call is held: the next attempt would have the claim alone."""
    return Held(f"{request.key} turn {request.turn}: the result of {request.called}")


def held_claim(request: ToolRequest) -> Held:
    """How the claim on such a call is held: a write that failed may have stored it, and the next
    attempt would take it for that of a call that was made.
    """
    return Held(f"{request.key} turn {request.turn}: the claim on {request.called}")


async def in_archive(request: ToolRequest | None, write: Callable[[], Awaitable[T]]) -> T:
    """What the ``write`` of a call's result comes to; it is held if the call is not made again."""
    if request is None or request.often is not EffectClass.ONCE:
        return await write()
    return await held_result(request).archived(write)


@dataclass(frozen=True)
class CallClaim:
    """The claim of one attempt on a call."""

    archive: JobArchive
    # A run's own, so that a replay in another run makes a call of its own.
    address: tuple[str, int, int]
    request: ToolRequest
    _owner: str = field(default_factory=lambda: uuid.uuid4().hex)

    def taken(self) -> ToolResult | None:
        """None if the call is this attempt's to make; else what its statement gets in place of
        it.
        """
        run, turn, effect = self.address
        claim = {
            "tool": self.request.tool,
            # A digest: whoever reads that the outcome is unknown sees which call it was, and no
            # argument.
            "arguments": digest_of([list(self.request.args), self.request.kwargs]),
            "at": datetime.datetime.now(datetime.UTC).isoformat(),
            "owner": self._owner,
        }
        # What was first stays: of several attempts one reads its own name.
        standing = self.archive.write_effect(run, turn, CLAIMS + effect, {"claim": claim})["claim"]
        if standing["owner"] == self._owner:
            return None
        return self._unknown(standing, NOT_TOLD)

    def broken(self, how: str) -> ToolResult:
        """What the statement gets where this attempt's own call has ended without a result."""
        run, turn, effect = self.address
        claim = self.archive.effect(run, turn, CLAIMS + effect) or {}
        return self._unknown(claim["claim"], how)

    def _unknown(self, claim: dict[str, str], how: str) -> ToolResult:
        name = claim["tool"].rpartition(":")[2]
        return ToolResult(
            error_type=OUTCOME_UNKNOWN,
            error_message=(
                f"{name}() was called at {claim['at']} (arguments {claim['arguments']}): {how}. It"
                " may have done its work or not, and is not called again"
            ),
        )
