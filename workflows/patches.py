"""Which changes of workflow code a run goes by: those that there were as it began
(docs/releases.md).

They are asked for as the run begins, and nowhere else first. Behind an activity within the worker,
whose task was cut, a replay asks before it has come to the mark: it gets that activity's result at
once, and knows the marks of one task alone. It then takes the run for one of before.
"""

from __future__ import annotations

from temporalio import workflow

EARLIER = "patches-of-2026-11"
"""All that there were before runs asked as they begin, by one mark."""

AT_START = (EARLIER,)
"""What a run asks for as it begins; a new patch is added here."""


def begin() -> None:
    """A run begins: mark it."""
    for patch in AT_START:
        workflow.patched(patch)


def patched(patch: str) -> bool:
    """Whether the run goes by ``patch``."""
    if patch not in AT_START and workflow.patched(EARLIER):
        return True
    # A run of before marked each where it came by.
    return workflow.patched(patch)
