"""The model's answer, put together from litellm's chunks or from its whole response.

litellm's own builder for streams loses what a later prompt must hold unaltered (refusals, the
borders between thinking blocks), so the pieces are joined here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from activities._secrets import Secrets
from runtime.base.digests import canonical_json
from runtime.base.values import ToolCall
from runtime.projection.replies import CUT_OFF

MOST_BYTES = 768 * 1024
"""An answer larger than this is shortened: Temporal fails a workflow for ever on a value above 2
MiB.
"""


_MOST_BEFORE_ID = 16 * 1024
"""Bytes of a stream among which its reply's id is looked for: it stands in its first events."""

_MOST_BEHIND_REASON = 4 * 1024
"""Bytes at a reply's end among which the reason why it ended is looked for first."""

_REASON = re.compile(rb"\"(?:finish|stop)_?reason\"\s*:\s*\"([^\"\\]+)\"", re.IGNORECASE)
"""Why a reply ended, in the protocols' own fields; what stands in a text has other quotes."""

_FAILED = frozenset({"error", "network_error", "abort", "timeout"})
"""Reasons by which a server says that it did not get through with a reply: OpenRouter's and
Cohere's, Zhipu's, vLLM's and SGLang's.
"""


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


def without_secrets(answer: Answer, secrets: Secrets) -> Answer:
    """``answer`` with every secret masked, so that none goes on into later prompts.

    Thinking stays: it is signed.
    """
    calls = [_call_without(call, number, secrets) for number, call in enumerate(answer.tool_calls)]
    refusal = None if answer.refusal is None else secrets.mask(answer.refusal)
    return replace(
        answer,
        text=secrets.mask(answer.text),
        tool_calls=tuple(calls),
        refusal=refusal,
        finish_reason=secrets.mask(answer.finish_reason),
        response_id=secrets.mask_known(answer.response_id),
    )


def _call_without(call: ToolCall, number: int, secrets: Secrets) -> ToolCall:
    """The ``number``-th call of an answer, with every secret masked.

    In an id the known values alone: some providers sign in it. It is made of the number then, as
    two masks would be one id, and no provider takes what one is made of.
    """
    known = secrets.mask_known(call.id) == call.id
    return ToolCall(
        id=call.id if known else f"call_masked_{number}",
        name=secrets.mask(call.name),
        arguments=secrets.mask(call.arguments),
    )


def refusal_in(body: bytes) -> str | None:
    """The refusal in a stream of OpenAI's chat protocol: litellm drops the chunks that carry it,
    for they have no content.
    """
    parts: list[str] = []
    # Most lines of a stream have none: they are not parsed for it.
    for said in _objects(body, b'"refusal"'):
        with suppress(KeyError, IndexError, TypeError):
            parts.append(_text(said["choices"][0]["delta"]["refusal"]))
    return "".join(parts) or None


def inputs_in(body: bytes) -> dict[str, str]:
    """The inputs that calls in a stream of Anthropic's messages have where they begin, by the
    calls' ids: litellm reads those alone that come in pieces behind that.
    """
    inputs: dict[str, str] = {}
    for said in _objects(body, b'"tool_use"'):
        match said.get("content_block"):
            case {"type": "tool_use", "id": str(id), "input": dict(input)} if input:
                inputs[id] = _text(input)
    return inputs


def id_in(body: bytes, told: str) -> str:
    """The id that a provider gave its reply, empty where it gave none: litellm, by which it is
    ``told``, makes one up for some protocols, and where it reads none.
    """
    if told and told.encode() in body:
        return told
    begins = body[:_MOST_BEFORE_ID]
    for text in (body, *(line.removeprefix(b"data:") for line in begins.splitlines())):
        if not text.lstrip().startswith(b"{"):
            continue
        with suppress(ValueError, RecursionError):
            said = json.loads(text)
            inner = said.get("message"), said.get("response"), said
            ids = (part.get("id") for part in inner if isinstance(part, dict))
            if (id := next(filter(None, map(_text, ids)), None)) is not None:
                return _whole_characters(id)
    return ""


