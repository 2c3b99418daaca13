"""The model's answer, put together from litellm's chunks or from its whole response.

litellm's own builder for streams loses what a later prompt must hold unaltered (refusals, the borders between thinking
blocks), so the pieces are joined here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime.values import ToolCall


@dataclass(frozen=True)
class Answer:
    """What a model answered. ``usage`` is litellm's usage object, or None where it has none."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    thinking: tuple[dict[str, Any], ...]
    finish_reason: str
    response_id: str
    refusal: str | None
    usage: Any


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class AnswerBuilder:
    """Takes litellm's chunks in their order, or one whole response, and makes the answer of them.

    ``turn`` names calls that came without an id, which every later prompt needs.
    """

    turn: int
    _text: list[str] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)
    _thinking: list[dict[str, Any]] = field(default_factory=list)
    _open: bool = False
    _finish_reason: str = ""
    _id: str = ""
    _usage: Any = None

    def add(self, chunk: Any) -> None:
        """One chunk of a stream."""
        self._outside(chunk)
        for choice in chunk.choices[:1]:
            self._finish_reason = choice.finish_reason or self._finish_reason
            if choice.delta is not None:
                self._part(choice.delta)

    def add_response(self, response: Any) -> None:
        """A whole response."""
        self._outside(response)
        for choice in response.choices[:1]:
            self._finish_reason = choice.finish_reason or ""
            self._part(choice.message)

    def answer(self) -> Answer:
        """What was added so far."""
        return Answer(
            text="".join(self._text),
            tool_calls=tuple(self._numbered()),
            thinking=tuple(self._thinking),
            finish_reason=self._finish_reason or "stop",
            response_id=self._id,
            refusal="".join(self._refusal) or None,
            usage=self._usage,
        )

    def _outside(self, chunk: Any) -> None:
        self._id = self._id or getattr(chunk, "id", None) or ""
        self._usage = getattr(chunk, "usage", None) or self._usage

    def _part(self, part: Any) -> None:
        """A delta or a message: they have the same fields."""
        if text := getattr(part, "content", None):
            self._text.append(text)
        extra = getattr(part, "provider_specific_fields", None) or {}
        if refusal := getattr(part, "refusal", None) or extra.get("refusal"):
            self._refusal.append(refusal)
        for block in getattr(part, "thinking_blocks", None) or ():
            self._think(block)
        for position, call in enumerate(getattr(part, "tool_calls", None) or ()):
            self._call(call, position)

    def _think(self, block: Mapping[str, Any]) -> None:
        """A thinking block or a piece of one: pieces belong together up to the one with the signature."""
        piece = {name: value for name, value in dict(block).items() if value is not None}
        if piece.get("type") != "thinking":
            self._thinking.append(piece)
            self._open = False
            return
        if self._open:
            last = self._thinking[-1]
            text = last.get("thinking", "") + piece.get("thinking", "")
            last.update({**piece, "thinking": text})
        else:
            self._thinking.append(piece)
        self._open = not piece.get("signature")

    def _call(self, piece: Any, position: int) -> None:
        index = getattr(piece, "index", None)
        index = position if index is None else index
        function = piece.function
        call = self._by_index.get(index)
        # Some servers give every call index 0: another id with a name is another call.
        if call is None or (piece.id and function.name and piece.id != call.id):
            call = self._by_index[index] = _Call()
            self._calls.append(call)
        call.id = call.id or piece.id or ""
        call.name = call.name or function.name or ""
        call.arguments += function.arguments or ""

    def _numbered(self) -> list[ToolCall]:
        """The calls, each with an id of its own."""
        calls: list[ToolCall] = []
        for number, call in enumerate(self._calls):
            taken = {other.id for other in calls}
            id = call.id if call.id and call.id not in taken else f"call_{self.turn}_{number}"
            calls.append(ToolCall(id=id, name=call.name, arguments=call.arguments))
        return calls
