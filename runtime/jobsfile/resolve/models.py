"""The models that jobs ask."""

from __future__ import annotations

from runtime.base.quoted import shown
from runtime.base.spec.models import NO_MODEL, SCRIPTED, ModelSettings
from runtime.jobsfile.problems import Location, Problems
from runtime.jobsfile.resolve.disk import Disk
from runtime.jobsfile.resolve.options import check_options
from runtime.jobsfile.written.models import WrittenModel


def model_of(written: WrittenModel, at: Location, disk: Disk, problems: Problems) -> ModelSettings:
    """The model's settings; a scripted model's name gets its script's absolute path."""
    options = dict(written.model_extra or {})
    check_options(options, at, problems)
    if written.price is not None:
        options["price"] = written.price.model_dump(exclude_none=True)
    name = written.name
    if name.startswith(SCRIPTED):
        script = name.removeprefix(SCRIPTED)
        path = disk.path(script, at)
        name = SCRIPTED + path
        if not disk.is_script(path):
            problems.add(at, f"expected the file of a script, got {shown(script)}, which is none")
    return ModelSettings(name=name, options=options)


def summary_model_of(
    written: WrittenModel | None, at: Location, disk: Disk, problems: Problems
) -> ModelSettings | None:
    """The model of summaries of views and groups, where one is named."""
    if written is None:
        return None
    if written.name == NO_MODEL and written.model_extra:
        problems.add(at, f"'{NO_MODEL}' stands alone: no model sums anything up")
    return model_of(written, at, disk, problems)
