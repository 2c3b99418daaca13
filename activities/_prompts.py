"""What a model is sent for a layout: a turn's prompt, or one that asks for a summary alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from activities import _handed_over, _lent
from activities.contracts import TurnCall
from runtime.archive.caches import Recent
from runtime.base.open_jobs import open_jobs
from runtime.base.values import JobKey
from runtime.projection.messages import Marks, Told, told, tools_of
from runtime.projection.segments import Segment
from runtime.projection.transcript import transcript_of

Messages = Sequence[dict[str, Any]]
Tools = list[dict[str, Any]] | None

Prompt = Callable[[Sequence[Segment], TurnCall, Marks], tuple[Messages, Tools]]
"""What is sent for a layout and a call, with marks for the provider's cache."""

_told: Recent[Told] = Recent(open_jobs())
"""What was made of the jobs' last prompts: the next begin as they do."""


def turn_prompt(layout: Sequence[Segment], call: TurnCall, marks: Marks) -> tuple[Messages, Tools]:
    """A turn's prompt, as the agent's model takes it."""
    job = str(call.key)
    made = told(layout, marks, _told.get(job))
    _told.put(job, made)
    return made.messages, tools_of(call.form)


def summary_prompt(
    layout: Sequence[Segment], call: TurnCall, marks: Marks
) -> tuple[Messages, Tools]:
    """A prompt that asks for a summary and nothing else: a transcript, and no tools."""
    return transcript_of(layout), None


def forget(job: JobKey) -> None:
    """A job has ended: nothing is kept of its prompts."""
    _told.forget(str(job))
    _handed_over.forget(str(job))
    _lent.forget(str(job))
