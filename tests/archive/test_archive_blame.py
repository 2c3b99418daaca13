"""Since when each part of a prompt stands there, and what became of what does not; how much is read
to know.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence

import pytest
from archive_jobs import Written, blocks, chat, segment, step_record, write_run

from runtime.archive.blame import blame, left
from runtime.archive.causes import Why, causes
from runtime.archive.changes import layout_changes, segment_of
from runtime.archive.inspect import Blame, why
from runtime.archive.job import JobArchive
from runtime.archive.prompts import prompts
from runtime.archive.recipe import Extents
from runtime.archive.requests import RequestReader
from runtime.archive.stores import MemoryStore
from runtime.base.values import ToolCall
from runtime.job.condensed import CondensationOutcome
from runtime.projection.segments import Role, Segment, SegmentKind

A, B, C, D = (segment(f"text of {name}", f"event:{name}") for name in "ABCD")
B2 = segment("another text of B", "event:B")
Layouts = Sequence[Sequence[Segment]]


class CountingStore(MemoryStore):
    """Counts reads by key."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def get(self, key: str) -> bytes:
        self.reads.append(key)
        return super().get(key)


def written(layouts: Layouts, store: MemoryStore | None = None) -> Written:
    """A job of these prompts, turn by turn."""
    job = Written(JobArchive(store if store is not None else MemoryStore(), "nightly", "job"))
    write_run(job, "a", range(1, len(layouts) + 1), None, lambda turn, *_: list(layouts[turn - 1]))
    return job


def by_definition(layouts: Iterable[tuple[int, Sequence[Segment]]]) -> tuple[Blame, ...]:
    """Blame from whole prompts: what ``blame`` tells without them."""
    sources: dict[tuple[str, str], int] = {}
    texts: dict[str, int] = {}
    last: Sequence[Segment] = ()
    for turn, layout in layouts:
        sources = {key: sources.get(key, turn) for key in ((s.kind, s.origin) for s in layout)}
        texts = {digest: texts.get(digest, turn) for digest in (s.digest for s in layout)}
        last = layout
    return tuple(
        Blame(s, n, sources[s.kind, s.origin], texts[s.digest]) for n, s in enumerate(last)
    )


def test_blame_gives_the_turn_that_brought_a_segment_in_and_the_one_that_changed_it() -> None:
    """A changed segment keeps the turn of its origin; one that came back is as old as its
    return.
    """
    found = blame(written([[A, B], [A, B, C], [A, B2], [A, B2, C]]).archive, "a", 4, [])
    assert [(b.segment, b.introduced, b.changed) for b in found] == [
        (A, 1, 1),
        (B2, 1, 3),
        (C, 4, 4),
    ]


