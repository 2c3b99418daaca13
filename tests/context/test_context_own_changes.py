"""Views of files that the job's own statements change: behind at once, and told by whom."""

from __future__ import annotations

import pytest
from context_memory import Job, numbered

from activities.contracts import WorkspaceChanged
from activities.hands import folders
from runtime.base.values import Value
from runtime.context.own_changes import OwnChanges
from runtime.context.states import ViewState


@pytest.fixture
def job() -> Job:
    files = {"a.py": numbered(6), "b.py": numbered(6), "src": "x.py  3 bytes", "src/*.py": "x.py"}
    return Job(files, turn=12)


def changed(job: Job, *letters: tuple[str, str], count: int = 0, within: tuple[str, ...] = ()):  # type: ignore[no-untyped-def]
    """An effect of this turn's statement did this."""
    count = count or len(letters)
    job.graph.files_changed(OwnChanges.of(letters, count, within), turn=job.turn)


def feed_of(job: Job) -> list[str]:
    """The feed's lines without the diffs."""
    return [delta.head() for delta in job.graph.take_deltas()]


def behind(job: Job, obj_id: str) -> bool:
    """Whether a view is dirty."""
    return job.graph.state(obj_id).dirty.any


def test_a_file_that_the_job_changed_makes_its_views_behind_at_once(job: Job) -> None:
    """In the statement itself, in either spelling of the path; views of other files are not."""
    one, other, third = job.view("a.py"), job.view("a.py"), job.view("b.py")
    changed(job, ("a.py", "M"))
    assert [behind(job, view) for view in (one, other, third)] == [True, True, False]
    assert "source changed since; Refresh() shows it" in job.graph.render(one)


def test_the_feed_names_the_statement_that_changed_a_paused_view(job: Job) -> None:
    """Once for each statement that does; a reading takes the mark away."""
    view = job.view("a.py")
    job.graph.take_deltas()
    changed(job, ("a.py", "M"))
    assert feed_of(job) == ["view-1: changed by turn 12's statement; Refresh() shows it"]
    assert feed_of(job) == []
    job.turn = 13
    changed(job, ("a.py", "M"))
    assert feed_of(job) == ["view-1: changed by turn 13's statement; Refresh() shows it"]
    job.files["a.py"] = numbered(6).replace("line2", "new")
    job.on(view, "Refresh")
    assert not behind(job, view)
    assert feed_of(job) == ["view-1: changed by turn 13's statement, +1 -1 lines of those shown"]


def test_the_feed_names_the_statement_that_changed_a_running_view(job: Job) -> None:
    """The next tick reads it; a change after that which nobody announced is nobody's."""
    job.view("a.py", freq="Sync")
    job.graph.take_deltas()
    changed(job, ("a.py", "M"))
    job.files["a.py"] = numbered(6).replace("line2", "new")
    job.turn = 13
    job.tick()
    assert feed_of(job) == ["view-1: changed by turn 12's statement, +1 -1 lines of those shown"]
    job.files["a.py"] = numbered(6)
    job.turn = 14
    job.tick()
    assert feed_of(job) == ["view-1: its source changed, +1 -1 lines of those shown"]


def test_an_effect_that_changed_nothing_marks_nothing(job: Job) -> None:
    """Most commands are of that kind; their results leave out what is empty."""
    view = job.view("a.py")
    nothing = WorkspaceChanged(version="sha256:00").model_dump(mode="json")
    job.graph.files_changed(OwnChanges.told(nothing), turn=12)
    assert not behind(job, view)
    one = WorkspaceChanged(version="sha256:00", changed=(("a.py", "M"),), count=1)
    job.graph.files_changed(OwnChanges.told(one.model_dump(mode="json")), turn=12)
    assert behind(job, view)


def test_a_change_that_was_undone_is_none(job: Job) -> None:
    """The file is read as it was: nothing is told of it."""
    job.view("a.py", freq="Sync")
    job.graph.take_deltas()
    changed(job, ("a.py", "M"))
    job.turn = 13
    job.tick()
    assert feed_of(job) == []


@pytest.mark.parametrize("gone", ["src/a.py", "src"])
def test_a_file_that_the_job_deleted_is_told_as_such(job: Job, gone: str) -> None:
    """Also with the folder that it was in."""
    job.files["src/a.py"] = numbered(6)
    paused = job.view("src/a.py")
    job.view("src/a.py", freq="Sync")
    job.graph.take_deltas()
    changed(job, (gone, "D"))
    del job.files["src/a.py"]
    job.turn = 13
    job.tick()
    last = "still shows its last known state"
    assert feed_of(job) == [
        f"view-1: deleted by turn 12's statement; {last}",
        "view-2: unreadable (FileNotFoundError: no such file: src/a.py) since turn 12's statement;"
        f" {last}",
    ]
    assert "source deleted since" in job.graph.render(paused)


