"""A directory with a workspace, tools and a script, and a way to load jobs files in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.archive.stores import MemoryStore
from runtime.base.errors import ArchiveError, InputError
from runtime.base.spec.models import BatchSpec
from runtime.jobsfile.load import load_jobs_file

TOOLS = '''
from __future__ import annotations
import helpers

def search(query: str, limit: int = 5) -> list[str]:
    """Find the lines that hold the query.

    Not shown.
    """
    return helpers.find(query)[:limit]

async def fetch(url: str) -> dict[str, int]:
    """Fetch a page."""
    return {url: 1}

def untyped(query):
    return query
'''


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory to put jobs files in: ``src``, ``docs``, ``mytools.py``, ``policy.py``."""
    directory = tmp_path / "batch"
    for name in ("src", "docs"):
        (directory / name).mkdir(parents=True)
    (directory / "mytools.py").write_text(TOOLS)
    (directory / "helpers.py").write_text("def find(query):\n    return [query] * 9\n")
    (directory / "policy.py").write_text("def respond(messages):\n    return 'done'\n")
    return directory


Load = Callable[..., BatchSpec]
Refuse = Callable[..., str]


@pytest.fixture
def load(place: Path) -> Load:
    """Write a jobs file and load it."""

    def load(text: str | bytes, name: str = "jobs.yaml") -> BatchSpec:
        path = place / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_jobs_file(path)

    return load


@pytest.fixture
def refuse(load: Load, place: Path) -> Refuse:
    """Write a jobs file, and give the error that loading it raises, without the directory."""

    def refuse(text: str | bytes, name: str = "jobs.yaml") -> str:
        with pytest.raises(InputError) as caught:
            load(text, name)
        return str(caught.value).replace(f"{place}/", "")

    return refuse


class FullStore(MemoryStore):
    """One that has no room for some writes: those whose keys hold ``full``, in their order. Of
    those whose keys hold ``unheard`` the answer is lost: they are made.
    """

    def __init__(self, *full: str) -> None:
        super().__init__()
        self.full = list(full)
        self.unheard: list[str] = []

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See ``ObjectStore``."""
        if self.full and self.full[0] in key:
            del self.full[0]
            raise ArchiveError("no space left")
        written = super().put_if_absent(key, data)
        if self.unheard and self.unheard[0] in key:
            del self.unheard[0]
            raise ArchiveError("the answer was lost")
        return written
