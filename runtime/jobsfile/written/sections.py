"""The most tokens of a prompt's parts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime.base.spec.models import LEAST_SECTION, Sections
from runtime.jobsfile.written.base import Written

_SECTIONS = Sections()

SectionTokens = Annotated[int, Field(ge=LEAST_SECTION, le=10_000_000)]
"""Tokens of a prompt's part."""


class WrittenSections(Written):
    """The most tokens of a prompt's parts. Keys that a job leaves out come from the defaults."""

    history: SectionTokens | None = Field(
        default=None,
        description=(
            "Statements, results and messages; beyond it the job condenses. Unbounded by default."
        ),
    )
    views: SectionTokens | None = Field(
        default=None,
        description=(
            "Views; beyond it the oldest leave a mark, and pinned ones are shown smaller. Unbounded"
            " by default."
        ),
    )
    groups: SectionTokens | None = Field(
        default=None,
        description="Groups; beyond it the largest are shown smaller. Unbounded by default.",
    )
    notes: SectionTokens | None = Field(
        default=None,
        description="Notes; beyond it the largest are shown smaller. Unbounded by default.",
    )
    feed: SectionTokens = Field(
        default=_SECTIONS.feed,
        description="What changed since the last turn, at most an eighth of context_tokens.",
    )
    handles: SectionTokens = Field(
        default=_SECTIONS.handles,
        description="The table of handles, at most an eighth of context_tokens.",
    )
