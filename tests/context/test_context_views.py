"""Views: made by a read, set by methods, brought up to date by a tick or at once."""

from __future__ import annotations

from typing import Any

import pytest
from context_memory import Job, node_of, numbered, raised

from runtime.base.fences import fenced
from runtime.context.outcomes import NeedsRead, NodeRef, Raised, Refused, Returned
from runtime.context.sources import ALL_TOKENS, ReadRequest
from runtime.context.states import RenderedView, ViewState
from runtime.context.views import scrolled


@pytest.fixture
def job() -> Job:
    return Job(
        {
            "a.txt": numbered(100),
            "code.py": "import os\nclass A:\n    def f(self):\n        return 1",
        }
    )


def test_view_reads_before_it_returns(job: Job) -> None:
    """``view`` is an effect: it names the read, and the handle comes with the reading."""
    outcome = job.graph.call_function("view", ("a.txt",), {"pos": "3", "tokens": 2}, turn=1)
    assert isinstance(outcome, NeedsRead)
    assert outcome.request == ReadRequest(obj_id="view-1", path="a.txt", pos="3:0", tokens=2)
    assert job.graph.obj_ids == ()
    assert job.finish(outcome) == Returned(NodeRef("view-1"))
    assert job.graph.render("view-1") == (
        "[view-1: view of a.txt lines 3:5 of 100, lod 0, 2 tokens, more in the source]\n"
        + fenced("line3\nline4")
    )


def test_missing_file_raises_in_the_statement(job: Job) -> None:
    """A source that cannot be read makes no view; the reader's exception is the statement's."""
    assert job.call("view", "nope") == Raised("FileNotFoundError", "no such file: nope")
    assert job.graph.obj_ids == ()


def test_policy_takes_effect_at_the_tick(job: Job) -> None:
    """Setters return the node, change nothing that is shown, and make the node due, paused or
    not.
    """
    foo = job.view("a.txt", tokens=2)
    assert node_of(job.on(foo, "SetPos", 10)) == foo
    assert node_of(job.on(foo, "set_tokens", 3)) == foo
    assert job.get(foo, "text") == "line0\nline1"
    assert job.get(foo, "dirty") is True
    assert job.tick() == [foo]
    assert job.get(foo, "text") == "line10\nline11\nline12"
    assert job.get(foo, "dirty") is False
    assert job.tick() == []


def test_policy_set_back_needs_no_read(job: Job) -> None:
    """A view set away and back shows what it should, so it is not due."""
    foo = job.view("a.txt", tokens=2)
    job.on(foo, "SetTokens", 50)
    job.on(foo, "SetTokens", 2)
    assert job.tick() == []


@pytest.mark.parametrize("method", ["Refresh", "refresh"])
def test_refresh_reads_at_once(job: Job, method: str) -> None:
    """``Refresh`` shows the file as it is now, under the policy as it is now."""
    foo = job.view("a.txt", tokens=1)
    job.files["a.txt"] = "new\nlines"
    job.on(foo, "SetTokens", 2)
    assert node_of(job.on(foo, method)) == foo
    assert job.get(foo, "text") == "new\nlines"
    assert job.tick() == []


def test_refresh_of_a_vanished_file_raises_and_keeps_the_last_state(job: Job) -> None:
    """The statement gets the exception; the view keeps its text and says that it is old."""
    foo = job.view("a.txt", tokens=1)
    del job.files["a.txt"]
    assert raised(job.on(foo, "Refresh")).type == "FileNotFoundError"
    assert job.graph.render(foo) == (
        "[view-1: view of a.txt lines 0:1 of 100, lod 0, 1 tokens, more in the source, "
        "last known state, now unreadable: FileNotFoundError: no such file: a.txt]\n"
        + fenced("line0")
    )


def test_level_1_is_read_as_structure(job: Job) -> None:
    """Level 1 is the reader's structure."""
    foo = job.view("code.py")
    job.on(foo, "SetLod", 1)
    job.tick()
    assert job.get(foo, "text") == "class A:\n    def f(self):"


