"""What a job was made to forget with nothing in its place, so that the prompt can say so."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.base.plurals import counted
from runtime.base.values import Value
from runtime.history.content import plain_text
from runtime.history.events import (
    AgentErrorEvent,
    Event,
    MessageEvent,
    MessageSource,
    ObservationEvent,
)


class Dropped(Value):
    """How many events, among them the user's messages and the errors that the model was shown."""

    events: int = 0
    messages: int = 0
    errors: int = 0

    def more(self, events: Iterable[Event]) -> Dropped:
        """With these events too."""
        gone = list(events)
        return Dropped(
            events=self.events + len(gone),
            messages=self.messages + sum(map(_is_users, gone)),
            errors=self.errors + sum(map(_is_error, gone)),
        )

    def line(self) -> str:
        """A line of the prompt, or nothing if nothing was dropped."""
        if not self.events:
            return ""
        among = (
            [counted(self.messages, "message of the user", "messages of the user")]
            if self.messages
            else []
        )
        among += [counted(self.errors, "error")] if self.errors else []
        which = f", among them {' and '.join(among)}" if among else ""
        return (
            "[forgotten for room, with nothing in their place:"
            f" {counted(self.events, 'event')}{which}]"
        )


def _is_users(event: Event) -> bool:
    return isinstance(event, MessageEvent) and event.source is MessageSource.USER


def _is_error(event: Event) -> bool:
    if not isinstance(event, ObservationEvent):
        return isinstance(event, AgentErrorEvent)
    # How a statement ended stands nowhere but in the first line that ``execution_text`` wrote.
    text, head = plain_text(event.content), f"[turn {event.turn}: "
    return text.startswith(head) and not text.startswith(f"{head}ok]")
