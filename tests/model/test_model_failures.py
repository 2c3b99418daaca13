"""What goes wrong with a call: what Temporal retries, when, what it does not, and the provider's
own words.
"""

import asyncio
import json
import logging
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from gateway import Gateway, job_at
from model_calls import (
    KEY,
    RUN,
    SERVERS,
    STREAMING,
    Job,
    Make,
    attempt,
    model_at,
    openai_server,
    readable,
    run,
    segment,
)
from temporalio.exceptions import ApplicationError

from activities import _captured
from activities._causes import causes_of
from activities._failures import LONGEST_WAIT, UNSENDABLE, retry_after
from runtime.archive.stores import MemoryStore
from runtime.archive.stores.directory import DirectoryStore
from runtime.base.errors import ArchiveError
from runtime.base.redaction.rules import Redaction
from runtime.projection.segments import Add, LayoutDelta, Role, SegmentKind
from tests.eventually import SECONDS, eventually

pytestmark = pytest.mark.usefixtures("litellm")

TEXT = "A reply of some length, so that there is a middle. " * 4


async def failure(job: Job) -> ApplicationError:
    """The error with which the job's next turn ends."""
    with pytest.raises(ApplicationError) as raised:
        await job.take_turn()
    return raised.value


@SERVERS
@STREAMING
@pytest.mark.parametrize(
    ("status", "message", "kind", "retried"),
    [
        (400, "messages.0: unexpected field", "BadRequestError", False),
        (401, f"Incorrect API key provided: {KEY}.", "AuthenticationError", True),
        (403, "Not for you", "PermissionDeniedError", False),
        (404, "no such model", "NotFoundError", False),
        (429, "Slow down", "RateLimitError", True),
        (500, "Oops", "ServerError", True),
        (503, "Overloaded", "ServerError", True),
        (529, "Overloaded", "ServerError", True),
        (
            400,
            "This model's maximum context length is 8192 tokens.",
            "ContextWindowExceeded",
            False,
        ),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "ContextWindowExceeded", False),
        (413, "Request too large", "ContextWindowExceeded", False),
    ],
)
async def test_an_error_response(
    make: Make,
    stream: bool,
    status: int,
    message: str,
    kind: str,
    retried: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each status has its type, is retried or is not, and keeps the provider's words without the
    key.
    """
    caplog.set_level(logging.DEBUG)
    async with make(
        lambda _m, _n: {"fail": {"status": status, "message": message}}
    ).serving() as server:
        job = Job(model_at(server, stream=stream))
        error = await failure(job)
        assert len(server.exchanges) == 1
    assert (error.type, error.non_retryable) == (kind, not retried)
    assert error.message == f"{message.replace(KEY, '[masked]')} (HTTP {status})"
    assert error.__cause__ is None
    assert [a.temporal_attempt for a in job.archive.attempts(RUN, 1)] == [1]
    assert job.archive.find_step(RUN, 1) is None
    assert KEY.encode() not in readable(job.store)
    assert KEY not in caplog.text


@pytest.mark.slow
@SERVERS
@STREAMING
async def test_an_error_of_many_megabytes_is_read_and_kept_in_part(
    make: Make, stream: bool
) -> None:
    """Its beginning tells what happened; what is kept says that there was more, and no key's form
    stands in it.
    """
    words = "Slow down, " + "sk-a1b2c3d4e5f6g7h8i9j0 " * 200_000
    async with make(lambda _m, _n: {"fail": {"status": 429, "message": words}}).serving() as server:
        job = Job(model_at(server, stream=stream))
        error = await failure(job)
    assert (error.type, error.non_retryable) == ("RateLimitError", False)
    assert error.message.endswith("… (HTTP 429, the first megabyte of a longer answer)")
    assert (
        "Slow down, [masked:api-key] [masked:api-key]" in error.message
        and len(error.message) < 2_100
    )
    assert b"sk-a1" not in readable(job.store)


@SERVERS
@pytest.mark.slow
async def test_a_reply_without_end_is_broken_off_and_asked_for_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the bound nothing is read; what came until then is kept with the failure."""
    monkeypatch.setattr(_captured, "MOST_REPLY", 20_000)
    async with make(lambda _m, _n: TEXT * 400).serving() as server:
        job = Job(model_at(server))
        error = await failure(job)
    assert (error.type, error.non_retryable) == ("StreamBroken", False)
    assert error.message == "the reply did not end within 20,000 bytes"
    assert job.archive.find_step(RUN, 1) is None


async def test_a_token_in_the_address_is_in_no_record(caplog: pytest.LogCaptureFixture) -> None:
    """Nor a header of one's own, though the provider says them back."""
    caplog.set_level(logging.DEBUG)
    token, header = "0123-a-token-of-mine", "a-gateway-s-own-word"
    words = f"no such token: {token}, {header}"
    async with openai_server(
        lambda _m, _n: {"fail": {"status": 403, "message": words}}
    ).serving() as server:
        model = model_at(server, extra_headers={"X-Gateway-Auth": header})
        job = Job(model | {"api_base": f"{model['api_base']}?access_token={token}"})
        error = await failure(job)
        assert [exchange.status for exchange in server.exchanges] == [403]
    assert error.message == "no such token: [masked], [masked] (HTTP 403)"
    for secret in (token, header):
        assert secret not in error.message
        assert secret.encode() not in readable(job.store)
        # The server's own log of what it was asked for is not ours.
        assert not any(
            secret in record.getMessage()
            for record in caplog.records
            if record.name != "aiohttp.access"
        )


async def test_a_header_of_an_environment_variable_is_sent_and_in_no_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever its name, also where the provider says it back: the wire has the value, the archive
    and the error have none.
    """
    secret = "a-word-of-the-house"
    monkeypatch.setenv("CORP_WORD", secret)
    monkeypatch.setenv("CORP_NAME", "Corp")
    said = {"fail": {"status": 403, "message": f"{secret} may not"}}
    sent = {"X-Corp-Id": "$CORP_WORD", "X-Title": "One", "X-OpenRouter-Title": "${CORP_NAME}"}
    async with openai_server(lambda _m, _n: said).serving() as server:
        model = model_at(server, extra_headers=sent)
        job = Job(model)
        error = await failure(job)
        [exchange] = server.exchanges
    headers = httpx.Headers(exchange.headers)
    assert headers["X-Corp-Id"] == secret
    assert headers["X-Title"] == "One"
    assert headers["X-OpenRouter-Title"] == "Corp"
    assert error.message == "[masked] may not (HTTP 403)"
    assert secret.encode() not in readable(job.store)
    monkeypatch.delenv("CORP_WORD")
    with pytest.raises(ApplicationError, match="has no CORP_WORD") as raised:
        await job.take_turn()
    assert raised.value.non_retryable


@pytest.mark.parametrize("header", ["X-Own", "X-Title"])
async def test_the_worker_s_own_variables_are_sent_nowhere(
    monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    """Whoever ordered it: a jobs file with such a header is refused before."""
    monkeypatch.setenv("HOLDFAST_KEY", "k" * 40)
    async with openai_server(lambda _m, _n: "Well.").serving() as server:
        job = Job(model_at(server, extra_headers={header: "$HOLDFAST_KEY"}))
        with pytest.raises(ApplicationError, match=r"no header takes \$HOLDFAST_KEY") as raised:
            await job.take_turn()
        assert server.exchanges == []
    assert raised.value.non_retryable


async def test_a_value_that_a_statement_put_together_is_masked_before_it_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The workflow does not know the environment's values; the worker that sends a prompt does, and
    says whose they were.
    """
    secret = "correct horse battery"
    monkeypatch.setenv("DB_PASSWORD", secret)
    monkeypatch.setenv("TEAM_PIN", "4711-0815")
    monkeypatch.setenv("HOLDFAST_REDACTION_KEY", "k" * 20)
    async with openai_server(lambda _m, _n: "Well.").serving() as server:
        job = Job(model_at(server))
        told = segment(SegmentKind.RESULT, Role.USER, f"it is {secret} and 4711-0815")
        call = job.call()
        layout = LayoutDelta(parts=(*call.layout.parts, Add(segment=told)))
        update = {
            "layout": layout,
            "execution": {"stdout": secret},
            "redact": Redaction(env=("TEAM_PIN",)),
        }
        await run(job.store, call.model_copy(update=update))
        (exchange,) = server.exchanges
    for data in (readable(job.store), str(exchange).encode()):
        assert secret.encode() not in data and b"4711-0815" not in data
        assert b"[masked:DB_PASSWORD:" in data and b"[masked:TEAM_PIN:" in data


@SERVERS
async def test_retry_after_is_honoured(make: Make) -> None:
    """A provider that says how long to wait is waited for."""
    async with make(
        lambda _m, _n: {"fail": {"status": 429, "retry_after": 17}}
    ).serving() as server:
        error = await failure(Job(model_at(server)))
    assert error.next_retry_delay == timedelta(seconds=17)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "17"}, 17.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "17"}, 1.5),
        *(
            ({"retry-after-ms": bad, "retry-after": "17"}, 17.0)
            for bad in ("nan", "inf", "-5", "", "1e3", "soon", "0")
        ),
        ({"retry-after-ms": "9" * 400}, LONGEST_WAIT.total_seconds()),
        ({"retry-after": "9" * 400}, LONGEST_WAIT.total_seconds()),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:17 GMT"}, 17.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:59 GMT"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST_WAIT.total_seconds()),
        *(
            ({"retry-after": bad}, None)
            for bad in ("nan", "-1", "", "soon", "Wed, 99 Oct 2026", "0", "0.0", "0.0000001")
        ),
    ],
    ids=str,
)
def test_of_what_a_provider_asks_what_can_be_meant_counts(
    headers: dict[str, str], wait: float | None
) -> None:
    """A header that says nothing hides none that does, and no clock makes a failing provider be
    asked without a pause.
    """
    now = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)
    asked = retry_after(headers, now)
    assert (asked and asked.total_seconds()) == wait


