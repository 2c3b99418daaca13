"""litellm does nothing for callbacks that nobody registered, and all that it did for those that
somebody did.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from model_calls import SERVERS, STREAMING, Job, Make, attempt, model_at, openai_server
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
)

from activities import _model_turn
from activities._litellm_library import library
from activities.contracts import TurnReply
from activities.heartbeats import HeartbeatInterceptor
from tests.eventually import eventually

pytestmark = pytest.mark.usefixtures("litellm")


HOPS = ["_prepared", "completion", "sending_now", "_finish"]
"""For what a thread is woken in a call: to look up what it needs, to archive the request, to
archive the reply. litellm makes its client in one.
"""

OF_THE_SERVER = {"chatty"}


def chatty(messages: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """A reply in many pieces."""
    return {"text": f"Reply {number}. " + "word " * 200, "code": f"print({number})"}


def work_of(function: Any) -> str:
    """What a pool is to run, without what carries it there."""
    while isinstance(function, partial):
        function = function.args[0] if function.args else function.func
    return str(function.__name__)


@contextmanager
def counted() -> Iterator[tuple[Counter[str], list[str]]]:
    """The calls of Python functions in this thread, by file and name, and for what it woke
    others.
    """
    calls: Counter[str] = Counter()
    hops: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            file = frame.f_code.co_filename.replace("\\", "/")
            calls[f"{file.rpartition('/')[2]}:{frame.f_code.co_name}"] += 1
            if frame.f_code is ThreadPoolExecutor.submit.__code__:
                # ``asyncio.to_thread`` has it run in the caller's context.
                hops.append(work_of(frame.f_locals["fn"]))

    sys.setprofile(note)
    try:
        yield calls, hops
    finally:
        sys.setprofile(None)


@SERVERS
@STREAMING
async def test_nothing_is_done_for_nobody(make: Make, stream: bool) -> None:
    """No payload for callbacks is made, no handler runs, a thread is woken for what needs one."""
    async with make(chatty).serving() as server:
        job = Job(model_at(server, stream=stream))
        await job.take_turn()
        with counted() as (calls, hops):
            await job.take_turn()
    assert [hop for hop in hops if hop not in OF_THE_SERVER] == HOPS
    assert calls["to_thread.py:run_sync"] == 0
    made = [name for name in calls if name.startswith("litellm_logging.py:")]
    assert [name for name in made if "handler" in name or "payload" in name] == []
    assert calls["cost_calculator.py:completion_cost"] == 0
    assert calls["logging_worker.py:enqueue"] == 0
    # For the usage, which takes the few chunks that tell of it; newer releases do without.
    assert calls["main.py:stream_chunk_builder"] <= int(stream)
    # Once for each message of the prompt.
    assert calls["utils.py:cleanup_none_field_in_message"] == 0


async def test_no_usage_is_made_up_where_none_is_stated(tmp_path: Path) -> None:
    """A scripted model's response has none, and litellm's figures would count for nothing."""
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps([{"code": f"print({n})"} for n in range(2)]))
    job = Job({"name": f"scripted/{script}", "stream": True})
    await job.take_turn()
    with counted() as (calls, _):
        reply = await job.take_turn()
    assert calls["main.py:stream_chunk_builder"] == 0
    assert not reply.usage.reported
    assert reply.usage.completion == reply.tokens > 0


@pytest.mark.slow
async def test_the_client_goes_through_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a prompt of any length it looks for names to spell and files to read in the rest of the
    request alone, and sends the same bytes.
    """

    async def sent() -> tuple[list[bytes], list[int]]:
        looks: list[int] = []
        async with openai_server(chatty).serving() as server:
            job = Job(model_at(server, stream=True, temperature=0.5))
            for _ in range(8):
                with counted() as (calls, _):
                    await job.take_turn()
                looks.append(calls["_transform.py:_async_transform_recursive"])
            return [exchange.request for exchange in server.exchanges], looks

    await sent()
    ours, looks = await sent()
    assert len(set(looks)) == 1
    chat: Any = import_module("openai.resources.chat.completions.completions")
    monkeypatch.setattr(chat, "async_maybe_transform", chat.async_maybe_transform.__wrapped__)
    theirs, grown = await sent()
    assert ours == theirs
    # Newer releases of litellm do not go by it.
    assert looks[0] < grown[0] < grown[-1] or {*looks, *grown} == {0}


