"""What a statement printed and did to the context, from the record that follows its turn."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from runtime.archive.forms import Step
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.printed import printed, told_of
from runtime.archive.recorded import TurnRecord


def outcome_of(archive: JobArchive, run: str, record: TurnRecord) -> dict[str, Any]:
    """The statement's ``stdout``, ``stderr`` and ``events``.

    None for a text that is not to be found, as where it was condensed, or its prompt is damaged.
    """
    execution, after = record.execution or {}, record.after
    ids = frozenset(execution.get("events", ()))
    told: tuple[str, ...] = ()
    if isinstance(after, Step):
        with suppress(*UNREADABLE):
            told = told_of(archive, run, after.turn - 1)
    return {
        "stdout": printed(execution, "stdout", told),
        "stderr": printed(execution, "stderr", told),
        "events": [event for event in record.events or () if event.get("id") in ids],
    }
