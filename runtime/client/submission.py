"""Masking what a user submits: goals and messages, before Temporal or the archive sees them."""

from __future__ import annotations

from runtime.archive.job import JobArchive
from runtime.base.redaction.redactor import redactor_of
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.models import JobSpec


def masked_spec(spec: JobSpec) -> JobSpec:
    """``spec`` with its goal masked by its own rules."""
    goal = redactor_of(spec.redact).text(spec.goal)
    return spec if goal == spec.goal else spec.model_copy(update={"goal": goal})


def masked_message(archive: JobArchive, text: str) -> str:
    """A message to a job, masked by the rules of the job's archived definition."""
    definition = archive.definition() or {}
    return redactor_of(Redaction.model_validate(definition.get("redact", {}))).text(text)
