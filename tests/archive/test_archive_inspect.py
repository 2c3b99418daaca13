"""What changed between prompts, since when each part stands there, and where it is in the
request.
"""

from __future__ import annotations

import json

import pytest
from archive_jobs import eventful_job, segment, wire_of

from runtime.archive.export import export_lines
from runtime.archive.inspect import Blame, ByteRange, ChangeKind, diff_layouts, locate, why
from runtime.archive.stores import MemoryStore
from runtime.base.values import ToolCall
from runtime.projection.messages import messages_of
from runtime.projection.segments import Role, Segment, SegmentKind

A, B, C, D = (segment(f"text of {name}", f"event:{name}") for name in "ABCD")
B2 = segment("another text of B", "event:B")


def test_a_difference_names_what_was_added_removed_changed_and_moved() -> None:
    """Each change has its kind and both places; the stable prefix ends at the first of them."""
    found = diff_layouts([A, B, C], [A, B2, D])
    assert [(c.kind, c.position_before, c.position_after) for c in found.changes] == [
        (ChangeKind.CHANGED, 1, 1),
        (ChangeKind.REMOVED, 2, None),
        (ChangeKind.ADDED, None, 2),
    ]
    assert (found.stable_segments, found.stable_tokens, found.tokens) == (
        1,
        A.tokens,
        A.tokens + B2.tokens + D.tokens,
    )
    assert found.broken_by == found.changes[0]
    moved = diff_layouts([A, B, C], [C, A, B])
    assert [(c.kind, c.position_before, c.position_after) for c in moved.changes] == [
        (ChangeKind.MOVED, 2, 0)
    ]


def test_what_only_grows_is_stable_up_to_its_old_end() -> None:
    """Appending breaks no prefix: the addition is what ends it."""
    found = diff_layouts([A, B], [A, B, C])
    assert found.stable_share == pytest.approx(
        (A.tokens + B.tokens) / (A.tokens + B.tokens + C.tokens)
    )
    assert found.broken_by is not None and found.broken_by.kind is ChangeKind.ADDED
    assert diff_layouts([A], [A]).broken_by is None


def test_a_text_is_found_in_all_that_a_segment_says() -> None:
    """In its text, and in what the model thought."""
    thought = A.model_copy(
        update={"thinking": ({"type": "thinking", "thinking": "a secret plan", "signature": "x"},)}
    )
    blames = tuple(Blame(segment, n, 1, 1) for n, segment in enumerate([B, thought]))
    assert [b.position for b in why(blames, "text of")] == [0, 1]
    assert [b.position for b in why(blames, "secret plan")] == [1]


def test_segments_are_found_in_the_wire_request() -> None:
    """A segment's text is found byte for byte, also with escapes; what is not there is None."""
    layout = [
        segment('über\n"quoted" 世界', "event:1"),
        segment("plain", "event:2"),
        segment("", "event:3"),
    ]
    request = wire_of(layout)
    places = locate(request, [*layout, segment("not sent")])
    assert [p and json.loads(b'"' + request[p.start : p.stop] + b'"') for p in places] == [
        layout[0].text, layout[1].text, None, None,
    ]  # fmt: skip


def test_a_short_text_is_not_taken_for_a_part_of_another() -> None:
    """What stands by chance in another text, or in an id, is not the segment; a reply without text
    is its call.
    """
    call = ToolCall(id="call_1", name="python", arguments='{"code":"one = 1"}')
    reply = Segment(
        kind=SegmentKind.REPLY,
        origin="statement:1",
        role=Role.ASSISTANT,
        text="",
        tokens=3,
        tool_calls=(call,),
    )
    layout = [
        segment("one more", "event:1"),
        reply,
        segment("1", "event:2"),
        segment("one", "event:3"),
    ]
    request = json.dumps(messages_of(layout)).encode()
    places = locate(request, layout)
    found = [place and request[place.start : place.stop] for place in places]
    assert found == [b"one more", json.dumps(call.arguments)[1:-1].encode(), b"1", b"one"]
    starts = [place.start for place in places if place is not None]
    assert starts == sorted(starts)
    assert locate(b'{"system": "one more", "input": {"code": "one = 1"}}', layout)[1:] == (
        ByteRange(32, 51),
        None,
        None,
    )


def test_a_call_that_nests_too_deeply_is_looked_for_as_text_alone() -> None:
    """Python 3.14 reads more of such arguments than it can write."""
    arguments = '{"a":' * 50_000 + "1" + "}" * 50_000
    call = ToolCall(id="c", name="python", arguments=arguments)
    calls = segment("").model_copy(update={"tool_calls": (call,)})
    assert locate(b'{"arguments": {}}', [calls]) == (None,)


def test_an_export_has_every_turn_and_each_segment_once() -> None:
    """The lines hold every request and response, and enough segments to write out each layout."""
    written = eventful_job(MemoryStore())
    every = [json.loads(json.dumps(line)) for line in export_lines(written.archive)]
    lines = [line for line in every if line["type"] not in {"effect", "summary"}]
    assert [line["type"] for line in lines] == ["definition", *["step"] * 6, "end"]
    known: dict[str, dict[str, str]] = {}
    for line in lines[1:-1]:
        place = line["run"], line["turn"]
        assert line["attempts"][-1]["request"]["text"].encode() == written.requests[place]
        assert line["response"]["text"].encode() == written.responses[place]
        assert not known.keys() & {
            d for d in line["new_segments"] if d in line["layout"] and d in known
        }
        known |= line["new_segments"]
        assert [known[d]["text"] for d in line["layout"]] == [
            s.text for s in written.layouts[place]
        ]
    assert known[lines[1]["layout"][0]]["kind"] == SegmentKind.CONTRACT
    in_flight = list(export_lines(written.archive, "a"))[-1]
    assert (in_flight["type"], in_flight["turn"]) == ("attempt", 35)
