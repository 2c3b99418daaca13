"""Commands in both sandboxes, each in a place of its own."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runtime.sandbox.choice import sandbox_of
from runtime.sandbox.command import Command, Finished, Place, Sandbox


@dataclass
class Bench:
    """Runs commands in one place, and keeps what they printed."""

    sandbox: Sandbox
    top: Path
    place: Place
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, shell: str, *, place: Place | None = None, **options: Any) -> Finished:
        """Run ``shell``."""
        return self.sandbox.run(
            Command(shell, **options),
            place or self.place,
            self.top / "stdout",
            self.top / "stderr",
            on_beat=lambda _: None,
            stop=self.stop,
        )

    @property
    def stdout(self) -> str:
        """What the last command printed."""
        return (self.top / "stdout").read_text()

    @property
    def stderr(self) -> str:
        """What the last command printed to standard error."""
        return (self.top / "stderr").read_text()

    @property
    def workspace(self) -> Path:
        """The workspace's directory on the host."""
        assert self.place.directory is not None
        return self.place.directory


def _bench(kind: Any, tmp_path: Path) -> Bench:
    directory = tmp_path / "workspace"
    directory.mkdir()
    return Bench(sandbox_of(kind), tmp_path, Place(directory=directory))


@pytest.fixture(params=["bwrap", "none"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Each sandbox in turn, with a plain directory as its workspace."""
    return _bench(request.param, tmp_path)


@pytest.fixture
def sandboxed(tmp_path: Path) -> Bench:
    """bubblewrap, with a plain directory as its workspace."""
    return _bench("bwrap", tmp_path)
