"""Masking what a user submits: goals and messages, before Temporal or the archive sees them."""

from __future__ import annotations

from typing import Any

from runtime.archive.job import JobArchive
from runtime.base.errors import InputError
from runtime.base.redaction.redactor import redactor_of
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.models import DEFAULT_CONTEXT_TOKENS, JobSpec

MOST_MESSAGE_BYTES = 256 * 1024
"""What a message may have in UTF-8: the history of its job has it whole."""

MESSAGE_SHARE = 2
"""The part of its job's prompt that a message may take: one of so many."""


def masked_spec(spec: JobSpec) -> JobSpec:
    """``spec`` with its goal masked by its own rules."""
    goal = redactor_of(spec.redact).text(spec.goal)
    return spec if goal == spec.goal else spec.model_copy(update={"goal": goal})


def masked_message(archive: JobArchive, text: str) -> str:
    """A message to a job, masked by the rules of the job's archived definition.

    Raises:
        InputError: if it says nothing, or is longer than the job's prompt has room for.
    """
    if not text.strip():
        raise InputError("expected a message that says something, got an empty one")
    definition = archive.definition() or {}
    masked = _masked(definition, text)
    size = len(masked.encode(errors="replace"))
    if size > MOST_MESSAGE_BYTES:
        raise InputError(
            f"a message of {size:,} bytes: expected {MOST_MESSAGE_BYTES:,} at most; {_ELSEWHERE}"
        )
    context = definition.get("context_tokens", DEFAULT_CONTEXT_TOKENS)
    # No text has more tokens than bytes.
    if size > context // MESSAGE_SHARE:
        # Late, since its import takes longer than most messages.
        from runtime.base.encodings import DEFAULT_ENCODING
        from runtime.base.tokens import encoding

        tokens = encoding(definition.get("encoding", DEFAULT_ENCODING)).count(masked)
        if tokens > context // MESSAGE_SHARE:
            raise InputError(
                f"a message of {tokens:,} tokens to a job whose prompts have {context:,}: expected"
                f" {context // MESSAGE_SHARE:,} at most; {_ELSEWHERE}"
            )
    return masked


def masked_text(archive: JobArchive, text: str) -> str:
    """A text for a job, masked by the rules of the job's archived definition."""
    return _masked(archive.definition() or {}, text)


def _masked(definition: dict[str, Any], text: str) -> str:
    return redactor_of(Redaction.model_validate(definition.get("redact", {}))).text(text)


_ELSEWHERE = "long material belongs in a file that the job can open"