@pytest.mark.parametrize(
    ("start", "scroll", "end"),
    [
        ("0", {"delta_lines": 50}, "50:0"),
        ("50:4", {"delta_lines": -20}, "30:4"),
        ("5", {"delta_lines": -20}, "0:0"),
        ("90", {"delta_lines": 50}, "99:0"),
        ("/line42", {"delta_lines": 3}, "45:0"),
        ("-40", {"delta_lines": 3}, "63:0"),
        ("-40", {"delta_lines": -70}, "0:0"),
        ("-400", {"delta_lines": 1}, "1:0"),
        ("0", {"delta_tokens": 10}, "10:0"),
        ("50", {"delta_tokens": -10}, "40:0"),
        ("50", {"delta_tokens": 10**400}, "99:0"),
    ],
)
def test_scroll(job: Job, start: str, scroll: dict[str, int], end: str) -> None:
    """``Scroll`` moves by lines or by about so many tokens, stays within the file, and counts from
    where an anchor was found.
    """
    foo = job.view("a.txt", pos=start, tokens=5)
    job.on(foo, "Scroll", **scroll)
    assert job.get(foo, "pos") == end


def test_scroll_from_an_anchor_counts_from_its_line() -> None:
    """An excerpt may start above its anchor (a short file is shown whole); ``Scroll`` counts from
    the anchor all the same.
    """
    rendering = RenderedView(
        text=numbered(9), pos="/line4", first_line=0, last_line=9, total_lines=9
    )
    state = ViewState(
        obj_id="view-1", path="a", pos="/line4", tokens=0, lod=0, base_lod=0, rendering=rendering
    )
    assert scrolled(state, 2) == "6:0"
    with pytest.raises(Refused, match="is not among those shown"):
        scrolled(state.evolve(pos="/other"), 2)


def test_render_and_show_read_only_for_what_is_not_there(job: Job) -> None:
    """A clean view answers from what it shows; another level or budget is read for that answer
    alone.
    """
    foo = job.view("code.py", tokens=20)
    job.reads.clear()
    assert job.on(foo, "Render") == Returned(job.get(foo, "text"))
    assert job.reads == []
    assert job.on(foo, "Render", lod=1) == Returned("class A:\n    def f(self):")
    assert job.reads == [foo]
    assert (job.get(foo, "lod"), job.get(foo, "text").splitlines()[0]) == (0, "import os")
    shown = job.call("show", NodeRef(foo), tokens=2)
    assert shown == Returned(
        "[view-1: view of code.py lines 0:1 of 4, lod 0, 2 tokens, more in the source]\n"
        + fenced("import os"),
        display=True,
    )


def test_show_of_a_changed_policy_brings_the_view_up_to_date(job: Job) -> None:
    """What ``show`` had to read for the node's own policy is kept: the tick has nothing left to
    do.
    """
    foo = job.view("a.txt", tokens=1)
    job.on(foo, "SetPos", 7)
    assert job.call("show", NodeRef(foo)) == Returned(
        "[view-1: view of a.txt lines 7:8 of 100, lod 0, 1 tokens, more in the source]\n"
        + fenced("line7"),
        display=True,
    )
    assert job.tick() == []


def test_attributes(job: Job) -> None:
    """Attributes are the state's, as plain values."""
    foo = job.view("a.txt", pos=5, tokens=3, freq="Sync")
    names = (
        "obj_id",
        "obj_type",
        "path",
        "pos",
        "tokens",
        "lod",
        "mode",
        "freq",
        "first_line",
        "last_line",
        "fault",
    )
    assert [job.get(foo, name) for name in names] == [
        *("view-1", "view", "a.txt", "5:0", 3, 0, "running", "Sync", 5, 8, None)
    ]
    assert raised(job.graph.get_attribute(foo, "colour")).type == "AttributeError"
    assert (
        raised(job.graph.get_attribute(foo, "SetLod")).message
        == "SetLod is a method: call it, as in SetLod(...)"
    )


def test_all_tokens(job: Job) -> None:
    """``All`` is a budget without a bound of the view's own."""
    foo = job.view("a.txt", tokens=ALL_TOKENS)
    assert len(job.get(foo, "text").splitlines()) == 100
    assert "100/All tokens" in job.call("ls").value[0]


@pytest.mark.parametrize(
    ("kwargs", "mode", "freq"),
    [
        ({}, "paused", None),
        ({"freq": "Sync"}, "running", "Sync"),
        ({"mode": "running"}, "running", "Sync"),
        ({"mode": "paused", "freq": "Sync"}, "paused", "Sync"),
    ],
)
def test_mode_and_freq(job: Job, kwargs: dict[str, Any], mode: str, freq: str | None) -> None:
    """Paused unless told otherwise; a frequency alone means running."""
    foo = job.view("a.txt", **kwargs)
    assert (job.get(foo, "mode"), job.get(foo, "freq")) == (mode, freq)


