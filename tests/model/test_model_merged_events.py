"""A stream's pieces of one text go on to litellm as one, and say what they said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_calls import (
    RUN,
    Job,
    anthropic_server,
    attempt,
    model_at,
    openai_server,
    responses_server,
)

from activities import _model_turn
from activities._answer import AnswerBuilder
from activities._captured import CapturedCall
from activities._charsets import MARK
from activities._merged_events import MOST_HELD, MergedEvents
from runtime.archive.container import unseal
from runtime.archive.responses import read_response
from tests.eventually import eventually
from tests.servers.anthropic_server import AnthropicProtocol
from tests.servers.provider_server import PIECE, ProviderServer

TEXT = "A reply of some length, so that there is a middle. " * 40


def event(said: Any, name: str = "") -> bytes:
    """One event as a server sends it."""
    return (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(said)}\n\n".encode()


def chat(**delta: Any) -> bytes:
    """A chunk of OpenAI's chat completions."""
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return event({"id": "c-1", "object": "chat.completion.chunk", "choices": [choice]})


def called(arguments: str, *, index: int = 0, **function: Any) -> bytes:
    """A chunk with a piece of a call."""
    return chat(tool_calls=[{"index": index, "function": {"arguments": arguments, **function}}])


def block(kind: str, field: str, text: str, index: int = 0) -> bytes:
    """A delta of Anthropic's messages."""
    said = {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}}
    return event(said, "content_block_delta")


def said_next(text: str, number: int, item: str = "i-1") -> bytes:
    """A delta of OpenAI's Responses API."""
    kind = "response.output_text.delta"
    fields = {"item_id": item, "output_index": 0, "content_index": 0, "logprobs": []}
    passing = {"sequence_number": number, "obfuscation": "x" * (number % 5)}
    return event({"type": kind, **fields, "delta": text, **passing}, kind)


PIECES = st.sampled_from(
    ["", "a", "B c", "\n\n", '"data: {', "\u00e9", "\U0001f642", "\ud83d", "\ude42"]
)
EVENTS = st.one_of(
    PIECES.map(lambda text: chat(content=text)),
    PIECES.map(lambda text: chat(reasoning_content=text)),
    PIECES.map(lambda text: chat(role="assistant", content=text)),
    st.builds(called, PIECES, index=st.integers(0, 1)),
    PIECES.map(lambda text: called(text, name="python")),
    st.builds(lambda text, n: block("text_delta", "text", text, n), PIECES, st.integers(0, 1)),
    PIECES.map(lambda text: block("input_json_delta", "partial_json", text)),
    PIECES.map(lambda text: block("thinking_delta", "thinking", text)),
    st.builds(said_next, PIECES, st.integers(1, 9)),
    st.sampled_from(
        [
            b"data: [DONE]\n\n",
            b"data: {broken\n\n",
            b"data: {}\n\n",
            b'data: {"choices": [{"delta": {"content": 1}}]}\n\n',
            b'data: {"choices": []}\n\n',
            b'choice: 7\ndata: {"choices": [{"delta": {"content": "named"}}]}\n\n',
            event({"error": {"message": "no"}}, "error"),
            event({"type": "content_block_stop", "index": 0}, "content_block_stop"),
            event({"choices": [{"delta": {"content": "end"}, "finish_reason": "stop"}]}),
        ]
    ),
)


def handed_on(body: bytes, cuts: list[int]) -> bytes:
    """What goes on of a body that comes in parts."""
    # What begins as no stream of events is none.
    body = b": begun\n\n" + body
    merged, places = MergedEvents(), sorted({0, 9, *(9 + cut for cut in cuts), len(body)})
    parts = [merged.feed(body[a:b]) for a, b in pairwise(places)]
    return b"".join([*parts, merged.end()])


def plainly(body: bytes) -> Iterator[tuple[str, str]]:
    """Each text of a body, and what else it says, in order: the texts of neighbours that say the
    same besides are one.
    """
    last, text = "", ""
    for part in body.split(b"\n\n"):
        besides, piece = _apart(part)
        if besides != last or piece is None:
            yield last, text
            last, text = besides, ""
        text += piece or ""
    yield last, text