def reason_in(body: bytes, told: str) -> str:
    """Why a reply ended, as its provider says it, where that is one of the words for a reply that
    had no room for more: litellm, by which it is ``told``, makes ``stop`` of those that it does not
    know, or ``tool_calls`` where there are some.
    """
    reason = told if told in CUT_OFF else _reason_said(body)
    return reason if reason in CUT_OFF else told


def failed_by(body: bytes) -> str | None:
    """The reason by which a reply's provider says that it failed, of which litellm makes ``stop``;
    None if it does not.
    """
    reason = _reason_said(body)
    return reason if reason.lower() in _FAILED else None


def _reason_said(body: bytes) -> str:
    """Why a reply ended, in its provider's word; empty where it has none."""
    # It stands near the end of nearly all: few are searched as a whole.
    said = _REASON.findall(body[-_MOST_BEHIND_REASON:]) or _REASON.findall(body)
    return said[-1].decode("utf-8", "replace") if said else ""


def held_in_pieces(body: bytes, secrets: Secrets) -> bool:
    """Whether the events of a stream, put together, hold a secret that the stream's bytes have in
    pieces.

    For what is left of a stream that broke, which makes no answer. Each field's texts are joined in
    their order.
    """
    texts: dict[str, list[str]] = {}
    # One object alone has none in pieces.
    alone = body.lstrip().startswith(b"{") and b"\n" not in body.strip()
    for said in () if alone else _objects(body):
        with suppress(RecursionError):
            _collect("", said, texts)
    joined = map("".join, texts.values())
    return any(secrets.mask(text) != text for text in joined)


def _objects(body: bytes, holding: bytes = b"{") -> Iterator[Any]:
    """The JSON objects of a stream, in lines of data or plain ones: of the lines that have
    ``holding`` in them.
    """
    for line in body.splitlines() if holding in body else ():
        said = line.removeprefix(b"data:").lstrip()
        if said.startswith(b"{") and holding in said:
            with suppress(ValueError, RecursionError):
                yield json.loads(said)


