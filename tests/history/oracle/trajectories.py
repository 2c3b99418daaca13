"""The import of recorded conversations: SWE-agent's trajectory files (``*.traj.json``) as events.

A trajectory's ``history`` holds the messages as the model was sent them. Native tool calls are
``tool_calls`` on the assistant's message and ``tool_call_ids`` on the result's; without them an
action is text and its result the next user message. A demonstration before the task is the
framework's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.base.errors import InputError
from runtime.base.values import ToolCall
from runtime.history.content import Content, text_content
from runtime.history.events import ActionEvent, Event, MessageEvent, MessageSource, ObservationEvent


def events_of_trajectory(trajectory: Mapping[str, Any]) -> tuple[Event, ...]:
    """The events of a trajectory, in order; ids are ``m0``, ``m1``, ... by message, turns count the
    model's replies.

    Raises:
        InputError: if the trajectory has no messages, or a message no role that is known.
    """
    history = trajectory.get("history")
    if not isinstance(history, Sequence) or not history:
        raise InputError("a trajectory needs a non-empty list of messages under 'history'")
    importer = _Importer()
    for number, message in enumerate(history):
        importer.take(f"m{number}", message)
    return tuple(importer.events)


class _Importer:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self._turn = 0
        self._goal_seen = False
        self._statement_waits = False

    def take(self, event_id: str, message: Mapping[str, Any]) -> None:
        content = text_content(_text(message.get("content")))
        match message.get("role"):
            case "system":
                self._say(event_id, MessageSource.SYSTEM, content)
            case "assistant":
                self._act(event_id, message)
            case "tool":
                self._results(event_id, message, content)
            case "user":
                self._user(event_id, message, content)
            case role:
                raise InputError(
                    f"message {event_id.removeprefix('m')} of the trajectory has the role {role!r}"
                )

    def _say(self, event_id: str, source: MessageSource, content: Content) -> None:
        self.events.append(
            MessageEvent(id=event_id, turn=self._turn, source=source, content=content)
        )

    def _user(self, event_id: str, message: Mapping[str, Any], content: Content) -> None:
        if message.get("is_demo"):
            self._say(event_id, MessageSource.FRAMEWORK, content)
        elif self._statement_waits:
            self._statement_waits = False
            self.events.append(ObservationEvent(id=event_id, turn=self._turn, content=content))
        else:
            self._say(
                event_id, MessageSource.USER if self._goal_seen else MessageSource.GOAL, content
            )
            self._goal_seen = True

    def _act(self, event_id: str, message: Mapping[str, Any]) -> None:
        self._turn += 1
        text = _text(message.get("content"))
        calls = [
            ToolCall(
                id=call["id"],
                name=call["function"]["name"],
                arguments=call["function"]["arguments"],
            )
            for call in message.get("tool_calls") or ()
        ]
        self._statement_waits = not calls
        for number, call in enumerate(calls or [None]):
            self.events.append(
                ActionEvent(
                    id=event_id if not number else f"{event_id}.{number}",
                    turn=self._turn,
                    llm_response_id=f"response-{self._turn}",
                    tool_call_id=call.id if call is not None else None,
                    thinking_blocks=(
                        tuple(message.get("thinking_blocks") or ()) if not number else ()
                    ),
                    source=message.get("action") or "",
                    text=text,
                    tool_calls=() if call is None else (call,),
                )
            )

    def _results(self, event_id: str, message: Mapping[str, Any], content: Content) -> None:
        for number, call_id in enumerate(
            message.get("tool_call_ids") or [message.get("tool_call_id")]
        ):
            self.events.append(
                ObservationEvent(
                    id=event_id if not number else f"{event_id}.{number}",
                    turn=self._turn,
                    tool_call_id=call_id,
                    content=content,
                )
            )


def _text(content: object) -> str:
    """The text of a message's content: a string, or a list of blocks of which the text ones
    count.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""
