"""The public names of Holdfast, and what asking for them loads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

ROOT = Path(__file__).parent.parent.parent

NAMES = """
    Archive ArchiveError BatchResult EventLog HoldfastError HoldfastPlugin InputError Job JobEnded JobReader JobResult
    JobStatus JobTurn NotFound Planned ServerError ServerSilent Usage View arun condensers events execute_job jobs_of run
    stream tool
"""

PURE = {"annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection"}
"""pydantic, and what it depends on."""

LOADED = """
import json, sys
before = set(sys.modules)
{code}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(json.dumps(sorted(n for n in loaded if n not in sys.stdlib_module_names and not n.startswith("_sysconfigdata"))))
"""

WITHOUT = """
import sys
from importlib.abc import MetaPathFinder
class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top = name.partition(".")[0]
        if top not in {allowed!r} and top not in sys.stdlib_module_names and not top.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


def python(code: str) -> str:
    """What ``code`` prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_public_names() -> None:
    """What ``holdfast`` has, and no more: a name that is here stays."""
    assert sorted(holdfast.__all__) == sorted(NAMES.split())


@pytest.mark.parametrize("name", sorted(NAMES.split()))
def test_every_name_is_there(name: str) -> None:
    """Each name can be asked for, and is then an attribute."""
    assert getattr(holdfast, name) is not None
    assert name in dir(holdfast)


def test_other_names_are_none() -> None:
    """A name that is not public is an ``AttributeError``, which says so."""
    with pytest.raises(AttributeError, match="module 'holdfast' has no attribute 'jobs'"):
        _ = holdfast.jobs


def test_importing_holdfast_loads_nothing() -> None:
    """``import holdfast`` loads two modules of its own, and none of anybody else's."""
    assert json.loads(python(LOADED.format(code="import holdfast"))) == ["holdfast"]
    ours = "sorted(name for name in sys.modules if name.startswith('holdfast'))"
    assert python(f"import holdfast, sys; print({ours})") == "['holdfast', 'holdfast.rooms']\n"


def test_events_need_pydantic_alone() -> None:
    """Events, the log, the View and condensers load pydantic and nothing that only jobs need."""
    code = "import holdfast; holdfast.EventLog, holdfast.View, holdfast.events, holdfast.condensers"
    assert set(json.loads(python(LOADED.format(code=code)))) - PURE == {"holdfast", "runtime"}


def test_events_work_where_nothing_else_is_installed() -> None:
    """A log takes events, and a condenser decides, where no other package than pydantic can be
    imported.
    """
    allowed = PURE | {"holdfast", "runtime", "workflows", "activities"}
    code = """
from holdfast import EventLog, condensers, events
log = EventLog()
log.append(events.MessageEvent(id="1", turn=0, source="user", content=events.text_content("hello")))
print(len(log), len(log.view), condensers.RollingWindow(max_size=10).__class__.__name__)
"""
    assert python(WITHOUT.format(allowed=allowed) + code) == "1 1 RollingWindow\n"
