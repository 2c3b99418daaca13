"""Holdfast from Python: running jobs, reading their archive, the event log, and a plugin for
workers that one has.

Each name is loaded when it is first asked for: ``import holdfast`` is quick, and events, the
``EventLog``, the ``View`` and condensers need pydantic alone. docs/python.md has an example of
each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast import rooms

if TYPE_CHECKING:
    from holdfast import condensers as condensers
    from holdfast import events as events
    from holdfast.archives import Archive, JobReader
    from holdfast.plugin import HoldfastPlugin, Job, execute_job, jobs_of
    from holdfast.results import BatchResult, JobResult, JobStatus, Usage
    from holdfast.running import JobEnded, JobTurn, Planned, ServerSilent, arun, run, stream
    from holdfast.tools import tool
    from runtime.base.errors import ArchiveError, HoldfastError, InputError, NotFound, ServerError
    from runtime.history import EventLog, View

# Before anything of ours is loaded: its own imports go by what is settled here.
rooms.claim()

_PLACES = {
    "holdfast.archives": ("Archive", "JobReader"),
    "holdfast.plugin": ("HoldfastPlugin", "Job", "execute_job", "jobs_of"),
    "holdfast.results": ("BatchResult", "JobResult", "JobStatus", "Usage"),
    "holdfast.running": ("JobEnded", "JobTurn", "Planned", "ServerSilent", "arun", "run", "stream"),
    "holdfast.tools": ("tool",),
    "holdfast.failures": ("ArchiveError", "HoldfastError", "InputError", "NotFound", "ServerError"),
    "holdfast.events": ("EventLog", "View"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}
_MODULES = ("condensers", "events")

__all__ = [
    "Archive",
    "ArchiveError",
    "BatchResult",
    "EventLog",
    "HoldfastError",
    "HoldfastPlugin",
    "InputError",
    "Job",
    "JobEnded",
    "JobReader",
    "JobResult",
    "JobStatus",
    "JobTurn",
    "NotFound",
    "Planned",
    "ServerError",
    "ServerSilent",
    "Usage",
    "View",
    "arun",
    "condensers",
    "events",
    "execute_job",
    "jobs_of",
    "run",
    "stream",
    "tool",
]


def __getattr__(name: str) -> Any:
    """A public name, loaded now."""
    if name in _MODULES:
        return import_module(f"holdfast.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    # Kept here, so that the next look at the name does not come by again.
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
