"""A state machine: random calls, ticks, projections and rollbacks keep the context's invariants."""

from __future__ import annotations

import json
from typing import Any

from context_memory import Job, numbered, words
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runtime.context.graph import ContextGraph
from runtime.context.groups import reaches
from runtime.context.outcomes import NodeRef, Outcome, Raised
from runtime.context.states import GroupState, Mode, ViewState
from tests.tiers.tiers import examples

PATHS = ("a.py", "b.txt", "c.txt")
contents = st.builds(
    lambda start, count: f"class A{start}:\n" + numbered(count, start=start),
    st.integers(0, 3),
    st.integers(0, 8),
)
picks = st.integers(0, 50)
POLICY: dict[str, st.SearchStrategy[Any]] = {
    "SetLod": st.sampled_from([0, 1, 2, 3, 9]),
    "SetTokens": st.sampled_from([-1, 0, 1, 5, 30]),
    "SetPos": st.sampled_from(["0", "3:1", "/line2", "x"]),
    "Scroll": st.integers(-9, 9),
    "Run": st.sampled_from(["Sync", "Async", 5]),
}
policies = st.sampled_from(sorted(POLICY)).flatmap(
    lambda name: st.tuples(st.just(name), POLICY[name])
)


class ContextMachine(RuleBasedStateMachine):
    """Two jobs get the same calls over the same files; one of them is dumped and loaded on the
    way.
    """

    @initialize(text=contents)
    def begin(self, text: str) -> None:
        files = dict.fromkeys(PATHS, text)
        self.jobs = (Job(files), Job(files))
        self.seen = self.digests()

    def digests(self) -> dict[str, str]:
        graph = self.jobs[0].graph
        return {obj_id: graph.digest(obj_id) for obj_id in graph.obj_ids}

    def both(self, do: Any) -> None:
        """Do the same to both jobs; they must answer alike."""
        first, second = (do(job) for job in self.jobs)
        assert first == second
        self.seen = self.digests()

    def node(self, pick: int) -> str:
        ids = self.jobs[0].graph.obj_ids
        return ids[pick % len(ids)]

    @rule(
        path=st.sampled_from([*PATHS, "gone"]),
        tokens=st.integers(1, 12),
        lod=st.sampled_from([0, 1, 3]),
    )
    def view(self, path: str, tokens: int, lod: int) -> None:
        self.both(lambda job: job.call("view", path, tokens=tokens, lod=lod))

    @precondition(lambda self: self.jobs[0].graph.obj_ids)
    @rule(members=st.lists(picks, min_size=1, max_size=3), tokens=st.integers(1, 40))
    def group(self, members: list[int], tokens: int) -> None:
        refs = [NodeRef(self.node(m)) for m in members]
        self.both(lambda job: job.call("group", *refs, tokens=tokens))

    @precondition(lambda self: self.jobs[0].graph.obj_ids)
    @rule(pick=picks, policy=policies)
    def policy(self, pick: int, policy: tuple[str, Any]) -> None:
        before = self.jobs[0].graph.dump()
        outcome: list[Outcome] = []

        def do(job: Job) -> Outcome:
            outcome.append(job.on(self.node(pick), *policy))
            return outcome[-1]

        self.both(do)
        if isinstance(outcome[0], Raised):
            assert self.jobs[0].graph.dump() == before

    @precondition(lambda self: self.jobs[0].graph.obj_ids)
    @rule(pick=picks, other=picks, method=st.sampled_from(["Add", "Remove"]))
    def membership(self, pick: int, other: int, method: str) -> None:
        self.both(lambda job: job.on(self.node(pick), method, NodeRef(self.node(other))))

    @precondition(lambda self: self.jobs[0].graph.obj_ids)
    @rule(pick=picks, method=st.sampled_from(["Refresh", "Pause", "Render", "GetDigest"]))
    def method(self, pick: int, method: str) -> None:
        self.both(lambda job: job.on(self.node(pick), method))

    @precondition(lambda self: self.jobs[0].graph.obj_ids)
    @rule(
        pick=picks, lod=st.sampled_from([None, 0, 1, 3]), function=st.sampled_from(["show", "pin"])
    )
    def function(self, pick: int, lod: int | None, function: str) -> None:
        extra = {"lod": lod} if function == "show" else {}
        self.both(lambda job: job.call(function, NodeRef(self.node(pick)), **extra))

    @rule(path=st.sampled_from(PATHS), content=st.none() | contents)
    def file(self, path: str, content: str | None) -> None:
        files = self.jobs[0].files
        files.pop(path, None)
        if content is not None:
            files[path] = content

    @rule()
    def tick(self) -> None:
        self.both(lambda job: job.tick())
        graph = self.jobs[0].graph
        assert not any(graph.state(obj_id).dirty.explicit for obj_id in graph.obj_ids)

    @rule()
    def project(self) -> None:
        self.both(
            lambda job: (job.graph.take_deltas(), [job.graph.render(i) for i in job.graph.obj_ids])
        )

    @rule()
    def record(self) -> None:
        self.both(
            lambda job: (
                job.graph.take_events(lambda: "e"),
                job.graph.changed_states(),
            )
        )

    @rule(path=st.sampled_from(PATHS), pick=picks)
    def rollback(self, path: str, pick: int) -> None:
        """A statement that is taken back leaves no trace."""
        job = self.jobs[0]
        before, snapshot = job.graph.dump(), job.graph.snapshot()
        job.call("view", path)
        if job.graph.obj_ids:
            job.on(self.node(pick), "SetTokens", 7)
            job.call("group", NodeRef(self.node(pick)))
        job.graph.restore(snapshot)
        assert job.graph.dump() == before

    @rule()
    def reload(self) -> None:
        """The second job goes on from its checkpoint."""
        second = self.jobs[1]
        second.graph = ContextGraph.load(json.loads(json.dumps(second.graph.dump())), words)

    @invariant()
    def nothing_changes_by_itself(self) -> None:
        """Digests move in calls and ticks only; looking moves nothing."""
        graph = self.jobs[0].graph
        for obj_id in graph.obj_ids:
            graph.render(obj_id)
            graph.get_attribute(obj_id, "text")
        graph.handle_table({})
        assert self.digests() == self.seen

    @invariant()
    def the_index_is_what_a_look_at_all_nodes_finds(self) -> None:
        """Also after a statement was taken back, and after a checkpoint."""
        for job in self.jobs:
            nodes, index = job.graph._store.nodes, job.graph._store.index
            assert index.running.keys() == {o for o, s in nodes.items() if s.mode is Mode.RUNNING}
            assert index.pinned.keys() == {o for o, s in nodes.items() if s.pinned is not None}
            assert index.groups.keys() == {o for o, s in nodes.items() if isinstance(s, GroupState)}
            views = {o: s for o, s in nodes.items() if isinstance(s, ViewState)}
            assert index.asked.keys() == {o for o, s in views.items() if s.dirty.explicit}
            assert {o: path for path, those in index.paths.items() for o in those} == {
                o: s.path for o, s in views.items()
            }

    @invariant()
    def both_jobs_are_equal(self) -> None:
        """The same calls give the same state, and a checkpoint loses nothing."""
        first, second = (job.graph.dump() for job in self.jobs)
        assert first == second

    @invariant()
    def no_group_contains_itself(self) -> None:
        """Membership has no cycles, and members exist."""
        store = self.jobs[0].graph._store
        for state in store.nodes.values():
            if isinstance(state, GroupState):
                assert not any(reaches(store, member, state.obj_id) for member in state.members)


ContextMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30)
TestContextMachine = ContextMachine.TestCase