def shuffled(rng: random.Random) -> Layouts:
    """Prompts whose parts come, go, move, come back, are told twice, and share most of their
    text.
    """
    pool = [segment(f"{'shared words ' * 9}{n % 5}", f"event:{n}") for n in range(9)]
    return [rng.choices(pool, k=rng.randrange(0, 7)) for _ in range(80)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_blame_and_prompts_are_those_of_the_whole_prompts(seed: int) -> None:
    """Read from what each turn stored, they are what reading every prompt gives: over keyframes,
    with what comes back.
    """
    job = written(shuffled(random.Random(seed)))
    layouts = [(turn, job.layouts["a", turn]) for turn in range(1, 81)]
    assert [(turn, layout) for turn, _, layout in prompts(job.archive, "a")] == layouts
    for turn in (1, 2, 31, 33, 64, 80):
        assert blame(job.archive, "a", turn, []) == by_definition(layouts[:turn])


@pytest.mark.slow
@pytest.mark.parametrize("load", [chat, blocks])
def test_each_object_is_read_once(
    load: Callable[[random.Random], Callable[..., list[Segment]]],
) -> None:
    """As many reads as turns and their sources: no prompt is put together twice, and no reply is
    read.
    """
    store = CountingStore()
    job = Written(JobArchive(store, "nightly", "job"))
    write_run(job, "a", range(1, 301), None, load(random.Random(2)))
    reader = JobArchive(store, "nightly", "job")
    store.reads.clear()
    found = blame(reader, "a", 300, [])
    attempts = [key for key in store.reads if ".attempt-" in key]
    assert len(attempts) == len(set(attempts)) == 300
    assert [key for key in store.reads if key.endswith(".step")] == []
    assert found == by_definition((turn, job.layouts["a", turn]) for turn in range(1, 301))


@pytest.mark.slow
def test_of_a_prompt_that_grows_its_news_alone_is_put_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a chain of recipes begins anew, what stands in the prompt as before is not read again:
    less than a sixth of those prompts' bytes.
    """
    put_together: list[int] = []
    layout_of = RequestReader.layout_of

    def counted(reader: RequestReader, extents: Extents) -> bytes:
        stretch = layout_of(reader, extents)
        put_together.append(len(stretch))
        return stretch

    monkeypatch.setattr(RequestReader, "layout_of", counted)
    job = Written(JobArchive(MemoryStore(), "nightly", "job"))
    write_run(job, "a", range(1, 401), None, chat(random.Random(2)))
    changes = list(layout_changes(job.archive, "a"))
    reader = RequestReader(job.archive.store.get)
    anew = [c.attempt for c in changes if reader.object(c.attempt).header["base"] is None]
    assert len(put_together) == len(anew) > 20
    assert sum(put_together) * 6 < sum(reader.layout_bytes(key) for key in anew)


def test_why_makes_segments_of_the_lines_that_have_the_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a prompt of hundreds, those that say it, in a text, a call or in escapes; with and without
    ``--gone``. What stands elsewhere in a line is nothing that a segment says.
    """
    job = Written(JobArchive(MemoryStore(), "nightly", "job"))
    write_run(job, "a", range(1, 101), None, chat(random.Random(2), 20))
    whole = blame(job.archive, "a", 100, [])
    lines: list[bytes] = []

    def counted(line: bytes, key: str) -> Segment:
        lines.append(line)
        return segment_of(line, key)

    monkeypatch.setattr("runtime.archive.blame.segment_of", counted)
    for text, parts in (("Result 42\n", 1), ('{"code": "x = 42"}', 1), ("ü, 世", 1), ("origin", 0)):
        lines.clear()
        blamed = blame(job.archive, "a", 100, [], text)
        assert blamed == why(whole, text)
        assert len(blamed) == parts
        assert len(lines) == (100 + 99 + 2 if text == "origin" else parts)
    lines.clear()
    gone, still = left(job.archive, "a", 100, "8958 tokens left", [])
    assert ([one.last for one in gone], still, len(lines)) == ([42], (), 1)


STATEMENT = """text = open('a').read()
if "a > b" in text:
    print("世", 'it is')"""


@pytest.mark.parametrize("dumped", [{"ensure_ascii": False}, {}])
def test_why_finds_what_a_statement_says_as_it_was_shown(dumped: dict[str, bool]) -> None:
    """Its quotes and line ends, which stand in a call's JSON as escapes, and so do other scripts
    and HTML's characters where a provider writes them so; and what a reasoning item says in short.
    """
    arguments = json.dumps({"code": STATEMENT}, **dumped).replace(">", "\\u003e")
    call = ToolCall(id="call_1", name="python", arguments=arguments)
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": 'A "thought".'}]}
    reply = Segment(
        kind=SegmentKind.REPLY, origin="statement:1", role=Role.ASSISTANT, text="Now.", tokens=9,
        tool_calls=(call,), thinking=(thought,),
    )  # fmt: skip
    job = written([[A], [A, reply], [A, reply, B], [A, B]])
    texts = (STATEMENT, "open('a').read()\nif", 'if "a > b"', "世", '"', 'A "th', '{"code":')
    for text in texts:
        assert [one.segment for one in blame(job.archive, "a", 3, [], text)] == [reply], text
        (gone,), still = left(job.archive, "a", 4, text, [])
        assert (gone.segment, gone.last, still) == (reply, 3, ())
    assert blame(job.archive, "a", 3, [], "nowhere") == ()


def test_what_goes_without_the_text_hides_nothing_that_went_with_it() -> None:
    """A place that held it, then said something else and went: it is told of, as held until then.
    A call's id, which nobody reads, is no text.
    """
    held, other = segment("a needle", "event:B"), segment("nothing", "event:B")
    call = ToolCall(id="needle", name="python", arguments="{}")
    other = other.model_copy(update={"tool_calls": (call,)})
    (gone,), still = left(written([[A, held], [A, other], [A]]).archive, "a", 3, "needle", [])
    assert (gone.segment, gone.last, gone.gone, still) == (held, 1, 2, ())


def text_of(kind: SegmentKind, text: str, origin: str, *, tail: bool = False) -> Segment:
    return Segment(kind=kind, origin=origin, role=Role.USER, text=text, tokens=9, tail=tail)


def test_what_left_the_prompts_is_told_with_its_cause() -> None:
    """A condensation, a change of level, a group, and room in the prompt; each with its turns and
    its place in the archive.
    """
    job = Written(JobArchive(MemoryStore(), "nightly", "job"))
    archive = job.archive
    event = text_of(SegmentKind.RESULT, "said 'needle'\nonce", "event:1.1")
    summary = text_of(SegmentKind.SUMMARY, "it said something", "event:2.c1-summary")
    views = [
        text_of(SegmentKind.VIEW, f"needle of {name}", f"node:{name}")
        for name in ("rewritten", "grouped", "large")
    ]
    group = text_of(SegmentKind.GROUP, "both in short", "node:group-1")
    mark = text_of(SegmentKind.MARK, "[left out]", "node:large")
    states = {
        name: {"obj_id": name, "digest": "1", "lod": 0}
        for name in ("rewritten", "grouped", "large")
    }
    parent = None
    layouts = [
        [event, *views],
        [summary, *views],
        [summary, views[0].model_copy(update={"text": "class A"}), views[1], views[2], group],
        [summary, views[2], group],
        [summary, mark, group],
    ]
    changes = [
        [*states.values(), {"obj_id": "group-1", "digest": "1", "members": ["grouped"]}],
        [],
        [{"obj_id": "rewritten", "digest": "2", "lod": 1}],
        [{"obj_id": "rewritten", "removed": True}],
        [],
    ]
    forgot = CondensationOutcome(
        id="2.c1",
        condenser="llm_summary",
        reason="tokens",
        forgotten=("1.1",),
        stands_in="2.c1-summary",
    )
    for turn, (layout, nodes) in enumerate(zip(layouts, changes, strict=True), 1):
        record = step_record("a", turn, job.begin("a", turn, parent, layout), nodes)
        parent = job.finished(
            record.model_copy(update={"condensations": (forgot,) if turn == 2 else ()})
        )
    gone, still = left(archive, "a", 5, "needle", [])
    told = causes(archive, "a", gone)
    assert still == ()
    assert [
        (one.segment.origin, one.first, one.last, one.gone, cause.why)
        for one, cause in zip(gone, told, strict=True)
    ] == [
        ("event:1.1", 1, 1, 2, Why.CONDENSATION),
        ("node:rewritten", 1, 2, 3, Why.REWRITTEN),
        ("node:grouped", 1, 3, 4, Why.GROUP),
        ("node:large", 1, 4, 5, Why.BUDGET),
    ]
    assert [cause.instead and cause.instead.text for cause in told] == [
        summary.text,
        "class A",
        group.text,
        mark.text,
    ]
    assert "condensation 2.c1 (llm_summary, tokens) forgot turn 1" in told[0].told
    assert "lod 0 -> 1" in told[1].told
    for one in gone:
        assert archive.attempt_layout(one.attempt)[one.position] == one.segment
    assert [one.segment.origin for one in left(archive, "a", 5, "said 'needle'\n", [])[0]] == [
        "event:1.1"
    ]
    assert left(archive, "a", 1, "needle", [])[0] == ()