def _apart(part: bytes) -> tuple[str, str | None]:
    head, mark, data = part.partition(b"data: ")
    whole = part.decode("utf-8", "replace")
    try:
        said = json.loads(data) if mark and b"\n" not in data else None
    except ValueError:
        return whole, None
    if not isinstance(said, dict):
        return whole, None
    for name in ("sequence_number", "obfuscation"):
        said.pop(name, None)
    found: list[str] = []

    def emptied(value: Any, name: str = "") -> Any:
        texts = {"content", "reasoning_content", "arguments", "text", "partial_json", "thinking"}
        if isinstance(value, str) and (name in texts or name == "delta"):
            found.append(value)
            return ""
        if isinstance(value, dict):
            return {key: emptied(item, key) for key, item in value.items()}
        return [emptied(item) for item in value] if isinstance(value, list) else value

    besides = head.decode() + json.dumps(emptied(said))
    # As a reader hears them: an unfinished half of a character waits for the other.
    return besides, "".join(found) if found else None


def heard(body: bytes) -> list[tuple[str, str]]:
    """``plainly``, with the halves of characters joined."""
    return [
        (besides, text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))
        for besides, text in plainly(body)
    ]


@given(st.lists(EVENTS, max_size=12), st.lists(st.integers(0, 3000), max_size=6))
def test_what_goes_on_says_what_came(events: list[bytes], cuts: list[int]) -> None:
    """However the stream is cut into pieces, and whatever stands between two texts."""
    body = b"".join(events)
    assert heard(handed_on(body, [cut for cut in cuts if cut < len(body)])) == heard(body)


@pytest.mark.parametrize(
    "events",
    [
        [chat(content="word ")] * 50,
        [called("word ")] * 50,
        [block("text_delta", "text", "word ")] * 50,
        [block("input_json_delta", "partial_json", "word ")] * 50,
        [block("thinking_delta", "thinking", "word ")] * 50,
        [said_next("word ", number) for number in range(50)],
    ],
    ids=["content", "arguments", "text", "partial_json", "thinking", "responses"],
)
def test_pieces_of_one_text_are_one_event(events: list[bytes]) -> None:
    """Whichever protocol says them."""
    assert handed_on(b"".join(events), []).count(b"\n\n") == 1


@pytest.mark.parametrize(
    ("said", "spelled"),
    [
        (b"data: ", b"data:"),
        (b"\n", b"\r\n"),
        (b"\n\n", b"\n"),
        (b"data: ", b"id: 7\nretry: 3000\n: ping\ndata: "),
        (b", ", b",\ndata: "),
    ],
    ids=["no space", "CRLF", "no empty line", "other fields", "lines"],
)
def test_pieces_that_are_spelled_otherwise_are_one_event(said: bytes, spelled: bytes) -> None:
    """Wherever the stream is cut, and however long it is: litellm's readers differ in what of it
    they miss.
    """
    events = [chat(content="word "), block("text_delta", "text", "word")] * 2
    body = b"".join(events).replace(said, spelled)
    for cuts in ([], list(range(0, len(body), 7))):
        assert handed_on(body, cuts) == b"".join(events)
    assert handed_on(chat(content="word ").replace(said, spelled) * 3_000, []).count(b"\n\n") < 20


@pytest.mark.parametrize("first", [b"", MARK, b"\n\n", MARK + b"\n", b"event: m\n", b"retry: 1\n"])
def test_a_stream_is_one_in_whatever_pieces_it_begins(first: bytes) -> None:
    """What comes first may be less than a field's name."""
    body, merged = first + chat(content="a") + chat(content="b"), MergedEvents()
    went = b"".join(merged.feed(body[at : at + 1]) for at in range(len(body))) + merged.end()
    assert went.count(b"data: ") == (2 if b"event" in first else 1)
    torn = MergedEvents()
    assert (torn.feed(b"dat"), torn.end()) == (b"", b"dat")


