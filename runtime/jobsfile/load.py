"""From a jobs file to a ``BatchSpec``: read, check every part, resolve, or one error with all that
is wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from runtime.base.spec.models import BatchSpec
from runtime.jobsfile.expand import Expansion, too_many
from runtime.jobsfile.messages import describe, without_consequences
from runtime.jobsfile.problems import Location, Problems, shown
from runtime.jobsfile.resolve import Resolver, batch_budget, limits_of
from runtime.jobsfile.source import is_jsonl, read_jsonl, read_text, read_yaml
from runtime.jobsfile.templates import as_expected
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
    # Without the jobs, which are checked one at a time: there may be a million.
    header = checked(WrittenHeader, {k: v for k, v in raw.items() if k != "jobs"}, (), problems)
    written = _jobs(raw, problems, path.parent.resolve())
    # What the jobs would inherit is not known: they are read for problems of their own alone, as
    # resolving them would report consequences.
    if header is None:
        deque(written, maxlen=0)
        problems.raise_if_any()
        raise AssertionError("a header that does not validate has a problem")
    batch = header.batch or _stem(path, problems)
    resolver = Resolver(path.parent.resolve(), header, problems)
    with closing(resolver):
        jobs = tuple(resolver.jobs(written))
    store = resolver.store()
    problems.raise_if_any()
    return Loaded(
        BatchSpec(
            batch=batch,
            concurrency=header.concurrency,
            store=store,
            budget=batch_budget(header.budget),
            limits=limits_of(header.limits),
            priority=header.priority,
            on_finish=resolver.on_finish(),
            jobs=jobs,
        ),
        problems,
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


def _jobs(
    raw: dict[str, Any], problems: Problems, directory: Path
) -> Iterator[tuple[int, WrittenJob]]:
    """The jobs that are well formed, each with its index, one at a time; ids that come twice are
    noted.
    """
    items = raw.get("jobs")
    if "jobs" not in raw:
        problems.add(("jobs",), "required key is missing")
    elif not isinstance(items, list):
        problems.add(("jobs",), f"expected a list of jobs, got {shown(items)}")
    elif not items:
        problems.add(("jobs",), "expected at least one job, got none")
    elif len(items) > MAX_JOBS:
        problems.add(("jobs",), too_many(len(items)))
    else:
        seen: dict[str, int] = {}
        for index, item in enumerate(Expansion(directory, problems).jobs(items)):
            job = _job(item, ("jobs", index), problems)
            _unique_id(item, index, seen, problems)
            if job is not None:
                yield index, job


def _job(value: Any, at: Location, problems: Problems) -> WrittenJob | None:
    """A job; of one that another stands for, the values of fields in the forms that keys expect."""
    if at[1] not in problems.origins:
        return checked(WrittenJob, value, at, problems)
    try:
        return WrittenJob.model_validate(value)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _put(value, _as_written(detail["loc"], value), detail["type"])
    return checked(WrittenJob, value, at, problems)


def _put(value: Any, at: Location, kind: str) -> None:
    """Give a value that a key refused the form that the key expects, if it has one."""
    for part in at[:-1]:
        if isinstance(value, dict):
            value = value.get(str(part))
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        else:
            return
    last: Any = at[-1]
    if isinstance(value, list) or (isinstance(value, dict) and last in value):
        value[last] = as_expected(kind, value[last])


def _unique_id(item: Any, index: int, seen: dict[str, int], problems: Problems) -> None:
    """Note an id that an earlier job has; jobs that are wrong otherwise count too."""
    id_ = item.get("id") if isinstance(item, dict) else None
    if isinstance(id_, str) and id_ in seen:
        problems.add(
            ("jobs", index, "id"),
            f"expected a unique id, got {shown(id_)} as {_place(seen[id_], problems)}",
        )
    elif isinstance(id_, str):
        seen[id_] = index


def _place(index: int, problems: Problems) -> str:
    """Where the job of that index stands: ``on line 3``, or ``for items.jsonl:3``."""
    origin = problems.origins.get(index)
    if origin is not None and origin.file:
        return f"for {origin.file}:{origin.line}"
    return f"on line {problems.lines.of(problems.in_file(('jobs', index, 'id')))}"


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
