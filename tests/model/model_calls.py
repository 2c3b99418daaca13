"""Running the model activity as a worker does, against local servers and an archive of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.contracts import ReplyForm, TurnCall, TurnReply
from activities.model import ModelActivities
from runtime.archive.container import unseal
from runtime.archive.job import JobArchive
from runtime.archive.keys import parse_turn_key
from runtime.archive.requests import RequestReader
from runtime.archive.stores import MemoryStore, ObjectStore
from runtime.base.digests import canonical_json
from runtime.base.tokens import encoding
from runtime.base.values import JobKey, StepRef
from runtime.projection.segments import Role, Segment, SegmentKind, delta_between
from tests.servers.anthropic_server import AnthropicProtocol
from tests.servers.openai_server import OpenAIProtocol
from tests.servers.provider_server import Policy, ProviderServer
from tests.servers.responses_server import ResponsesProtocol

KEY = "sk-test-0123456789abcdef"
RUN = "run-1"


def openai_server(policy: Policy) -> ProviderServer:
    """A server of OpenAI's protocol, not yet serving."""
    return ProviderServer(OpenAIProtocol(), policy)


def anthropic_server(policy: Policy) -> ProviderServer:
    """A server of Anthropic's protocol, not yet serving."""
    return ProviderServer(AnthropicProtocol(), policy)


def responses_server(policy: Policy) -> ProviderServer:
    """A server of OpenAI's Responses API, not yet serving."""
    return ProviderServer(ResponsesProtocol(), policy)


Make = Callable[[Any], ProviderServer]
"""What makes a server of a protocol."""

SERVERS = pytest.mark.parametrize(
    "make", [openai_server, anthropic_server], ids=["openai", "anthropic"]
)
STREAMING = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def model_at(server: ProviderServer, **options: Any) -> dict[str, Any]:
    """Model options that reach ``server``."""
    if isinstance(server.protocol, OpenAIProtocol):
        return {
            "name": "openai/gpt-4o",
            "api_base": f"{server.address}/v1",
            "api_key": KEY,
            **options,
        }
    if isinstance(server.protocol, ResponsesProtocol):
        return {
            "name": "openai/gpt-5-codex",
            "api_base": f"{server.address}/v1",
            "api_key": KEY,
            **options,
        }
    return {
        "name": "anthropic/claude-sonnet-4-5",
        "api_base": server.address,
        "api_key": KEY,
        **options,
    }


def segment(kind: SegmentKind, role: Role, text: str, *, call: str | None = None) -> Segment:
    """A segment with its true count."""
    count = encoding("cl100k_base").count(text)
    return Segment(
        kind=kind, origin="event:1", role=role, text=text, tokens=count, tool_call_id=call
    )


START = (
    segment(SegmentKind.CONTRACT, Role.SYSTEM, "You write Python."),
    segment(SegmentKind.GOAL, Role.USER, "Find the lïcences. \U0001f642"),
)


@dataclass
class Job:
    """A job of one run: takes turns through the activity and keeps the layout, as the workflow
    does.
    """

    model: dict[str, Any]
    store: ObjectStore = field(default_factory=MemoryStore)
    form: ReplyForm = ReplyForm.TOOL
    name: str = "licences"
    turn: int = 1
    parent: StepRef | None = None
    _layout: tuple[Segment, ...] = ()

    @property
    def archive(self) -> JobArchive:
        """The job's archive."""
        return JobArchive(self.store, "nightly", self.name)

    def call(self) -> TurnCall:
        """The next turn's call."""
        previous = self._layout
        reply = self.archive.reply_segment(self.parent)
        layout = START if reply is None else (*previous, reply, *_results(reply))
        return TurnCall(
            key=JobKey(batch="nightly", job=self.name),
            turn=self.turn,
            parent=self.parent,
            layout=delta_between(previous, reply, layout),
            model=self.model,
            form=self.form,
            reset_event_id=4,
        )

    async def take_turn(self, environment: ActivityEnvironment | None = None) -> TurnReply:
        """Call the model for the next turn."""
        call = self.call()
        reply = await run(self.store, call, environment)
        self._layout = call.layout.apply(self._layout, self.archive.reply_segment(self.parent))
        self.parent, self.turn = reply.step, self.turn + 1
        return reply


async def run(
    store: ObjectStore, call: TurnCall, environment: ActivityEnvironment | None = None
) -> TurnReply:
    """Run the activity once."""
    return await (environment or attempt(1)).run(ModelActivities(store).call_model, call)


def attempt(number: int) -> ActivityEnvironment:
    """The environment of Temporal's attempt ``number``."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=number, workflow_run_id=RUN)
    return environment


def _results(reply: Segment) -> list[Segment]:
    calls = [
        segment(SegmentKind.RESULT, Role.TOOL, "(no output)", call=c.id) for c in reply.tool_calls
    ]
    return [*calls, segment(SegmentKind.BUDGET, Role.USER, "[budget: enough]")]


def readable(store: ObjectStore) -> bytes:
    """All that the archive says of ``RUN``, decompressed: every object's header, and every request
    and response.
    """
    archive = JobArchive(store, "nightly", "licences")
    said: list[bytes] = []
    for key in store.list("nightly/"):
        place = parse_turn_key(key)
        said.append(key.encode() + canonical_json(unseal(key, store.get(key)).header))
        if place and place.kind == "attempt":
            said.append(RequestReader(store.get).wire(key))
        if place and place.kind == "step":
            said.append(archive.wire_response(RUN, place.turn))
    return b"\n".join(said)