async def test_an_error_that_python_cannot_read_is_told_as_it_is() -> None:
    """A number of more than 4,300 digits is JSON all the same: reading it failed the attempt behind
    all that books and bounds one.
    """
    body = b'{"error": {"message": "no", "code": %s}}' % (b"9" * 5_000)
    async with Gateway(body, "application/json", status=400) as address:
        job = job_at(address, "openai/gpt-4o")
        error = await failure(job)
    assert (error.type, error.non_retryable) == ("BadRequestError", True)
    assert error.message.startswith('{"error": {"message": "no", "code": 999')
    (attempt,) = job.archive.attempts(RUN, 1)
    assert job.archive.failed_response(attempt.key) == body


@SERVERS
async def test_a_retry_is_an_attempt_of_its_own(make: Make) -> None:
    """After a failure the next attempt sends again, both are archived, and the step names the
    second.
    """
    reply = {"text": "Hello.", "fail": {"status": 500}}
    async with make(lambda _m, _n: reply).serving() as server:
        job = Job(model_at(server))
        await failure(job)
        got = await run(job.store, job.call(), attempt(2))
        assert [e.status for e in server.exchanges] == [500, 200]
    assert (got.text, got.attempt) == ("Hello.", 2)
    attempts = job.archive.attempts(RUN, 1)
    assert [a.temporal_attempt for a in attempts] == [1, 2]
    step = job.archive.find_step(RUN, 1)
    assert step is not None
    assert step.attempt.key == attempts[1].key