@pytest.mark.parametrize(
    ("path", "letters", "told"),
    [
        ("src", ("src/new.py", "A"), "changed"),
        ("src", ("src/x.py", "M"), "changed"),
        ("src", ("src/deep/x.py", "M"), None),
        ("src", ("src2/x.py", "A"), None),
        ("src/*.py", ("src/new.py", "A"), "may be changed"),
        ("src/*.py", ("a.py", "A"), None),
        ("src", ("src", "D"), "deleted"),
    ],
)
def test_listings_are_behind_when_what_they_list_changes(
    job: Job, path: str, letters: tuple[str, str], told: str | None
) -> None:
    """A folder's by what is in it; a pattern's perhaps, by what is where it looks."""
    view = job.view(path)
    job.graph.take_deltas()
    changed(job, letters)
    assert behind(job, view) == (told is not None)
    assert [line.partition(" by ")[0] for line in feed_of(job)] == (
        [f"view-1: {told}"] if told else []
    )


def test_of_many_changes_views_in_their_folders_may_have_changed(job: Job) -> None:
    """No more is said than is known; where no folder is told it may be any."""
    job.files["build/a.py"] = numbered(3)
    job.view("a.py"), job.view("build/a.py")
    job.graph.take_deltas()
    changed(job, ("b.py", "M"), count=99, within=("build",))
    assert feed_of(job) == ["view-2: may be changed by turn 12's statement; Refresh() shows it"]
    changed(job, ("b.py", "M"), count=99)
    assert feed_of(job) == ["view-1: may be changed by turn 12's statement; Refresh() shows it"]


def test_what_is_no_file_of_the_workspace_is_never_the_jobs_doing(job: Job) -> None:
    """Pages and what is in the archive are not changed by statements."""
    job.files["https://a.example/b.py"] = "text"
    view = job.view("https://a.example/b.py")
    changed(job, ("b.py", "M"), count=99)
    assert not behind(job, view)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_what_was_read_of_the_version_before_is_not_applied(
    job: Job, known: bool, named: bool
) -> None:
    """A background reading that began before the statement: the view stays behind, also where it
    was so already, and where it is not named.
    """
    view = job.view("a.py", freq="Async")
    job.tick()
    if known:
        changed(job, ("a.py", "M"))
        job.tick()
    (preparation,) = job.begin().values()
    job.prepared(preparation)
    changed(job, ("a.py", "M")) if named else changed(job, ("b.py", "M"), count=99)
    job.files["a.py"] = numbered(6).replace("line2", "new")
    job.tick()
    assert behind(job, view)
    assert (job.graph.background.tally.applied, job.graph.background.tally.stale) == (0, 1)
    (again,) = job.begin().values()
    job.prepared(again)
    job.tick()
    assert not behind(job, view)
    assert "new" in job.get(view, "text")


def test_what_may_have_changed_once_more_is_not_told_again(job: Job) -> None:
    """The feed has named the statement that did change it."""
    job.view("a.py")
    job.graph.take_deltas()
    changed(job, ("a.py", "M"))
    assert feed_of(job) == ["view-1: changed by turn 12's statement; Refresh() shows it"]
    job.turn = 13
    changed(job, ("b.py", "M"), count=99)
    assert feed_of(job) == []


def test_a_statement_that_is_taken_back_takes_the_marks_back(job: Job) -> None:
    """The files are as they were, too."""
    view = job.view("a.py")
    before = job.graph.snapshot()
    changed(job, ("a.py", "M"))
    job.graph.restore(before)
    assert not behind(job, view)


def test_states_without_a_change_have_the_digests_that_they_had() -> None:
    """Archives of before name them, and replays compare."""
    state = ViewState(obj_id="view-1", path="a", pos="0:0", tokens=1, lod=0, base_lod=0)
    assert isinstance(state, Value)
    assert "written" not in state.model_dump(mode="json")


def test_a_checkpoint_has_the_marks(job: Job) -> None:
    """A job that goes on elsewhere tells the same."""
    job.view("a.py")
    job.graph.take_deltas()
    changed(job, ("a.py", "M"))
    job.graph = type(job.graph).load(job.graph.dump(), job.graph._store.count)
    assert feed_of(job) == ["view-1: changed by turn 12's statement; Refresh() shows it"]


def test_further_changes_are_told_by_the_deepest_folders_that_hold_them_all() -> None:
    """As many as may be told: with more, those above them, and at last the workspace."""
    paths = ["a/b/1", "a/b/2", "a/c/d/3", "e/4"]
    assert folders(paths, 3) == ("a/b", "a/c/d", "e")
    assert folders(paths, 2) == ("a", "e")
    assert folders(paths, 1) == ("",)
    assert folders([], 1) == ()
