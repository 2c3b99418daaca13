"""The tools of jobs, and the functions that check their results."""

from __future__ import annotations

from collections.abc import Container

from runtime.base.errors import InputError
from runtime.base.spec.models import ToolSpec
from runtime.jobsfile.problems import Location, Problems
from runtime.tools.host import ToolHosts, described


class Tools:
    """The tools of one file's jobs; each is imported once a file, with what it is given.

    Args:
        path: the absolute directory in which they are looked for first.
        limited: those that the file's limits name, as ``module:function``.
        problems: takes what is wrong.
    """

    def __init__(self, path: str, limited: Container[str], problems: Problems) -> None:
        self._path = path
        self._limited = limited
        self._problems = problems
        self._hosts = ToolHosts()
        self._specs: dict[tuple[str, tuple[str, ...]], ToolSpec | str] = {}

    def close(self) -> None:
        """End the process in which they were imported."""
        self._hosts.close()

    def of_job(
        self, targets: list[str], at: Location, secrets: tuple[str, ...]
    ) -> tuple[ToolSpec, ...]:
        """The tools of one job; two of one name are noted at the second."""
        specs: dict[str, ToolSpec] = {}
        for index, target in enumerate(targets):
            spec = self._spec(target, secrets)
            if isinstance(spec, str):
                self._problems.add((*at, index), spec)
            elif spec.name in specs:
                self._problems.add(
                    (*at, index),
                    f"expected tools of different names, got {spec.name!r} from {target!r} again",
                )
            else:
                specs[spec.name] = spec
        return tuple(specs.values())

    def check(self, target: str | None, at: Location, secrets: tuple[str, ...]) -> ToolSpec | None:
        """The function that gives a score."""
        if target is None:
            return None
        spec = self._spec(target, secrets)
        if isinstance(spec, str):
            self._problems.add(at, spec)
            return None
        return spec

    def note_files(self, tools: tuple[ToolSpec, ...], targets: list[str], at: Location) -> None:
        """Note tools that work on files of a job that has none of its own, by their places among
        all its ``targets``: some of those may be no tools.
        """
        for tool in tools:
            if tool.workspace:
                self._problems.add(
                    (*at, targets.index(tool.target)),
                    f"{tool.name!r} works on the job's own files, and the job's workspace is"
                    " read-only",
                )

    def note_queues(self, tools: tuple[ToolSpec, ...], targets: list[str], at: Location) -> None:
        """Note tools that have a queue and a limit: a limit is a queue too. Places as above."""
        for tool in tools:
            if tool.queue is not None and tool.target in self._limited:
                self._problems.add(
                    (*at, targets.index(tool.target)),
                    f"{tool.name!r} has queue={tool.queue!r}, and limits.tools names it; only one"
                    " of them can say which workers make its calls",
                )

    def _spec(self, target: str, secrets: tuple[str, ...]) -> ToolSpec | str:
        """The tool, or why there is none."""
        # By its secrets too: a module may read them while it is imported.
        known = target, secrets
        if known not in self._specs:
            try:
                self._specs[known] = described(self._hosts, target, self._path, secrets)
            except InputError as error:
                self._specs[known] = str(error)
        return self._specs[known]
