"""The View's events in the order in which providers want them, and the messages they become.

Providers take a model reply as one message, and all its results directly after it. So the actions
of one response stand together at the place of the first, their results follow, and whatever arrived
in between waits behind them. A response that still waits for a result is left out: it cannot be
sent yet.

An oracle: no prompt is made by it. It says which Views can be sent to a provider, without the
projection that sends them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from runtime.base.values import ToolCall
from runtime.history.content import Content, plain_text
from runtime.history.events import (
    ActionEvent,
    CondensationSummaryEvent,
    MessageEvent,
    MessageSource,
    Result,
    ShownEvent,
    is_result,
)

GO_ON = "Go on."
EMPTY = "(empty)"
DEFAULT_TOOL = "python"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One model reply and what answers it: the results of its tool calls, in the calls' order, and
    plain results.
    """

    actions: tuple[ActionEvent, ...]
    results: tuple[Result, ...]
    plain_results: tuple[Result, ...]


Item = Exchange | MessageEvent | CondensationSummaryEvent | Result


@dataclass(slots=True)
class _Open:
    """A response while its results are looked for."""

    actions: list[ActionEvent] = field(default_factory=list)
    answers: dict[str, Result] = field(default_factory=dict)
    plain: list[Result] = field(default_factory=list)
    statement_waits: bool = False

    def waits(self) -> bool:
        return any(
            a.tool_call_id is not None and a.tool_call_id not in self.answers for a in self.actions
        )

    def closed(self) -> Exchange:
        results = tuple(
            self.answers[a.tool_call_id] for a in self.actions if a.tool_call_id is not None
        )
        return Exchange(tuple(self.actions), results, tuple(self.plain))


def items_of(events: Iterable[ShownEvent]) -> tuple[Item, ...]:
    """The events of a View as exchanges and single messages, in the order of a prompt."""
    order: list[_Open | MessageEvent | CondensationSummaryEvent | Result] = []
    responses: dict[str, _Open] = {}
    newest: _Open | None = None
    for event in events:
        if type(event) is ActionEvent:
            newest = responses.get(event.llm_response_id)
            if newest is None:
                newest = responses[event.llm_response_id] = _Open()
                order.append(newest)
            newest.actions.append(event)
            newest.statement_waits = event.tool_call_id is None
        elif is_result(event):
            if event.tool_call_id is not None and newest is not None:
                newest.answers.setdefault(event.tool_call_id, event)
            elif newest is not None and newest.statement_waits:
                newest.plain.append(event)
                newest.statement_waits = False
            elif event.tool_call_id is None:
                order.append(event)
        elif isinstance(event, MessageEvent | CondensationSummaryEvent):
            order.append(event)
    return tuple(
        item.closed() if isinstance(item, _Open) else item
        for item in order
        if not (isinstance(item, _Open) and item.waits())
    )


class Speaker(StrEnum):
    """The role of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt, in no provider's form.

    ``events`` are the ids of the events it was made from.
    """

    speaker: Speaker
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    thinking: tuple[dict[str, Any], ...] = ()
    events: tuple[str, ...] = ()


Render = Callable[[Content], str]


def messages_of(events: Iterable[ShownEvent], render: Render = plain_text) -> tuple[Message, ...]:
    """The messages of a View: valid for every provider whose rules ``provider_rules`` checks.

    Call ids are made unique: providers want that of the whole prompt, and models use them again.
    Two replies in a row, a reply at the start and one at the end get a user's ``GO_ON`` between,
    before and after them.
    """
    made: list[Message] = []
    used: set[str] = set()
    for item in items_of(events):
        for message in _messages_of_item(
            item, render, used, at_head=all(m.speaker is Speaker.SYSTEM for m in made)
        ):
            if message.speaker is Speaker.ASSISTANT and (
                not made or made[-1].speaker in _NEEDS_USER
            ):
                made.append(Message(Speaker.USER, GO_ON))
            made.append(message)
    if not made or made[-1].speaker in _NEEDS_USER:
        made.append(Message(Speaker.USER, GO_ON))
    return tuple(made)


_NEEDS_USER = frozenset({Speaker.SYSTEM, Speaker.ASSISTANT})


def _messages_of_item(
    item: Item, render: Render, used: set[str], *, at_head: bool
) -> list[Message]:
    match item:
        case Exchange():
            return _messages_of_exchange(item, render, used)
        case MessageEvent(source=MessageSource.AGENT):
            return [Message(Speaker.ASSISTANT, _said(render(item.content)), events=(item.id,))]
        case MessageEvent(source=MessageSource.SYSTEM) if at_head:
            return [Message(Speaker.SYSTEM, _said(render(item.content)), events=(item.id,))]
        case CondensationSummaryEvent():
            return [Message(Speaker.USER, _said(item.summary), events=(item.id,))]
    return [Message(Speaker.USER, _said(render(item.content)), events=(item.id,))]


def _messages_of_exchange(exchange: Exchange, render: Render, used: set[str]) -> list[Message]:
    calls = [action for action in exchange.actions if action.tool_call_id is not None]
    names = {action.id: _fresh(action.tool_call_id or "", used) for action in calls}
    text = reply_text(exchange.actions)
    reply = Message(
        Speaker.ASSISTANT,
        text if calls else _said(text),
        calls=tuple(
            call_of(action).model_copy(update={"id": names[action.id]}) for action in calls
        ),
        thinking=thinking_of(exchange.actions),
        events=tuple(action.id for action in exchange.actions),
    )
    results = [
        Message(Speaker.TOOL, render(result.content), call_id=names[action.id], events=(result.id,))
        for action, result in zip(calls, exchange.results, strict=True)
    ]
    plain = [
        Message(Speaker.USER, _said(render(r.content)), events=(r.id,))
        for r in exchange.plain_results
    ]
    return [reply, *results, *plain]


def reply_text(actions: Sequence[ActionEvent]) -> str:
    """The text of a reply: each action's, once; a statement without a call that its text does not
    hold is added.
    """
    texts: list[str] = []
    for action in actions:
        text = action.text
        if action.tool_call_id is None and action.source and action.source not in text:
            text = f"{text}\n<script>\n{action.source}\n</script>".lstrip("\n")
        if text and text not in texts:
            texts.append(text)
    return "\n".join(texts)


def thinking_of(actions: Sequence[ActionEvent]) -> tuple[dict[str, Any], ...]:
    """The thinking blocks of a reply, unaltered; blocks that every action of it repeats are taken
    once.
    """
    blocks: list[dict[str, Any]] = []
    for action in actions:
        if list(action.thinking_blocks) != blocks[-len(action.thinking_blocks) :]:
            blocks.extend(action.thinking_blocks)
    return tuple(blocks)


def call_of(action: ActionEvent) -> ToolCall:
    """The native call that ``action`` is; for an action that has none recorded, a call with its
    source.
    """
    for call in action.tool_calls:
        if call.id == action.tool_call_id:
            return call
    arguments = json.dumps({"code": action.source}, ensure_ascii=False)
    return ToolCall(id=action.tool_call_id or "", name=DEFAULT_TOOL, arguments=arguments)


def _said(text: str) -> str:
    return text if text.strip() else EMPTY


def _fresh(call_id: str, used: set[str]) -> str:
    """``call_id``, or a variant of it that the prompt does not have yet."""
    fresh, count = call_id or "call", 1
    while fresh in used:
        count += 1
        fresh = f"{call_id or 'call'}-{count}"
    used.add(fresh)
    return fresh
