"""The deterministic extract: what stands for forgotten events when no model can say it better.

Earlier summaries are kept first and as whole as they fit; every other event gets an equal share of
what is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.base.plurals import counted
from runtime.history.content import plain_text
from runtime.history.events import ActionEvent, CondensationSummaryEvent, MessageEvent, ShownEvent

HEADING = "Earlier events were left out. Of each, this is the beginning and the end:"
SHORTEST = 40


def speaker_of(event: ShownEvent) -> str:
    """Who speaks in the event, for a reader."""
    if isinstance(event, MessageEvent):
        return event.source.value
    if isinstance(event, ActionEvent):
        return "agent"
    return "summary" if isinstance(event, CondensationSummaryEvent) else "result"


def event_text(event: ShownEvent) -> str:
    """The whole text of an event: what was said, written or returned."""
    if isinstance(event, CondensationSummaryEvent):
        return event.summary
    if isinstance(event, ActionEvent):
        return _action_text(event)
    return plain_text(event.content)


def _action_text(action: ActionEvent) -> str:
    """The reply's text, and the statement where the text does not hold it."""
    # A reply in the script form holds its statement already.
    if action.source in action.text:
        return action.text
    statement = (
        action.source
        if action.tool_call_id is not None
        else f"<script>\n{action.source}\n</script>"
    )
    return f"{action.text}\n{statement}".lstrip("\n")


def cut(text: str, characters: int) -> str:
    """``text`` with its middle left out, so that about ``characters`` characters are left."""
    text = text.strip()
    if len(text) <= characters:
        return text
    head = characters * 2 // 3
    tail = max(characters - head, 1)
    return f"{text[:head]} [{len(text) - head - tail} characters left out] {text[-tail:]}"


def extract(events: Sequence[ShownEvent], characters: int) -> str:
    """An extract of ``events`` of about ``characters`` characters.

    Where even the shortest share for each is too much, the events in the middle are only counted.
    """
    summaries = [e.summary for e in events if isinstance(e, CondensationSummaryEvent)]
    others = [e for e in events if not isinstance(e, CondensationSummaryEvent)]
    # At most half for what was summed up before: else it would grow until nothing else fits.
    parts = [
        cut(summary, max(characters // 2 // len(summaries), SHORTEST)) for summary in summaries
    ]
    left = max(characters - sum(map(len, parts)), SHORTEST)
    # Two at least, so that the first of what goes and the last are told in any case.
    places = max(left // SHORTEST, 2)
    skipped = max(len(others) - places, 0)
    shown = (
        others
        if not skipped
        else [*others[: places // 2], *others[len(others) - (places - places // 2) :]]
    )
    share = max(left // max(len(shown), 1), SHORTEST)
    lines = [f"{speaker_of(e)}: {cut(event_text(e), share)}" for e in shown]
    if skipped:
        lines.insert(
            places // 2, f"({counted(skipped, 'event is', 'events are')} not shown at all)"
        )
    return "\n".join([*parts, HEADING, *lines] if lines else parts)
