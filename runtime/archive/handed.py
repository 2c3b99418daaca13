"""The patch that a job handed over with its result: an object of its own, which its end names."""

from __future__ import annotations

from typing import Any

from runtime.archive.forms.end import End
from runtime.archive.job import JobArchive
from runtime.archive.recorded import recorded_stream
from runtime.base.effect_numbers import HANDED_PATCH

MOST_TOLD = 64 * 1024
"""Bytes up to which a patch is told as text with a result."""

STREAM = "patch"
"""The part of the object that holds it."""


def handed_patch(archive: JobArchive, end: End) -> bytes:
    """The patch that an end names, exactly; empty if it names none.

    Raises:
        ArchiveError: if it cannot be read.
    """
    if end.patch is None or not end.patch.bytes:
        return b""
    return recorded_stream(archive, end.run, end.turn, HANDED_PATCH, STREAM)


def told_patch(archive: JobArchive, end: End | None) -> dict[str, Any] | None:
    """What a result tells of its patch, with its text if that is short and no other than UTF-8."""
    if end is None or end.patch is None:
        return None
    text = None
    if end.patch.bytes <= MOST_TOLD:
        try:
            text = handed_patch(archive, end).decode("utf-8")
        except UnicodeDecodeError:
            text = None
    return {**end.patch.model_dump(mode="json"), "text": text}
