"""The condensers that a job can ask for, by the names that jobs files have for them.

A kind is all that other rooms know of a condenser: the jobs file's checks and its reference, and
the job that asks it, are made from what stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runtime.base.spec.models import CondenserSpec
from runtime.history.condensers.base import Condenser
from runtime.history.condensers.extract_summary import ExtractSummary
from runtime.history.condensers.llm_summary import LLMSummary
from runtime.history.condensers.rolling import RollingWindow

SETTINGS = frozenset({"model", "input_tokens", "summary_tokens"})
"""The settings of condensers that not all have. ``max_size`` and ``keep_first`` all have."""

NO_EVENT_LIMIT = 1_000_000_000
"""In the place of ``max_size`` where a number of events is no reason to condense."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A condenser that a job can ask for."""

    about: str
    """What becomes of what goes, for the jobs file's reference."""
    settings: frozenset[str]
    """Those of ``SETTINGS`` that it has; a jobs file that gives it another is refused."""
    make: Callable[[CondenserSpec], Condenser]


def _rolling(spec: CondenserSpec) -> Condenser:
    return RollingWindow(max_size=spec.max_size or NO_EVENT_LIMIT, keep_first=spec.keep_first)


def _extract(spec: CondenserSpec) -> Condenser:
    return ExtractSummary(
        max_size=spec.max_size or NO_EVENT_LIMIT,
        keep_first=spec.keep_first,
        summary_tokens=spec.summary_tokens,
    )


def _summary(spec: CondenserSpec) -> Condenser:
    return LLMSummary(
        max_size=spec.max_size or NO_EVENT_LIMIT,
        keep_first=spec.keep_first,
        input_tokens=spec.input_tokens,
        summary_tokens=spec.summary_tokens,
    )


KINDS = {
    "rolling": Kind("the oldest turns go", frozenset(), _rolling),
    "extract": Kind("pieces of them stay", frozenset({"summary_tokens"}), _extract),
    "summary": Kind("a model sums them up", SETTINGS, _summary),
}
"""By name, in the order in which they are told."""
