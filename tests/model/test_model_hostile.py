"""Whoever answers a call writes the response: none takes more work than its size allows."""

import asyncio
import gzip
import json
import tracemalloc
import zlib
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from gateway import Gateway, job_at
from model_calls import RUN
from temporalio.exceptions import ApplicationError

from activities import _captured, _wire
from activities._answer import AnswerBuilder, id_in
from activities._captured import CapturedCall, Limits, SentRequest, TooLarge
from activities._charsets import plain_type
from activities._failures import failure_of
from activities._litellm_library import library
from activities._secrets import Secrets
from activities._short_errors import MOST
from runtime.archive.forms import Capture
from tests.servers.anthropic_server import AnthropicProtocol
from tests.servers.openai_server import OpenAIProtocol
from tests.servers.provider_server import ServerReply
from tests.work import work

pytestmark = pytest.mark.usefixtures("litellm")

MODELS = pytest.mark.parametrize(
    ("name", "stream"),
    [
        ("openai/gpt-4o", True),
        ("openai/gpt-4o", False),
        ("anthropic/claude-sonnet-4-5", True),
        ("aiohttp_openai/gpt-4o", False),
    ],
)


def answered(body: bytes, status: int = 200, **headers: str) -> CapturedCall:
    """A call whose response is ``body``."""
    captured = CapturedCall(
        lambda _: "1", limits=Limits(), secrets=Secrets(), turn=1, temporal_attempt=1
    )
    captured.sending_now(SentRequest(Capture.WIRE, b"{}", "POST", "http://provider.test/v1"))
    captured.answering(status, {"content-type": "text/html", **headers})
    captured.received(body)
    return captured


def told(body: bytes) -> str:
    """The words of the failure that a page is."""
    return failure_of(Exception("no reply"), answered(body)).message.partition(": ")[2]