@SERVERS
@pytest.mark.parametrize("wrong", ["break_after", "end_after"])
async def test_a_stream_that_breaks_off_is_retried(make: Make, wrong: str) -> None:
    """A connection that closes in mid-stream, also in good order, is no reply."""
    async with make(lambda _m, _n: {"text": TEXT, wrong: 30}).serving() as server:
        job = Job(model_at(server))
        error = await failure(job)
        assert (error.type, error.non_retryable) == ("StreamBroken", False)
        assert (await run(job.store, job.call(), attempt(2))).text == TEXT
        assert len(server.exchanges) == 2


@SERVERS
@pytest.mark.parametrize("where", [0, 60])
async def test_an_error_in_mid_stream_is_retried(make: Make, where: int) -> None:
    """An error event in the stream ends the attempt, with the provider's words."""
    async with make(lambda _m, _n: {"text": TEXT, "error_after": where}).serving() as server:
        job = Job(model_at(server))
        error = await failure(job)
        assert (error.type, error.non_retryable) == ("ServerError", False)
        assert "Overloaded" in error.message
        assert (await run(job.store, job.call(), attempt(2))).text == TEXT


@SERVERS
async def test_a_window_error_in_mid_stream_is_known(make: Make) -> None:
    """A provider that finds out in mid-stream that the prompt is too long is understood."""
    wrong = {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}
    async with make(
        lambda _m, _n: {"text": TEXT, "error_after": 0, "error": wrong}
    ).serving() as server:
        error = await failure(Job(model_at(server)))
    assert (error.type, error.non_retryable) == ("ContextWindowExceeded", True)


