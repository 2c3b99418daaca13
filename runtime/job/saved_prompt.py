"""What a checkpoint has of the last prompt and of the replies in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.base.values import Value
from runtime.history.events import ActionEvent, MessageEvent, ShownEvent
from runtime.projection.segments import Segment, reply_segment


class SavedReply(Value):
    """A reply's segment: how many tokens it has, and all of it where its action does not tell the
    rest.
    """

    turn: int
    tokens: int
    segment: dict[str, Any] | None = None


def saved_replies(
    replies: Mapping[int, Segment], shown: Sequence[ShownEvent], turn: int
) -> tuple[SavedReply, ...]:
    """The replies that later prompts may show: those of the View's events, and that of ``turn``,
    which the next delta names.
    """
    actions = _actions_of(shown)
    turns = {event.turn for event in shown if isinstance(event, ActionEvent | MessageEvent)} | {
        turn
    }
    saved: list[SavedReply] = []
    for number in sorted(turns & replies.keys()):
        segment = replies[number]
        # Most replies are their actions: these cost a checkpoint two numbers.
        same = number in actions and _segment_of(actions[number], segment.tokens) == segment
        whole = None if same else segment.model_dump(mode="json", exclude_defaults=True)
        saved.append(SavedReply(turn=number, tokens=segment.tokens, segment=whole))
    return tuple(saved)


def restored_replies(
    replies: Sequence[SavedReply], shown: Sequence[ShownEvent]
) -> dict[int, Segment]:
    """The segments of the replies, by turn."""
    actions = _actions_of(shown)
    return {
        reply.turn: (
            _segment_of(actions[reply.turn], reply.tokens)
            if reply.segment is None
            else Segment.model_validate(reply.segment)
        )
        for reply in replies
    }


def _actions_of(shown: Sequence[ShownEvent]) -> dict[int, ActionEvent]:
    return {event.turn: event for event in shown if isinstance(event, ActionEvent)}


def _segment_of(action: ActionEvent, tokens: int) -> Segment:
    """The segment of the reply that made an action, from what the action tells of it."""
    return reply_segment(
        turn=action.turn,
        text=action.text,
        tool_calls=action.tool_calls,
        thinking=action.thinking_blocks,
        tokens=tokens,
    )
