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
from runtime.projection.segments import (
    Digests,
    Role,
    Segment,
    SegmentKind,
    delta_between,
    digests_of,
)
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
    assert prompt.digests == digests_of(prompt.layout)
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


def test_digests_are_asked_of_the_segments_that_are_not_those_of_the_last_prompt() -> None:
    """Nor of those that equal them: 1 and 1.0 are equal, and have digests of their own."""
    asked: list[str] = []

    class Asked(Segment):
        @property
        def digest(self) -> str:  # type: ignore[override]
            asked.append(self.text)
            return super().digest

    def segments(texts: str, number: float) -> tuple[Segment, ...]:
        given: dict[str, Any] = {"kind": SegmentKind.REPLY, "origin": "", "role": Role.ASSISTANT}
        given |= {"tokens": 1, "thinking": ({"at": number},)}
        return tuple(Asked(text=text, **given) for text in texts)

    digests, first = Digests(), segments("abcd", 1)
    known = digests.of(first)
    assert asked == ["a", "b", "c", "d"]
    asked.clear()
    assert digests.of((*first[:3], *segments("xy", 1)))[:3] == known[:3]
    assert asked == ["x", "y"]

    equal = segments("d", 1.0)
    assert equal[0] == first[3]
    assert digests.of(first) == known
    assert digests.of((*first[:3], *equal))[3] == equal[0].digest != known[3]
    assert digests.of(first[:2]) == known[:2]