@pytest.mark.parametrize(
    "piece",
    [
        b"<!---->",
        b"<!-- ",
        b"<!--x--> \n",
        b"<head ",
        b"<script>",
        b"<style></styl>",
        b"<head></head",
        b"<title",
        b"<",
        b"&#1",
        b"</head  ",
        b" ",
    ],
)
@pytest.mark.parametrize("start", [b"", b"<html>"])
def test_reading_a_page_is_work_in_proportion_to_it(piece: bytes, start: bytes) -> None:
    """Comments, elements and tags without end: sixteen times as many are no 256 times the work."""
    small, large = (start + piece * (size // len(piece)) for size in (4_000, 64_000))
    assert work(lambda: told(large)) < 64 * (work(lambda: told(small)) + 0.001)


def test_a_page_behind_comments_is_told_without_what_it_hides() -> None:
    """Comments, scripts, styles and the head, in any case; a tag without an end stays."""
    page = (
        b" <!-- a --><!---->\n<!DOCTYPE html><HEAD><title>Log &amp; in</title></HEAD >"
        b"<style>p{}</Style>One<!-- <p> --> &lt;two<script>3</script\n><p class='4'>five <six"
    )
    assert told(page) == "Log & in One <two five <six"


def test_a_page_with_an_endless_number_is_told() -> None:
    """A character's number of more digits than Python reads."""
    assert told(b"<html>&#" + b"1" * 5_000 + b";").startswith("&#111")


def test_litellms_names_are_taken_off_in_proportion_to_them() -> None:
    """However many of them stand before a message."""
    captured = answered(b"")
    captured.status = None
    small, large = (
        Exception("litellm.APIError: " * (size // 18) + "no such host")
        for size in (30_000, 480_000)
    )
    assert failure_of(large, captured).message == "no such host"
    assert work(lambda: failure_of(large, captured)) < 64 * (
        work(lambda: failure_of(small, captured)) + 0.001
    )


@MODELS
async def test_no_more_of_a_compressed_reply_is_unpacked_than_of_another_is_read(
    name: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kilobytes that say megabytes end the call as a reply without end does; of what came, what was
    read is archived as it came.
    """
    monkeypatch.setattr(_captured, "MOST_REPLY", 100_000)
    kind = "text/event-stream" if stream else "application/json"
    bomb = gzip.compress(b": keep on\n\n" * 3_000_000)
    gateway = Gateway(bomb, kind, **{"content-encoding": "gzip"})
    async with gateway as address:
        job = job_at(address, name, stream=stream)
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
    assert (failed.value.type, failed.value.message) == (
        "StreamBroken",
        "the reply did not end within 100,000 bytes, unpacked",
    )
    (attempt,) = job.archive.attempts(RUN, 1)
    kept = job.archive.failed_response(attempt.key)
    assert bomb.startswith(kept)
    assert 100_000 <= len(zlib.decompressobj(47).decompress(kept)) < 102_000


def _redaction() -> Any:
    """litellm's module that looks for keys."""
    return import_module("litellm.litellm_core_utils.secret_redaction")


class _Looking:
    """A pattern that tells how long the texts are that it is given."""

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern
        self.lengths: list[int] = []

    def sub(self, replacement: str, text: str) -> Any:
        self.lengths.append(len(text))
        return self._pattern.sub(replacement, text)


@MODELS
async def test_litellm_looks_for_keys_in_the_beginning_of_an_error(
    name: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the square of what begins as a token does: minutes, of a megabyte."""
    pattern = _redaction()._SECRET_RE
    looking = _Looking(pattern._pattern)
    monkeypatch.setattr(pattern, "_pattern", looking)
    body = b'{"error": {"message": "%b"}}' % (b"-eyJaaaaaaaaaaa" * 4_000)
    async with Gateway(body, status=400) as address:
        job = job_at(address, name, stream=stream)
        with pytest.raises(ApplicationError, match="BadRequestError: -eyJa"):
            await job.take_turn()
    assert 0 < max(looking.lengths) <= MOST + 1
    (attempt,) = job.archive.attempts(RUN, 1)
    assert len(job.archive.failed_response(attempt.key)) == len(body)


def test_a_call_of_others_is_looked_at_as_a_whole() -> None:
    """What they do with litellm in this process is theirs."""
    text = f"sk-{'a' * 40} {'x' * MOST} sk-{'b' * 40}"
    assert _redaction().python_redact_string(text) == f"REDACTED {'x' * MOST} REDACTED"


@MODELS
async def test_a_whole_reply_in_place_of_a_stream_is_priced_once(
    name: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By us: litellm goes through its table of patterns with the name that the reply says, however
    long that is.
    """
    priced: list[str] = []
    monkeypatch.setattr(library(), "response_cost_calculator", lambda **_: priced.append("litellm"))
    reply = ServerReply(text="Hello.", usage={"prompt_tokens": 7, "completion_tokens": 5})
    protocol = AnthropicProtocol() if name.startswith("anthropic") else OpenAIProtocol()
    body = json.dumps(protocol.whole(reply, {"model": "m" * 10_000}, 1)).encode()
    async with Gateway(body) as address:
        assert (await job_at(address, name, stream=stream).take_turn()).text == "Hello."
    assert priced == []


@pytest.mark.slow
@MODELS
async def test_of_a_compressed_error_a_megabyte_is_unpacked(name: str, stream: bool) -> None:
    """What it says stands at its beginning."""
    body = b"Slow down, please, " + b"a" * 30_000_000
    gateway = Gateway(gzip.compress(body), status=429, **{"content-encoding": "gzip"})
    async with gateway as address:
        with pytest.raises(ApplicationError) as failed:
            await job_at(address, name, stream=stream).take_turn()
    assert failed.value.type == "RateLimitError"
    assert failed.value.message.startswith("Slow down, please, aaa")
    assert failed.value.message.endswith("(HTTP 429, the first megabyte of a longer answer)")


def test_a_refusal_with_a_lone_surrogate_can_be_told() -> None:
    """Temporal takes no such text: a call that was refused for good was tried for ever."""
    body = b'{"error": {"message": "no \\ud800 model"}}'
    failure = failure_of(Exception("no reply"), answered(body, 400))
    assert failure.message.encode().endswith(b"no ? model (HTTP 400)")
    assert failure.non_retryable


def test_whatever_of_a_reply_has_a_lone_surrogate_is_text() -> None:
    """No history takes others: a call that was answered was made again and again."""
    item = {"type": "reasoning", "summary": [{"text": "cut \ud83d"}]}
    call = SimpleNamespace(
        index=0, id="c\ud800", function=SimpleNamespace(name="python", arguments="{}")
    )
    choice = SimpleNamespace(
        index=0,
        delta=SimpleNamespace(content="", tool_calls=[call], thinking_blocks=[item]),
        finish_reason="\ud800",
    )
    builder = AnswerBuilder(turn=1)
    builder.add(SimpleNamespace(id="r\ud800", choices=[choice]))
    answer = builder.answer()
    assert (answer.tool_calls[0].id, answer.finish_reason) == ("c\ufffd", "\ufffd")
    assert answer.thinking == ({"type": "reasoning", "summary": [{"text": "cut \ufffd"}]},)
    assert answer.response_id == "r\ufffd" == id_in(b'{"id": "r\\ud800"}', answer.response_id)


@pytest.mark.parametrize("charset", ["punycode", "PunyCode", "idna", "unicode_escape", "*0=puny"])
def test_a_charset_in_which_nothing_is_written_is_not_believed(charset: str) -> None:
    """Python's punycode takes the square of a text's length, others read no text."""
    kind = {"content-type": f"text/plain; charset={charset}"}
    small, large = (answered(b"ab" * (size // 2), 500, **kind) for size in (16_000, 256_000))
    error = Exception("no reply")
    assert work(lambda: failure_of(error, large)) < 64 * (
        work(lambda: failure_of(error, small)) + 0.001
    )
    assert failure_of(error, small).message.startswith("ababab")


@MODELS
async def test_a_library_hears_of_no_such_charset_either(name: str, stream: bool) -> None:
    """It reads an error's body by itself, by what the headers say."""
    kind = "text/plain; charset=unicode_escape"
    async with Gateway(rb"\u0041 no", kind, status=403) as address:
        with pytest.raises(ApplicationError) as failed:
            await job_at(address, name, stream=stream).take_turn()
    assert failed.value.message == r"\u0041 no (HTTP 403)"


@pytest.mark.parametrize(
    ("charset", "believed"),
    [("utf-8", True), ('"Latin-1"', True), ("utf_16_le", False), ("utf-8; charset=hex", False)],
)
def test_charsets_that_texts_are_written_in(charset: str, believed: bool) -> None:
    """Others are left out, and the type stays."""
    kind = f"text/html; charset={charset}"
    assert plain_type(kind) == (kind if believed else "text/html")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("waits", [False, True])
async def test_a_response_that_is_not_captured_is_bounded(
    packed: bool, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without end, or one whose kilobytes say megabytes, breaks off; a small one is read."""
    monkeypatch.setattr(_wire, "MOST_UNSEEN", 100_000)

    async def post(body: bytes) -> httpx.Response:
        encoding = {"content-encoding": "gzip"} if packed else {}
        async with Gateway(gzip.compress(body) if packed else body, **encoding) as address:
            if waits:
                async with httpx.AsyncClient(transport=_wire.AsyncWire()) as client:
                    return await client.post(address, data={"a": "b"})
            with httpx.Client(transport=_wire.SyncWire()) as client:
                return await asyncio.to_thread(client.post, address, data={"a": "b"})

    assert (await post(b"a" * 99_000)).text == "a" * 99_000
    with pytest.raises(httpx.ReadError, match="did not end within 100,000 bytes"):
        await post(b"a" * 3_000_000)


def test_what_a_compressed_reply_says_is_not_in_memory_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """50 kB that say 50 MB take no more than what is kept, twice over."""
    monkeypatch.setattr(_captured, "MOST_REPLY", 1_000_000)
    bomb = gzip.compress(b"a" * 50_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            answered(bomb, **{"content-encoding": "gzip"})
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


@MODELS
@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("gzip", "the response is not the gzip that it says it is"),
        ("zstd", "the response came as 'zstd', which was not asked for"),
    ],
)
async def test_a_reply_that_cannot_be_unpacked_is_a_broken_one(
    name: str, stream: bool, encoding: str, words: str
) -> None:
    """It is archived as it came; an error's body is taken for what it is."""
    gateway = Gateway(b'{"message": "Busy."}', **{"content-encoding": encoding})
    async with gateway as address:
        job = job_at(address, name, stream=stream)
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
        gateway.status = 503
        with pytest.raises(ApplicationError, match=r"^ServerError: Busy. \(HTTP 503\)$"):
            await job.take_turn()
    assert failed.value.type == "StreamBroken"
    assert failed.value.message.startswith(words)
    (first, *_) = job.archive.attempts(RUN, 1)
    assert job.archive.failed_response(first.key) == gateway.body


@pytest.mark.parametrize("encoding", ["deflate", "bare deflate"])
async def test_deflate_is_read_with_and_without_its_header(encoding: str) -> None:
    """Servers disagree on what it is; a whole reply in place of a stream is read too."""
    packer = zlib.compressobj(wbits=15 if encoding == "deflate" else -15)
    said = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}}]}'
    packed = packer.compress(said) + packer.flush()
    gateway = Gateway(packed, **{"content-encoding": "deflate"})
    async with gateway as address:
        reply = await job_at(address, "openai/gpt-4o").take_turn()
    assert reply.text == "Hello."