@SERVERS
@STREAMING
async def test_a_connection_without_an_answer_is_noticed(make: Make, stream: bool) -> None:
    """No first byte within the limit is a timeout."""
    async with make(lambda _m, _n: {"hang": True}).serving() as server:
        error = await failure(Job(model_at(server, stream=stream, first_byte=0.3)))
    assert (error.type, error.non_retryable) == ("ModelTimeout", False)
    assert error.message == "no byte of a reply arrived within 0.3 s"


@SERVERS
@pytest.mark.parametrize("where", [0, 60])
async def test_a_stream_that_stalls_is_noticed(make: Make, where: int) -> None:
    """Silence between two pieces, or after the headers, is a timeout."""
    async with make(lambda _m, _n: {"text": TEXT, "hang_after": where}).serving() as server:
        error = await failure(Job(model_at(server, stall=0.3)))
    assert (error.type, error.non_retryable) == ("ModelTimeout", False)
    assert error.message == "the reply stopped: nothing arrived for 0.3 s"


async def test_a_call_has_an_end() -> None:
    """A reply that keeps coming for longer than the whole call may take is a timeout."""
    async with openai_server(lambda _m, _n: {"delay": 5}).serving() as server:
        error = await failure(Job(model_at(server, timeout=0.3)))
    assert (error.type, error.message) == ("ModelTimeout", "the reply was not complete after 0.3 s")


@SERVERS
async def test_a_server_that_is_not_there(make: Make) -> None:
    """A refused connection is retried, and the request is archived once, for litellm does not try
    again by itself.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = make(lambda _m, _n: "")
        server.address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        job = Job(model_at(server))
        error = await failure(job)
    assert (error.type, error.non_retryable) == ("ConnectionFailed", False)
    assert len(job.archive.attempts(RUN, 1)) == 1


async def test_a_proxy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's, for a server of this machine too; without its password."""
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with openai_server(lambda _m, _n: TEXT).serving() as server:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            proxy = f"127.0.0.1:{taken.getsockname()[1]}"
            monkeypatch.setenv("http_proxy", f"http://me:secret@{proxy}")
            error = await failure(Job(model_at(server)))
    assert (error.type, error.message) == (
        "ConnectionFailed",
        f"All connection attempts failed (by the environment's proxy {proxy})",
    )


@SERVERS
async def test_a_cancelled_call_ends_at_once(make: Make) -> None:
    """Cancelling in mid-stream ends the activity and the connection; the attempt stays, without a
    step.
    """
    async with make(lambda _m, _n: {"text": TEXT, "hang_after": 60}).serving() as server:
        job = Job(model_at(server))
        environment = attempt(1)
        beats: list[Any] = []
        seen = asyncio.Event()

        def beat(*details: Any) -> None:
            beats.append(details[0])
            if details[0]["bytes"]:
                seen.set()

        environment.on_heartbeat = beat
        task = asyncio.ensure_future(job.take_turn(environment))
        await eventually(seen.is_set, "a part of the reply")
        environment.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, SECONDS)
    assert set(beats[-1]) == {"turn", "seconds", "bytes"}
    assert len(job.archive.attempts(RUN, 1)) == 1
    assert job.archive.find_step(RUN, 1) is None


