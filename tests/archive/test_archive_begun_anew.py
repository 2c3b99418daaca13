"""How often a job was begun anew, by its archive."""

from __future__ import annotations

from archive_jobs import Written, segment

from runtime.archive.job import JobArchive
from runtime.archive.replays import claim_replay, write_replay
from runtime.archive.standings import standing_of
from runtime.archive.stores import MemoryStore
from runtime.cli.log import earlier_of


def _begin(written: Written, run: str, order: str = "") -> None:
    """A run with a first turn, by the order of a replay if there is one."""
    if order:
        write_replay(written.archive, order, {"id": order}, "2026-11-28T00:00:00+00:00")
        assert claim_replay(written.archive, order, run) is not None
    written.finish(run, 1, written.begin(run, 1, None, [segment("turn 1")]))


def test_what_went_on_from_its_first_turn_was_not_begun_anew() -> None:
    """One that was lost in it, or was taken back to it; one that began again after that was."""
    written = Written(JobArchive(MemoryStore(), "b", "j"))
    _begin(written, "a")
    _begin(written, "b", order="lost")
    _begin(written, "c", order="taken back")
    assert (standing_of(written.archive).retries, earlier_of(written.archive)) == (0, [])
    _begin(written, "d")
    earlier = [row["run"] for row in earlier_of(written.archive)]
    assert (standing_of(written.archive).retries, earlier) == (1, ["c"])