async def test_a_tokenizer_is_kept_as_its_text_alone() -> None:
    """litellm reads the text where it is asked to count by it, and never what it parsed of it."""
    library()
    utils: Any = import_module("litellm.utils")
    assert utils.json_data is None
    assert len(json.loads(utils.claude_json_str)["model"]["vocab"]) > 60_000


async def test_a_cache_that_is_not_there_is_nobody() -> None:
    """Importing Gemini's part of litellm registers one for good."""
    import_module("litellm.llms.vertex_ai.context_caching.vertex_ai_context_caching")
    assert "cache" in library().success_callback
    async with openai_server(chatty).serving() as server:
        job = Job(model_at(server, stream=True))
        await job.take_turn()
        with counted() as (calls, _):
            await job.take_turn()
    assert not [name for name in calls if name.startswith("litellm_logging.py:success")]


@SERVERS
@STREAMING
async def test_usage_is_the_same_as_with_callbacks(make: Make, stream: bool) -> None:
    """Who listens is told, and what a call used and cost does not depend on that."""
    lite, logger = library(), import_module("litellm.integrations.custom_logger")
    told: list[Any] = []

    class Listener(logger.CustomLogger):  # type: ignore[misc, name-defined]
        async def async_log_success_event(
            self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
        ) -> None:
            told.append(kwargs["standard_logging_object"])

    async def reply() -> TurnReply:
        async with make(chatty).serving() as server:
            return await Job(model_at(server, stream=stream)).take_turn()

    quiet = await reply()
    assert told == []
    lite.callbacks = [Listener()]
    try:
        heard = await reply()
        await eventually(lambda: bool(told), "the callback was told")
    finally:
        lite.callbacks = []
        lite.logging_callback_manager._reset_all_callbacks()
    assert (quiet.usage, quiet.cost_usd) == (heard.usage, heard.cost_usd)
    assert quiet.usage.reported
    assert [one["total_tokens"] for one in told] == [quiet.usage.total]


class Beats(ActivityOutboundInterceptor):
    """Counts heartbeats, in place of the SDK."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def heartbeat(self, *details: Any) -> None:
        """One more."""
        self.seen.append(details)


class Ends(ActivityInboundInterceptor):
    """An activity that ends when it is told to."""

    def __init__(self, until: Callable[[], bool]) -> None:
        self._until = until

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        """Nothing."""

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """Wait for the end."""
        await eventually(self._until, "the activity's end")


async def beats_until(end: Callable[[list[Any]], bool]) -> list[Any]:
    """The heartbeats of an activity that ends when ``end`` holds for them."""
    beats = Beats()
    beating = HeartbeatInterceptor().intercept_activity(Ends(lambda: end(beats.seen)))
    beating.init(beats)

    async def within() -> None:
        empty = ExecuteActivityInput(fn=within, args=(), executor=None, headers={})
        await beating.execute_activity(empty)

    environment = attempt(1)
    environment.info = replace(environment.info, heartbeat_timeout=timedelta(seconds=30))
    await environment.run(within)
    return beats.seen


async def test_a_short_activity_sends_no_heartbeat() -> None:
    """Each is a call of the server's; the first is due after a beat."""
    assert await beats_until(lambda seen: True) == []
    assert await beats_until(lambda seen: bool(seen)) == [()]


async def test_a_short_call_sends_no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a model call, which beats by itself: the first is due after a beat."""
    # On a busy machine a short call takes longer than one.
    monkeypatch.setattr(_model_turn, "HEARTBEAT_SECONDS", 3600.0)
    beats: list[Any] = []
    environment = attempt(1)
    environment.on_heartbeat = lambda *details: beats.append(details)
    async with openai_server(chatty).serving() as server:
        await Job(model_at(server)).take_turn(environment)
    assert beats == []