async def test_nothing_is_sent_that_is_not_archived() -> None:
    """When the archive cannot be written, the request does not leave."""

    class FullStore(MemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            raise ArchiveError("no space left")

    async with openai_server(lambda _m, _n: "Hello.").serving() as server:
        with pytest.raises(ArchiveError, match="no space left"):
            await Job(model_at(server), store=FullStore()).take_turn()
        assert server.exchanges == []


async def test_a_reply_is_held_until_it_can_be_archived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While the disk is full the reply, which is paid for, waits; the model is not called again,
    and one log line says why.
    """
    monkeypatch.setattr("activities._held.PAUSE", 0.01)
    refused = []

    class FullForAWhile(DirectoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            if key.endswith(".step") and len(refused) < 3:
                refused.append(key)
                raise ArchiveError("no space left")
            return super().put_if_absent(key, data)

    async with openai_server(lambda _m, _n: "Hello.").serving() as server:
        job = Job(model_at(server), store=FullForAWhile(tmp_path))
        assert (await job.take_turn()).text == "Hello."
        assert len(server.exchanges) == 1
        assert job.archive.wire_response(RUN, 1) == server.exchanges[0].response
    assert (len(job.archive.attempts(RUN, 1)), len(refused)) == (1, 3)
    said = [
        record.getMessage()
        for record in caplog.records
        if "waits to be archived" in record.getMessage()
    ]
    assert said == ["nightly/licences turn 1: the reply waits to be archived: no space left"]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ({"name": "openai/gpt-4o", "stall": -1}, "BadRequestError"),
        ({"name": "no-such-provider/x"}, "BadRequestError"),
        ({"name": "anthropic/claude-sonnet-4-5"}, "AuthenticationError"),
    ],
)
async def test_what_cannot_be_called_is_not_retried(
    model: dict[str, Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong option, an unknown provider, a missing key end the job."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    error = await failure(Job(model))
    assert (error.type, error.non_retryable) == (kind, True)


@pytest.mark.parametrize("where", ["key", "header"])
async def test_a_key_stands_nowhere(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment or in a header is in no object, though the provider says it back."""
    secret = "hf-0123456789-secret-value"
    options: dict[str, Any] = (
        {"extra_headers": {"x-gateway-token": secret}} if where == "header" else {}
    )
    async with openai_server(lambda _m, _n: f"Your key is {secret}.").serving() as server:
        if where == "key":
            monkeypatch.setenv("OPENAI_API_KEY", secret)
        model = {"name": "openai/gpt-4o", "api_base": f"{server.address}/v1", **options}
        job = Job(model if where == "key" else {**model, "api_key": KEY})
        await job.take_turn()
        assert secret in str(server.exchanges[0].headers)
    said = readable(job.store)
    assert b"Your key is" in said
    assert secret.encode() not in said


@pytest.mark.parametrize("name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize("key", ["hunter2\rhunter2secret", "hunter2…hunter2secret"])
async def test_a_key_that_no_header_takes_is_told_of_and_stands_nowhere(
    name: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two lines, of a file whose lines end in a carriage return, or copied from where it is
    shown shortened: it gets no better.
    """
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, key)
    async with Gateway(b"") as address:
        job = Job({"name": name, "api_base": address})
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
    assert (failed.value.type, failed.value.message) == ("AuthenticationError", UNSENDABLE)
    assert b"hunter2secret" not in readable(job.store)


def test_causes_in_a_circle_are_asked_once() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert list(causes_of(first)) == [first, second]


@STREAMING
async def test_a_key_that_comes_back_beside_the_text_stands_nowhere(stream: bool) -> None:
    """In the headers of a response, and in the ids and names of a reply and its calls; two calls
    still have two ids.
    """
    part = {"id": KEY, "type": "function", "function": {"name": KEY, "arguments": "{}"}}
    calls = [{**part, "index": 0}, {**part, "index": 1, "id": f"{KEY}-2"}]
    said = {"role": "assistant", "tool_calls": calls}
    choice = {"index": 0, "delta" if stream else "message": said, "finish_reason": KEY}
    body = json.dumps({"id": KEY, "choices": [choice]})
    kept = {"x-request-id": KEY, "location": f"/{KEY}", "x-ratelimit-limit-requests": f"1 {KEY}"}
    gateway = Gateway(
        f"data: {body}\n\ndata: [DONE]\n\n".encode() if stream else body.encode(),
        "text/event-stream" if stream else "application/json",
        **kept,
    )
    async with gateway as address:
        job = job_at(address, "openai/gpt-4o", stream=stream)
        reply = await job.take_turn()
        gateway.status = 503
        with pytest.raises(ApplicationError):
            await job.take_turn()
    assert KEY not in reply.model_dump_json()
    assert [call.id for call in reply.tool_calls] == ["call_masked_0", "call_masked_1"]
    assert KEY.encode() not in readable(job.store)
