"""The limits that no job of a file is under: a pattern or a tool that is misspelled would bound
nothing, and nobody would hear of it before the provider says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from runtime.base.quoted import shown
from runtime.base.spec.models import JobSpec, Limits
from runtime.jobsfile.problems import Problems

MOST_NAMED = 8
"""So many of the models or tools that there are, are told."""


class Unmatched:
    """What ``limits`` names and no job has, of those that have gone by."""

    def __init__(self, limits: Limits) -> None:
        self._patterns = dict.fromkeys(limits.models)
        self._targets = dict.fromkeys(limits.tools)
        self._models: dict[str, None] = {}
        self._tools: dict[str, None] = {}

    def of(self, jobs: Iterable[JobSpec]) -> Iterator[JobSpec]:
        """The jobs, looked at as they go by."""
        for job in jobs:
            if self._patterns:
                self._ask(job)
            if self._targets:
                targets = [tool.target for tool in job.tools]
                _remember(self._tools, targets)
                for target in targets:
                    self._targets.pop(target, None)
            yield job

    def _ask(self, job: JobSpec) -> None:
        # Not the model of summaries that the file names: 'none' is none.
        others = [job.writer, *(condenser.model for condenser in job.condenser)]
        if job.spawn is not None:
            others.append(job.spawn.model)
        names = [job.model.name, *(model.name for model in others if model is not None)]
        _remember(self._models, names)
        for pattern in list(self._patterns):
            if any(fnmatchcase(name, pattern) for name in names):
                del self._patterns[pattern]

    def note(self, problems: Problems) -> None:
        """Note each that none of the jobs has."""
        for pattern in self._patterns:
            problems.add(
                ("limits", "models", pattern),
                f"matches no model of the jobs; they have {_told(self._models)}",
            )
        for target in self._targets:
            problems.add(
                ("limits", "tools", target),
                f"no job has this tool; they have {_told(self._tools)}",
            )


def _remember(known: dict[str, None], names: Iterable[str]) -> None:
    # One more than is told, which says that there are others.
    for name in names:
        if len(known) <= MOST_NAMED:
            known.setdefault(name)


def _told(names: dict[str, None]) -> str:
    listed = [shown(name) for name in names]
    more = ["others"] if len(listed) > MOST_NAMED else []
    return ", ".join([*listed[:MOST_NAMED], *more]) or "none"