def _collect(name: str, value: Any, texts: dict[str, list[str]]) -> None:
    if isinstance(value, str):
        texts.setdefault(name, []).append(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            _collect(key, item, texts)
    elif isinstance(value, list):
        for item in value:
            _collect(name, item, texts)


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
    _choice: int | None = None
    _finish_reason: str = ""
    _id: str = ""
    _usage: Any = None

    def add(self, chunk: Any) -> None:
        """One chunk of a stream."""
        self._outside(chunk)
        # A chunk that has none tells the usage alone.
        for choice in chunk.choices[:1]:
            self._finish_reason = _text(choice.finish_reason) or self._finish_reason
        # One answer is asked for; of a server that gives more, the one with which it begins counts.
        for choice in sorted(chunk.choices, key=_index):
            if self._choice is None:
                self._choice = _index(choice)
            if choice.delta is not None and _index(choice) == self._choice:
                self._part(choice.delta)

    def add_response(self, response: Any) -> None:
        """A whole response."""
        self._outside(response)
        for choice in response.choices[:1]:
            self._finish_reason = _text(choice.finish_reason)
            self._part(choice.message)

    @property
    def is_empty(self) -> bool:
        """Whether what was added says nothing: no text, call, thought or refusal."""
        return not (any(self._text) or self._calls or self._thinking or any(self._refusal))

    def answer(self) -> Answer:
        """What was added so far."""
        answer = Answer(
            text=_whole_characters("".join(self._text)),
            tool_calls=tuple(self._numbered()),
            thinking=tuple(_whole_characters_in(block) for block in self._thinking),
            finish_reason=_whole_characters(self._finish_reason) or "stop",
            response_id=_whole_characters(self._id),
            refusal=_whole_characters("".join(self._refusal)) or None,
            usage=self._usage,
        )
        return answer if _size(answer) <= MOST_BYTES else _shortened(answer)

    def _outside(self, chunk: Any) -> None:
        self._id = self._id or _text(getattr(chunk, "id", None))
        self._usage = getattr(chunk, "usage", None) or self._usage

    def _part(self, part: Any) -> None:
        """A delta or a message: they have the same fields."""
        if text := _text(getattr(part, "content", None)):
            self._text.append(text)
        extra = getattr(part, "provider_specific_fields", None) or {}
        if refusal := _text(getattr(part, "refusal", None) or extra.get("refusal")):
            self._refusal.append(refusal)
        for block in getattr(part, "thinking_blocks", None) or ():
            self._think(block)
        for position, call in enumerate(getattr(part, "tool_calls", None) or ()):
            self._call(call, position)

    def _think(self, block: Mapping[str, Any]) -> None:
        """A thinking block or a piece of one: pieces belong together up to the one with the
        signature.
        """
        # Where it stands in the reply is litellm's note, and no provider's field of a block.
        piece = {
            name: value
            for name, value in dict(block).items()
            if value is not None and name != "index"
        }
        # What is redacted, or a reasoning item, comes whole, and no piece of a thought goes on
        # behind it.
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
        index = index if isinstance(index, int) else position
        function = piece.function
        id, name = _text(piece.id), _text(function.name)
        call = self._by_index.get(index)
        # Some servers give every call index 0: another id with a name is another call.
        if call is None or (id and name and id != call.id):
            call = self._by_index[index] = _Call()
            self._calls.append(call)
        call.id = call.id or id
        call.name = call.name or name
        call.arguments += _text(function.arguments)

    def _numbered(self) -> list[ToolCall]:
        """The calls, each with an id of its own."""
        calls: list[ToolCall] = []
        for number, call in enumerate(self._calls):
            taken = {other.id for other in calls}
            # An id that two calls have would make the next prompt's results ambiguous; made of the
            # turn, it is the same in a replay.
            told = _whole_characters(call.id)
            id = told if told and told not in taken else f"call_{self.turn}_{number}"
            name, arguments = _whole_characters(call.name), _whole_characters(call.arguments)
            calls.append(ToolCall(id=id, name=name, arguments=arguments))
        return calls


def _index(choice: Any) -> int:
    """A choice's number; some servers give none."""
    return getattr(choice, "index", None) or 0


def _text(value: Any) -> str:
    """What a reply has where a text should be: some servers number their ids, and give a call's
    arguments as JSON itself.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return canonical_json(value).decode()
    return "" if value is None or isinstance(value, bool) else str(value)


def _whole_characters(text: str) -> str:
    """``text`` with surrogate pairs joined, which a stream may have split, and lone ones replaced:
    JSON can spell them.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _whole_characters_in(value: Any) -> Any:
    """As ``_whole_characters``, of all that a block holds: a reasoning item has texts in lists."""
    match value:
        case str():
            return _whole_characters(value)
        case dict():
            return {name: _whole_characters_in(part) for name, part in value.items()}
        case list():
            return [_whole_characters_in(part) for part in value]
        case _:
            return value


def _size(answer: Answer) -> int:
    """Bytes of the answer in the workflow's history, roughly."""
    parts = [
        answer.text,
        answer.refusal or "",
        *(call.name + call.arguments for call in answer.tool_calls),
    ]
    return len("".join(parts).encode()) + len(canonical_json(list(answer.thinking)))


def _shortened(answer: Answer) -> Answer:
    """An answer too large for the history, as one that the token limit cut off: the start of its
    text, and no calls.
    """
    refusal = answer.refusal and answer.refusal[: MOST_BYTES // 8]
    return replace(
        answer,
        text=answer.text[: MOST_BYTES // 8],
        # A call that was cut in the midst of its arguments is none.
        tool_calls=(),
        thinking=(),
        finish_reason="length",
        refusal=refusal,
    )
