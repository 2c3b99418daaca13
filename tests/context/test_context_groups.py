"""Groups: summaries of their members, within a budget, recomputed when a member changed."""

from __future__ import annotations

import pytest
from context_memory import Job, numbered, raised, words
from hypothesis import given
from hypothesis import strategies as st

from runtime.base.fences import fenced
from runtime.context.graph import ContextGraph
from runtime.context.outcomes import NodeRef
from runtime.context.states import RenderedView, ViewState
from runtime.context.summary import Member, summarise

CODE = (
    '"""What it is."""\nimport os\n\nLIMIT = 5\n\nclass A:\n    def f(self):\n        return'
    " LIMIT\n\ndef g():\n    pass"
)


@pytest.fixture
def job() -> Job:
    return Job({"a.py": CODE, "b.txt": numbered(50), "c.txt": numbered(50)})


def test_summary_names_members_and_keeps_first_and_structure_lines(job: Job) -> None:
    """Level 2 is extractive: each member by its name, its first lines and its structure."""
    foo = job.view("a.py")
    s = job.group(foo, tokens=100)
    job.graph.learn_names({"foo": foo, "s": s})
    job.tick()
    assert job.graph.render(s) == (
        "[s: group of foo, lod 2, 21 tokens]\n"
        + fenced(
            'foo (view-1): a.py lines 0:11 of 11\n  """What it is."""\n  import os\n  LIMIT = 5\n '
            " class A:\n      def f(self):\n  def g():"
        )
    )


def test_levels_of_a_group(job: Job) -> None:
    """0 is the members' text, 1 their structure."""
    s = job.group(job.view("a.py"), tokens=100)
    job.on(s, "SetLod", 0)
    job.tick()
    assert job.get(s, "text").splitlines()[1:] == ["  " + line for line in CODE.splitlines()]
    job.on(s, "SetLod", 1)
    job.tick()
    assert job.get(s, "text").splitlines()[1:] == [
        "  LIMIT = 5",
        "  class A:",
        "      def f(self):",
        "  def g():",
    ]


def test_group_recomputes_when_a_member_changed_and_only_then(job: Job) -> None:
    """A tick without a change leaves a group alone; a change of a member is one recomputation."""
    a = job.view("a.py", freq="Sync")
    s = job.group(a, job.view("b.txt"))
    job.tick()
    job.graph.take_events(lambda: "e")
    job.tick()
    assert job.graph.take_events(lambda: "e") == ()
    job.files["a.py"] = CODE.replace("class A", "class B")
    job.tick()
    assert [event.type for event in job.graph.take_events(lambda: "e")] == [
        "tick_applied",
        "group_recomputed",
    ]
    assert "class B" in job.get(s, "text")


def test_a_paused_group_waits_for_refresh(job: Job) -> None:
    """Paused, a group keeps its summary whatever its members do; ``Refresh`` recomputes it at
    once.
    """
    a = job.view("a.py", freq="Sync")
    s = job.group(a, mode="paused")
    job.files["a.py"] = CODE.replace("class A", "class B")
    job.tick()
    assert "class A" in job.get(s, "text")
    assert job.get(s, "dirty") is True
    job.on(s, "Refresh")
    assert "class B" in job.get(s, "text")


def test_groups_of_groups_see_the_newest_members(job: Job) -> None:
    """One tick carries a change through groups that contain each other, whatever the order they
    were made in.
    """
    a = job.view("a.py", freq="Sync")
    outer = job.group(job.view("b.txt"), tokens=200)
    middle = job.group(outer, tokens=200)
    inner = job.group(a, tokens=100)
    job.on(outer, "Add", NodeRef(inner))
    job.tick()
    job.files["a.py"] = CODE.replace("class A", "class B")
    job.tick()
    assert ["class B" in job.get(node, "text") for node in (inner, outer, middle)] == [
        True,
        True,
        True,
    ]


def test_a_group_cannot_contain_itself(job: Job) -> None:
    """A cycle is a ``ValueError`` that names both."""
    inner = job.group(job.view("a.py"))
    outer = job.group(inner)
    job.graph.learn_names({"inner": inner, "outer": outer})
    assert (
        raised(job.on(inner, "Add", NodeRef(outer))).message
        == "Add: outer contains inner; a group cannot contain itself"
    )
    assert raised(job.on(inner, "Add", NodeRef(inner))).type == "ValueError"


def test_add_and_remove(job: Job) -> None:
    """Membership changes at once, the summary at the tick; adding twice is adding once."""
    a, b = job.view("a.py"), job.view("b.txt")
    s = job.group(a, a, tokens=200)
    job.on(s, "Add", NodeRef(b), NodeRef(a))
    assert job.get(s, "members") == [NodeRef(a), NodeRef(b)]
    assert "b.txt" not in job.get(s, "text")
    job.tick()
    assert "b.txt" in job.get(s, "text")
    job.on(s, "remove", NodeRef(a))
    job.tick()
    assert "a.py" not in job.get(s, "text")
    assert raised(job.on(s, "Remove", NodeRef(a))).message == "Remove: view-1 is not in group-3"
    assert raised(job.on(s, "Remove", NodeRef(b))).type == "ValueError"


def test_wrong_members(job: Job) -> None:
    """A group takes handles, at least one."""
    assert (
        raised(job.call("group")).message
        == "group: at least one handle is needed, as in group(foo)"
    )
    assert (
        raised(job.call("group", "a.py")).message
        == "group: argument 1 must be a handle made by view(...), group(...) or note(...), not str"
    )
    assert raised(job.call("group", [NodeRef("view-1")])).type == "TypeError"


