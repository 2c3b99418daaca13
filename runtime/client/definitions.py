"""A job's definition as the archive has it, to be given to Temporal again."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from runtime.archive.forms.base import first_in
from runtime.archive.job import JobArchive
from runtime.base.errors import ObjectCorrupt
from runtime.base.spec.models import JobSpec


def archived_spec(archive: JobArchive) -> JobSpec | None:
    """The definition that was archived last; None if there is none.

    Raises:
        ArchiveError: if it cannot be read.
        ObjectCorrupt: if it is no job's, as where somebody made it.
    """
    definition = archive.definition()
    if definition is None:
        return None
    try:
        return JobSpec.model_validate_json(JobSpec.model_validate(definition).model_dump_json())
    except ValidationError as error:
        what = first_in(error)
    # A lone surrogate, which an archive can hold, has no JSON.
    except PydanticSerializationError as error:
        what = str(error)
    raise ObjectCorrupt(f"{archive.definition_key()}: is no job's definition: {what}")
