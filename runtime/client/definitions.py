"""A job's definition as the archive has it, to be given to Temporal again."""

from __future__ import annotations

from runtime.archive.job import JobArchive
from runtime.base.spec.models import JobSpec


def archived_spec(archive: JobArchive) -> JobSpec | None:
    """The definition that was archived last; None if there is none.

    Raises:
        ArchiveError: if it cannot be read.
    """
    definition = archive.definition()
    if definition is None:
        return None
    return JobSpec.model_validate_json(JobSpec.model_validate(definition).model_dump_json())
