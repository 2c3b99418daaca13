"""An archive that is removed while jobs run is told, though no write to it fails."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from runtime.archive.catalog import archive_id
from runtime.archive.stores import MemoryStore
from runtime.archive.stores.removal import removing
from runtime.cli import lost_archive
from runtime.cli.lost_archive import tell_of_a_lost_archive
from tests.cli.command_line import CommandLine, gated, wait_for


def _empty(store: MemoryStore) -> None:
    for key in list(store.list("")):
        removing(store).remove(key)


@pytest.mark.parametrize("then", ["empty", "another"])
async def test_it_is_told_once(monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    """Whether nothing is there any more, or another archive was made since."""
    monkeypatch.setattr(lost_archive, "LOOK_SECONDS", 0)
    store, told = MemoryStore(), asyncio.Queue[str]()
    looking = asyncio.create_task(tell_of_a_lost_archive(store, archive_id(store), told.put_nowait))
    _empty(store)
    if then == "another":
        archive_id(store)
    assert (await told.get()).startswith("warning: the archive of these jobs was removed from")
    await looking
    assert told.empty()


@pytest.mark.server
@pytest.mark.slow
def test_the_command_says_so_at_its_end(own_cli: CommandLine) -> None:
    """After the results, with exit code 4: that all jobs succeeded is not all."""
    gate, store = own_cli.path / "gate", own_cli.path / "store"
    own_cli.write("m.py", gated(gate))
    file = own_cli.jobs("id: a, model: scripted/m.py, budget: {turns: 5000}", batch="b")
    process = own_cli.start("run", file, "--store", str(store))
    wait_for(lambda: len(list(Path(store).rglob("*.step"))) >= 2, "two turns", process)
    # The directory itself stays, as a bucket or a mount does; a write may come in between.
    for part in (store / "_holdfast", store / "b"):
        shutil.rmtree(part, ignore_errors=True)
    gate.touch()
    done = own_cli.finished(process)
    assert done.code == 4, done.err
    assert done.out.splitlines()[-1].startswith("1 succeeded; ")
    (told,) = [line for line in done.err.splitlines() if not line.startswith("warning: ")]
    assert told.startswith("error: ")
    assert f"was removed from {store} while they ran" in told
