"""From a jobs file to a ``BatchSpec``: read, check every part, resolve, or one error with all that
is wrong.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from runtime.base.spec.models import BatchSpec
from runtime.jobsfile.messages import describe, without_consequences
from runtime.jobsfile.problems import Location, Problems, shown
from runtime.jobsfile.resolve import Resolver
from runtime.jobsfile.source import is_jsonl, read_jsonl, read_text, read_yaml
from runtime.jobsfile.written import MAX_JOBS, NAME_RULE, WrittenHeader, WrittenJob, is_name

W = TypeVar("W", bound=BaseModel)


@dataclass(frozen=True)
class Loaded:
    """A batch without a problem so far, and what takes further ones, which knows the file's
    lines.
    """

    batch: BatchSpec
    problems: Problems


def load_jobs_file(path: Path | str) -> BatchSpec:
    """The batch that the jobs file at ``path`` describes. Errors as ``load``."""
    return load(path).batch


def load(path: Path | str) -> Loaded:
    """The batch that the jobs file at ``path`` describes: YAML, or JSONL by its suffix.

    Tools are imported.

    Raises:
        InputError: with every problem, by line.
    """
    path = Path(path)
    problems = Problems(str(path))
    raw = _read(path, problems)
    header = checked(WrittenHeader, {k: v for k, v in raw.items() if k != "jobs"}, (), problems)
    written = _jobs(raw, problems)
    if (
        header is None
    ):  # what the jobs would inherit is not known: resolving them would report consequences
        problems.raise_if_any()
        raise AssertionError("a header that does not validate has a problem")
    batch = header.batch or _stem(path, problems)
    resolver = Resolver(path.parent.resolve(), header, problems)
    with closing(resolver):
        jobs = tuple(resolver.jobs(written))
    store = resolver.store()
    problems.raise_if_any()
    return Loaded(
        BatchSpec(batch=batch, concurrency=header.concurrency, store=store, jobs=jobs), problems
    )


def _read(path: Path, problems: Problems) -> dict[str, Any]:
    """The file's plain value; ``problems`` learns the lines."""
    text = read_text(path)
    if is_jsonl(path):
        problems.hidden = 2
        return {"jobs": read_jsonl(text, problems)}
    raw = read_yaml(text, problems)
    if not isinstance(raw, dict):
        problems.add((), f"expected a mapping with 'jobs', got {shown(raw)}")
        problems.raise_if_any()
    return dict(raw)


def _stem(path: Path, problems: Problems) -> str:
    """The batch's name where the file gives none."""
    if not is_name(path.stem):
        way = "rename the file" if is_jsonl(path) else "give 'batch' or rename the file"
        problems.add(
            ("batch",),
            f"expected a name ({NAME_RULE}), got the file's stem {shown(path.stem)}; {way}",
        )
    return path.stem


def _jobs(raw: dict[str, Any], problems: Problems) -> dict[int, WrittenJob]:
    """The jobs that are well formed, by their index; ids that come twice are noted."""
    items = raw.get("jobs")
    if "jobs" not in raw:
        problems.add(("jobs",), "required key is missing")
    elif not isinstance(items, list):
        problems.add(("jobs",), f"expected a list of jobs, got {shown(items)}")
    elif not items:
        problems.add(("jobs",), "expected at least one job, got none")
    elif len(items) > MAX_JOBS:
        problems.add(
            ("jobs",), f"expected at most {MAX_JOBS} jobs, got {len(items)}; split the batch"
        )
    else:
        found = {
            i: checked(WrittenJob, item, ("jobs", i), problems) for i, item in enumerate(items)
        }
        _unique_ids(items, problems)
        return {index: job for index, job in found.items() if job is not None}
    return {}


def _unique_ids(items: list[Any], problems: Problems) -> None:
    """Note the ids that an earlier job has; jobs that are wrong otherwise count too."""
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        id_ = item.get("id") if isinstance(item, dict) else None
        if isinstance(id_, str) and id_ in seen:
            line = problems.lines.of(("jobs", seen[id_], "id"))
            problems.add(
                ("jobs", index, "id"), f"expected a unique id, got {shown(id_)} as on line {line}"
            )
        elif isinstance(id_, str):
            seen[id_] = index


def checked(model: type[W], value: Any, at: Location, problems: Problems) -> W | None:
    """``value`` as a ``model``, or None after noting what is wrong with it at ``at``."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        for detail in without_consequences(error.errors(include_url=False)):
            problems.add((*at, *_as_written(detail["loc"], value)), describe(detail, model))
        return None


def _as_written(location: Location, value: Any) -> Location:
    """``location`` without the list that one condenser alone was put into."""
    for place, part in enumerate(location):
        if (
            part == "condenser"
            and isinstance(value, dict)
            and not isinstance(value.get(part), list)
        ):
            return (*location[: place + 1], *location[place + 2 :])
        value = value.get(part) if isinstance(value, dict) else None
    return location
