"""What is kept from prompt to prompt never shows: each prompt is the one that would be made from
nothing.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_loop import count
from random_sessions import STATEMENTS, random_session

from runtime.base.spec.models import ProjectionPolicy
from runtime.job.condensing import SummaryTask
from runtime.job.job import Job, Prompt
from runtime.job.surface import Surface
from runtime.projection.project import Projector, tokens_of
from runtime.projection.segments import delta_between
from tests.tiers.tiers import examples


def checked(job: Job, prompt: Prompt) -> None:
    """The prompt against one that nothing is kept for; and that the model knows of each place what
    is there.
    """
    kept, graph = job.surface, job.graph
    fresh = Surface(graph, count, job.places)
    fresh.names, fresh.collapsed, fresh.shrunk = kept.names, dict(kept.collapsed), dict(kept.shrunk)
    fresh.tail_budgets, fresh._changed = dict(kept.tail_budgets), dict(kept._changed)
    fresh.look(job.log.view, job.turn)
    for obj_id in fresh.places:
        assert job.places.known[obj_id].known == fresh.current(obj_id)
    assert list(fresh.places) == list(kept.places)
    projector = Projector(count)
    parts = fresh.tail(job._deltas, prompt.layout[-1].text)
    dropped = [
        segment
        for segment in prompt.layout
        if segment.tail and segment.text.startswith("[forgotten")
    ]
    made = projector.layout(job.log.view, job.replies, fresh, parts)
    assert made == tuple(segment for segment in prompt.layout if segment not in dropped)
    assert projector.tokens == tokens_of(made) == job.desk.projector.tokens - tokens_of(dropped)
    assert all(segment.tokens == count(segment.text) for segment in made if segment.kind != "reply")
    standing = job.desk.projector.standing(job.log.view, job.replies, kept)
    stable = [segment for segment in made if not segment.tail]
    for number, segment in enumerate(stable):
        kind, _, obj_id = segment.origin.partition(":")
        if kind == "node" and segment.origin not in {s.origin for s in stable[:number]}:
            assert standing.behind(obj_id) == tokens_of(stable[number:])


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(STATEMENTS, max_size=24),
    st.sampled_from(list(ProjectionPolicy)),
    st.sampled_from([2_800, 60_000]),
)
def test_each_prompt_is_the_one_made_from_nothing(
    sources: list[str], policy: ProjectionPolicy, room: int
) -> None:
    """Over random sessions with files that change and change back, in small and large contexts,
    under every policy.
    """
    with TemporaryDirectory() as folder:
        options = {"projection": policy, "context_tokens": room}
        loop = random_session(Path(folder), sources, options=options)
        project, before = loop.job.project, ()

        def compared(now: float) -> Any:
            prompt = project(now)
            if not isinstance(prompt, SummaryTask):
                checked(loop.job, prompt)
                nonlocal before
                reply = loop.job.replies.get(loop.job.turn - 1)
                assert prompt.delta == delta_between(before, reply, prompt.layout)
                before = prompt.layout
            return prompt

        loop.job.project = compared  # type: ignore[method-assign]
        loop.run()
