"""What commands tell of one archived turn."""

from __future__ import annotations

from runtime.archive.forms import Step
from runtime.archive.job import JobArchive
from runtime.base.errors import ObjectCorrupt
from runtime.projection.replies import parse_reply


def form_of(archive: JobArchive) -> str:
    """In which form a job's replies hold their statements."""
    try:
        definition = archive.definition() or {}
    except ObjectCorrupt:
        # The replies can be read all the same, in the form that most jobs have.
        definition = {}
    return str(definition.get("form", "tool"))


def statement_of(form: str, step: Step) -> tuple[str | None, str | None]:
    """The statement that a turn's reply holds, and what was wrong with the reply; either may be
    None.
    """
    reply = step.reply
    parsed = parse_reply(reply.text, reply.tool_calls, reply.finish_reason, reply.refusal, form)
    return parsed.statement, parsed.problem
