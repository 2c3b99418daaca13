"""The layout: which segments a prompt has, in which order, from which events and nodes."""

from __future__ import annotations

from runtime.base.values import ToolCall
from runtime.history.content import NodePart, TextPart, text_content
from runtime.history.events import (
    ActionEvent,
    AgentErrorEvent,
    CondensationSummaryEvent,
    MessageEvent,
    MessageSource,
    ObservationEvent,
    ShownEvent,
)
from runtime.projection.messages import messages_of
from runtime.projection.project import Changes, Projector, TailPart, tokens_of
from runtime.projection.segments import Segment, SegmentKind, reply_segment


class Shown:
    """Nodes with these texts; ``None`` is shown elsewhere."""

    def __init__(self, **texts: str | None) -> None:
        self.texts = texts

    def in_place(self, obj_id: str) -> str | None:
        """The node's text."""
        return self.texts[obj_id]

    def mark(self, obj_id: str) -> str:
        """The mark in its place."""
        return f"[{obj_id} is elsewhere]"

    def superseded(self, event_id: str) -> bool:
        """No message told of a node."""
        return False

    def changes(self) -> Changes:
        """Nothing: what is shown here stays."""
        return Changes()


def words(text: str) -> int:
    """The tests' token count."""
    return len(text.split())


def message(number: int, source: MessageSource, text: str) -> MessageEvent:
    """A message of turn ``number``."""
    return MessageEvent(id=f"m{number}", turn=number, source=source, content=text_content(text))


def call(turn: int) -> ToolCall:
    """The turn's native call."""
    return ToolCall(id=f"c{turn}", name="python", arguments='{"code": "1"}')


HEAD: list[ShownEvent] = [
    message(0, MessageSource.SYSTEM, "the contract"),
    message(1, MessageSource.GOAL, "the goal"),
]
ACTION = ActionEvent(
    id="a1",
    turn=1,
    llm_response_id="turn-1:r",
    tool_call_id="c1",
    source="1",
    tool_calls=(call(1),),
)
RESULT = ObservationEvent(
    id="o1",
    turn=1,
    tool_call_id="c1",
    content=(TextPart(text="[turn 1: ok]"), NodePart(obj_id="view")),
)
REPLIES = {1: reply_segment(turn=1, text="", tool_calls=(call(1),), thinking=(), tokens=1)}
TAIL = [TailPart(SegmentKind.BUDGET, "tail", "[budget]")]


def kinds(layout: tuple[Segment, ...]) -> list[str]:
    """What each segment is."""
    return [segment.kind.value for segment in layout]


def test_contract_goal_replies_results_views_and_tail_stand_in_order() -> None:
    """A view stands behind the result of the statement that made it."""
    layout = Projector(words).layout([*HEAD, ACTION, RESULT], REPLIES, Shown(view="the text"), TAIL)
    assert kinds(layout) == ["contract", "goal", "reply", "result", "view", "budget"]
    assert [segment.origin for segment in layout] == [
        "contract",
        "event:m1",
        "statement:1",
        "event:o1",
        "node:view",
        "tail",
    ]
    assert tokens_of(layout) == 2 + 2 + 1 + 3 + 2 + 1 + 6 * 4
    assert messages_of(layout) == [
        {"role": "system", "content": "the contract"},
        {"role": "user", "content": "the goal"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "python", "arguments": '{"code": "1"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "[turn 1: ok]\n\nthe text"},
        {"role": "user", "content": "[budget]"},
    ]


def test_a_node_shown_elsewhere_leaves_a_mark() -> None:
    """The mark takes the view's place, in the same message."""
    layout = Projector(words).layout([*HEAD, ACTION, RESULT], REPLIES, Shown(view=None), TAIL)
    assert kinds(layout)[4] == "mark"
    assert layout[4].text == "[view is elsewhere]"
    assert layout[4].tool_call_id == "c1"


def test_only_what_changed_is_made_anew() -> None:
    """Segments of events and of unchanged nodes are the same objects in the next prompt."""
    projector = Projector(words)
    first = projector.layout([*HEAD, ACTION, RESULT], REPLIES, Shown(view="the text"), TAIL)
    second = projector.layout([*HEAD, ACTION, RESULT], REPLIES, Shown(view="another text"), TAIL)
    assert [one is two for one, two in zip(first, second, strict=True)] == [
        True,
        True,
        True,
        True,
        False,
        True,
    ]


def test_a_batch_of_calls_is_one_reply() -> None:
    """Several actions of one response stand as the reply that made them, and each call has its
    result.
    """
    pair = (call(1), ToolCall(id="c2", name="python", arguments="{}"))
    events: list[ShownEvent] = [
        *HEAD,
        *[
            ActionEvent(
                id=f"a{c.id}", turn=1, llm_response_id="r", tool_call_id=c.id, tool_calls=pair
            )
            for c in pair
        ],
        *[
            AgentErrorEvent(
                id=f"e{c.id}", turn=1, tool_call_id=c.id, content=text_content("one a turn")
            )
            for c in pair
        ],
    ]
    replies = {1: reply_segment(turn=1, text="", tool_calls=pair, thinking=(), tokens=1)}
    layout = Projector(words).layout(events, replies, Shown(), TAIL)
    assert kinds(layout) == ["contract", "goal", "reply", "error", "error", "budget"]
    assert [m["role"] for m in messages_of(layout)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]


def test_a_summary_and_the_agents_own_words_are_shown() -> None:
    """Both stand where their events stand in the View."""
    events: list[ShownEvent] = [
        *HEAD,
        CondensationSummaryEvent(id="s", turn=5, summary="what was"),
        message(6, MessageSource.AGENT, "hello"),
        message(7, MessageSource.USER, "hi"),
    ]
    replies = {6: reply_segment(turn=6, text="hello", tool_calls=(), thinking=(), tokens=1)}
    layout = Projector(words).layout(events, replies, Shown(), TAIL)
    assert kinds(layout) == ["contract", "goal", "summary", "reply", "message", "budget"]