@pytest.mark.parametrize(
    "events",
    [
        [chat(content="a"), chat(reasoning_content="b"), chat(content="c")],
        [called("a"), called("b", index=1), called("c")],
        [called("a", name="python"), called("b", name="python")],
        [block("text_delta", "text", "a"), block("text_delta", "text", "b", 1)],
        [said_next("a", 1), said_next("b", 2, "i-2")],
        [chat(content="a", reasoning="b"), chat(content="a", reasoning="b")],
        [b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', chat(content="b")],
        [event({"candidates": [{"content": {"parts": [{"text": t}]}}]}) for t in "ab"],
        [chat(content="a").replace(b"\n", b"\r"), chat(content="b").replace(b"\n", b"\r")],
    ],
)
def test_what_may_be_something_else_goes_on_as_it_came(events: list[bytes]) -> None:
    """Byte by byte."""
    body = b"".join(events)
    assert handed_on(body, []) == body
    assert handed_on(body, list(range(0, len(body), 11))) == body


def test_what_is_no_stream_of_events_goes_on_at_once() -> None:
    """A whole reply, an error's body, or events whose lines end otherwise."""
    for merged, said in (
        (MergedEvents(is_refused=True), chat(content="a")),
        (MergedEvents(), b'{"choices": []}'),
        (MergedEvents(), chat(content="a").replace(b"\n", b"\r")),
    ):
        assert merged.feed(said) == said
        assert (merged.held, merged.end()) == ("", b"")


@pytest.mark.parametrize("text", ["x" * 1000, ""], ids=["long", "empty"])
def test_little_is_held(text: str) -> None:
    """Pieces of megabytes go on in parts, also those that say nothing."""
    piece = chat(content=text)
    merged = MergedEvents()
    went = [merged.feed(piece) for _ in range(40 * MOST_HELD // len(piece))]
    assert 30 < sum(map(bool, went)) < 41


def test_an_event_that_does_not_end_goes_on_as_it_comes() -> None:
    """And whatever follows it."""
    merged, part = MergedEvents(), b"x" * MOST_HELD
    came = [merged.feed(part) for part in (b"data: x", part, part, part)]
    assert [len(one) // MOST_HELD for one in came] == [0, 0, 2, 1]
    assert merged.feed(chat(content="a")) == chat(content="a")


PING = event({"type": "ping"}, "ping")


@pytest.mark.parametrize("ping", [PING, b'data: {"type":"ping"}\n\n'])
def test_pings_do_not_go_on(ping: bytes) -> None:
    """Texts on both sides of one are one; what only speaks of pings is none."""
    said = block("text_delta", "text", "ping"), event({"type": "ping", "of": 1}, "ping")
    body = b"".join([ping, said[0], ping, said[0], ping, said[1], ping])
    assert heard(handed_on(body, [])) == heard(b"".join([said[0], said[0], said[1]]))


@pytest.mark.usefixtures("litellm")
async def test_a_stream_with_pings_is_archived_to_its_end() -> None:
    """litellm took the one before the last event for that, and read no further."""

    class Pinging(AnthropicProtocol):
        def endings(self, *args: Any) -> Iterator[bytes]:
            for ending in super().endings(*args):
                yield PING
                yield ending

    async with ProviderServer(Pinging(), lambda _m, _n: {"text": TEXT}).serving() as server:
        job = Job(model_at(server))
        for turn in range(1, 6):
            assert (await job.take_turn()).text == TEXT
            response = server.exchanges[-1].response
            assert job.archive.wire_response(RUN, turn) == response
            assert response.endswith(PING + event({"type": "message_stop"}, "message_stop"))


@pytest.mark.slow
@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("make", [openai_server, anthropic_server, responses_server])
async def test_litellm_is_given_a_long_reply_in_a_few_chunks(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the archive has it as it came."""
    added: list[Any] = []
    real = AnswerBuilder.add

    def add(self: AnswerBuilder, chunk: Any) -> None:
        added.append(chunk)
        real(self, chunk)

    monkeypatch.setattr(AnswerBuilder, "add", add)
    async with make(lambda _m, _n: {"text": TEXT, "code": "print(1)\n" * 40}).serving() as server:
        job = Job(model_at(server))
        reply = await job.take_turn()
        (exchange,) = server.exchanges
    assert reply.text == TEXT
    assert json.loads(reply.tool_calls[0].arguments)["code"] == "print(1)\n" * 40
    step = unseal(reply.step.key, job.store.get(reply.step.key))
    assert read_response(step) == exchange.response
    assert exchange.response.count(b"\n\n") > len(TEXT) // PIECE
    assert len(added) < 20


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("make", [openai_server, anthropic_server])
async def test_of_a_call_that_is_given_up_all_counts_that_came(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what litellm has not been given."""
    calls: list[CapturedCall] = []

    class Kept(CapturedCall):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            calls.append(self)

    monkeypatch.setattr(_model_turn, "CapturedCall", Kept)
    async with make(lambda _m, _n: {"text": TEXT, "hang_after": 700}).serving() as server:
        environment = attempt(1)
        task = asyncio.ensure_future(Job(model_at(server)).take_turn(environment))
        await eventually(
            lambda: bool(calls) and calls[0].content.count(b"\n\n") >= 700 // PIECE, "its pieces"
        )
        environment.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (call,) = calls
    assert call.heard is not None
    text = call.heard.answer().text + call.unheard
    assert len(text) >= 700 - 2 * PIECE
    assert TEXT.startswith(text)
    assert call.unheard