WRONG_VIEWS: list[tuple[tuple[Any, ...], dict[str, Any], str, str]] = [
    ((1,), {}, "TypeError", "view: path must be a str or an opened file, not int"),
    (("",), {}, "ValueError", "view: path must name a file of the workspace, not ''"),
    ((), {}, "TypeError", "view(): missing a required argument: 'path'"),
    (("a.txt",), {"tokens": "9"}, "TypeError", "view: tokens must be an int or All, not str"),
    (("a.txt",), {"tokens": 0}, "ValueError", "view: tokens must be at least 1, or All; not 0"),
    (("a.txt",), {"tokens": True}, "TypeError", "view: tokens must be an int or All, not bool"),
    (("a.txt",), {"pos": "x"}, "ValueError", "view: pos must be a 0-based line"),
    (("a.txt",), {"pos": "-0"}, "ValueError", "view: pos must be a 0-based line"),
    (("a.txt",), {"pos": 1.5}, "TypeError", "view: pos must be an int or a str"),
    (("a.txt",), {"pos": "٣"}, "ValueError", "view: pos must be a 0-based line"),
    (("a.txt",), {"lod": 4}, "ValueError", "view: lod must be one of 0 (excerpt)"),
    (("a.txt",), {"mode": "on"}, "ValueError", 'view: mode must be "paused" or "running"'),
    (
        ("a.txt",),
        {"freq": ("Periodic", 0)},
        "ValueError",
        'view: ("Periodic", seconds) needs more than 0 and at most',
    ),
    (
        ("a.txt",),
        {"freq": "Never"},
        "ValueError",
        'view: freq must be "Sync", "Async", "Periodic" or',
    ),
    (("a.txt",), {"freq": 5}, "TypeError", "view: freq must be"),
    *(
        (
            ("a.txt",),
            {name: value},
            "ValueError",
            f"view: {name} has more digits than Python prints",
        )
        for name, value in (
            ("tokens", 10**4_300),
            ("pos", 10**4_300),
            ("lod", -(10**4_300)),
            ("freq", ("Periodic", 10**4_300)),
        )
    ),
    (("a.txt",), {"wat": 5}, "TypeError", "view(): got an unexpected keyword argument 'wat'"),
]


@pytest.mark.parametrize(("args", "kwargs", "type_", "message"), WRONG_VIEWS)
def test_wrong_arguments_of_view(
    job: Job, args: tuple[Any, ...], kwargs: dict[str, Any], type_: str, message: str
) -> None:
    """A wrong argument raises what Python would, and says what is accepted; nothing is read or
    made.
    """
    error = raised(job.graph.call_function("view", args, kwargs, turn=1))
    assert error.type == type_
    assert error.message.startswith(message)
    assert job.view("a.txt") == "view-1"


@pytest.mark.parametrize(
    ("method", "args", "type_"),
    [
        ("SetLod", ("x",), "TypeError"),
        ("SetTokens", (-5,), "ValueError"),
        ("SetPos", ("a:b",), "ValueError"),
        ("Scroll", ("x",), "TypeError"),
        ("Run", ("Sync", 0), "ValueError"),
        ("Run", ("Sync", 10**4_300), "ValueError"),
        ("Scroll", (10**4_300,), "ValueError"),
        ("Render", (7,), "ValueError"),
        ("Nope", (), "AttributeError"),
        ("Add", (NodeRef("view-1"),), "AttributeError"),
    ],
)
def test_wrong_arguments_of_methods(
    job: Job, method: str, args: tuple[Any, ...], type_: str
) -> None:
    """A refused call changes nothing and leaves no event."""
    foo = job.view("a.txt")
    before = job.graph.dump()
    assert raised(job.on(foo, method, *args)).type == type_
    assert job.graph.dump() == before


def test_pin_and_unpin(job: Job) -> None:
    """A pin has a reason on one line; ``None`` takes it off."""
    foo = job.view("a.txt")
    assert job.call("pin", NodeRef(foo), reason="the\nplan") == Returned(None)
    assert job.get(foo, "pinned") == "the plan"
    job.call("pin", NodeRef(foo))
    assert job.get(foo, "pinned") == "pinned"
    job.call("pin", NodeRef(foo), reason=None)
    assert job.get(foo, "pinned") is None
    assert (
        raised(job.call("pin", "foo")).message
        == "pin: obj must be a handle made by view(...), group(...) or note(...), not str"
    )