def test_pinned_and_changed_members_get_more(job: Job) -> None:
    """Of two equal members the pinned one, or the one that changed, has the larger part of the
    summary.
    """
    b, c = job.view("b.txt", freq="Sync"), job.view("c.txt", freq="Sync")
    s = job.group(b, c, tokens=40, lod=0)
    job.tick()

    def lines_of(name: str) -> int:
        text = job.get(s, "text")
        part = text[text.index(name) :].splitlines()[1:]
        return next((i for i, line in enumerate(part) if not line.startswith("  ")), len(part))

    job.files["c.txt"] = numbered(50, start=100)
    job.tick()
    assert lines_of("c.txt") > lines_of("b.txt")
    job.call("pin", NodeRef(b))
    job.on(c, "SetTokens", 1500)
    job.tick()
    assert lines_of("b.txt") == lines_of("c.txt")


def test_group_level_3_is_the_diff_of_its_summaries(job: Job) -> None:
    """A diff-only façade shows how its summary changed since it was last shown."""
    a = job.view("a.py", freq="Sync")
    s = job.group(a, tokens=100)
    job.graph.take_deltas()
    job.on(s, "SetLod", 3)
    job.files["a.py"] = CODE.replace("class A", "class B")
    job.tick()
    assert "-  class A:\n+  class B:" in job.get(s, "text")


def test_throttled_group(job: Job) -> None:
    """A group's throttle holds back what members' changes would cause, not what the model sets."""
    a = job.view("a.py", freq="Sync")
    s = job.group(a)
    job.on(s, "Run", min_turn_interval=3)
    job.files["a.py"] = CODE.replace("class A", "class B")
    job.tick()
    assert "class A" in job.get(s, "text")
    job.tick()
    job.tick()
    assert "class B" in job.get(s, "text")


texts = st.lists(st.text("ab #=\t", max_size=12), max_size=20).map("\n".join)


@given(
    texts=st.lists(texts, min_size=1, max_size=5),
    budget=st.integers(1, 60),
    lod=st.sampled_from([0, 1, 2]),
)
def test_summary_stays_within_its_budget(texts: list[str], budget: int, lod: int) -> None:
    """Whatever the members hold, the summary has at most the budget's tokens, or is the one line
    that counts them.
    """
    members = [
        Member(
            f"m{i}",
            ViewState(
                obj_id=f"view-{i}",
                path="p",
                pos="0:0",
                tokens=9,
                lod=0,
                base_lod=0,
                rendering=RenderedView(text=text),
            ),
            changed=i == 1,
        )
        for i, text in enumerate(texts)
    ]
    summary = summarise(members, lod=lod, budget=budget, count=words)
    assert summary == summarise(members, lod=lod, budget=budget, count=words)
    assert words(summary) <= budget or summary == f"... {len(members)} more members"


def test_a_member_that_changed_a_while_ago_keeps_a_larger_share() -> None:
    """Changed since the last summary: three shares; in one of the last five turns: two; else
    one.
    """
    job = Job({name: numbered(60) for name in ("a.txt", "b.txt", "c.txt")})
    a, b, c = (job.view(name, freq="Sync") for name in job.files)
    group = job.group(a, b, c, tokens=90, lod=0)

    def lines() -> list[int]:
        """How many lines of each member the summary shows."""
        parts = job.get(group, "text").split("view-")[1:]
        return [len(part.splitlines()) - 1 for part in parts if ":" in part.splitlines()[0]]

    equal = lines()
    job.files["a.txt"] = numbered(60, start=100)
    job.tick()
    changed = lines()
    job.files["b.txt"] = numbered(60, start=100)
    job.tick()
    recent = lines()
    assert max(equal) - min(equal) <= 1
    assert changed[0] > changed[1] == changed[2]
    assert recent[1] > recent[0] > recent[2]
    for turn in range(6):
        job.files["b.txt"] = numbered(60, start=turn)
        job.tick()
    later = lines()
    assert later[1] > later[0] == later[2]


def changes_with_its_file(job: Job, node: str) -> None:
    """Who waits for ``node`` is told when the file below it changes, and not before."""
    job.call("wait_for", NodeRef(node))
    (known,) = (job.graph.awaited(wait) for wait in job.graph.take_waits())
    assert job.graph.changed_since(known) == ()
    job.files["a.txt"] = "two"
    job.tick()
    assert job.graph.changed_since(known) == (node,)


@pytest.mark.slow
def test_groups_nest_deeper_than_pythons_calls() -> None:
    """A chain of groups that a statement made in a loop is stored, and waited for, as any other."""
    job = Job({"a.txt": "one"}, ContextGraph(words, writer=True))
    node = job.view("a.txt", freq="Sync")
    for _ in range(1_100):
        node = job.group(node, tokens=10)
    assert len(job.graph.changed_states()) == 1_101
    changes_with_its_file(job, node)


def test_a_group_in_many_groups_is_looked_at_once() -> None:
    """Forty floors of two groups, each of both below: 2^40 ways lead down, and 80 groups."""
    job = Job({"a.txt": "one"}, ContextGraph(words, writer=True))
    low = high = job.view("a.txt", freq="Sync")
    for _ in range(40):
        low, high = job.group(low, high, tokens=10), job.group(high, low, tokens=10)
    assert len(job.graph.changed_states()) == 81
    changes_with_its_file(job, high)
