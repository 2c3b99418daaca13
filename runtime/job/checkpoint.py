"""The whole of a job between two turns as one versioned JSON value, and the job that such a value gives back.

What the job shows and knows is in it: the View's events, the context graph, the interpreter's session (bytes of Monty, with
the version that wrote them), budgets, and what the projection remembers. What only looks back is not: events that were
forgotten stay in the checkpoints and steps before, and the previous prompt is there as the digests of its segments. So a
checkpoint is as long as the context, however long the job has run.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Literal

from pydantic import ValidationError

from runtime.context.graph import ContextGraph
from runtime.errors import InputError
from runtime.history.codec import event_from_json, event_to_json
from runtime.history.events import ActionEvent, MessageEvent, ShownEvent, is_shown
from runtime.history.log import EventLog
from runtime.interpreter import supplied
from runtime.interpreter.definitions import Definitions
from runtime.interpreter.namespace import SHORT, WHOLE, Namespace
from runtime.interpreter.records import Execution, TypeInfo
from runtime.interpreter.run import Session
from runtime.job.condensing import Backoff
from runtime.job.dropped import Dropped
from runtime.job.happenings import Happenings
from runtime.job.job import Job
from runtime.job.places import Place
from runtime.job.sleeping import Sleep
from runtime.projection.prices import Prices
from runtime.projection.segments import Segment, reply_segment
from runtime.spec.models import Budget, JobSpec
from runtime.values import Usage, Value

VERSION = 1
INTERPRETER = f"monty {version('pydantic-monty')} supplied {supplied.VERSION}"
"""The interpreter that writes sessions in this process, and the version of what it is supplied with.

Another version takes them over at a checkpoint or not at all.
"""


class Reply(Value):
    """A reply's segment: how many tokens it has, and all of it where its action does not tell the rest."""

    turn: int
    tokens: int
    segment: dict[str, Any] | None = None


class JobCheckpoint(Value):
    """A job after ``turn`` turns. ``key`` seeds random numbers, ``started`` is seconds since 1970, ``session`` base64."""

    version: Literal[1] = 1
    key: str
    started: float
    turn: int
    events: tuple[dict[str, Any], ...]
    condensation_requested: bool = False
    graph: dict[str, Any]
    interpreter: str
    session: str | None = None
    supplied: tuple[str, ...] = ()
    variables: dict[str, TypeInfo]
    handles: dict[str, str]
    definitions: Definitions = Definitions()
    aliases: tuple[tuple[str, str], ...] = ()
    scheme: int = SHORT
    budget: Budget
    usage: Usage
    cost_usd: float
    untold: tuple[tuple[Usage, float], ...] = ()
    worked: float = 0.0
    limit: int
    size: int
    accepted: int = 0
    cached_tokens: int = 0
    dropped: Dropped = Dropped()
    backoff: Backoff = Backoff()
    collapsed: tuple[str, ...] = ()
    node_budgets: dict[str, int] = {}
    changed: dict[str, tuple[str, int]] = {}
    places: dict[str, Place] = {}
    superseded: tuple[str, ...] = ()
    causes: dict[str, str] = {}
    prices: Prices = Prices()
    replies: tuple[Reply, ...] = ()
    layout: str
    last_statement: str
    execution: Execution | None = None
    bad_replies: tuple[str, ...] = ()
    sleep: Sleep | None = None
    event_count: int = 0
    happenings: tuple[dict[str, Any], ...] = ()


def dump(job: Job) -> dict[str, Any]:
    """The job as JSON. Call it between two turns: after ``record`` and before ``ingest``."""
    surface, fitter, ledger = job.surface, job.fitter, job.ledger
    shown = list(job.log.view)
    return JobCheckpoint(
        key=job.key,
        started=ledger.started,
        turn=job.turn,
        events=tuple(event_to_json(event) for event in shown),
        condensation_requested=job.log.view.unhandled_condensation_request,
        graph=job.graph.dump(),
        interpreter=INTERPRETER,
        session=None if job.session.dump is None else base64.b64encode(job.session.dump).decode(),
        supplied=job.session.pieces,
        variables=dict(job.session.names.variables),
        handles=dict(job.session.names.handles),
        definitions=job.session.names.definitions,
        aliases=job.session.names.aliases,
        scheme=job.session.names.scheme,
        budget=ledger.budget,
        usage=ledger.usage,
        cost_usd=ledger.cost_usd,
        untold=tuple(ledger.untold),
        worked=ledger.worked,
        limit=fitter.limit,
        size=fitter.size,
        accepted=fitter.accepted,
        cached_tokens=job.condensing.cached_tokens,
        dropped=job.condensing.dropped,
        backoff=job.condensing.backoff,
        collapsed=tuple(surface.collapsed),
        node_budgets=surface.shrunk,
        changed=surface._changed,
        places=job.places.known,
        superseded=tuple(event.id for event in shown if event.id in job.places.dropped),
        causes={obj_id: cause for obj_id, cause in job.places.causes.items() if obj_id in job.places.known},
        prices=job.places.prices,
        replies=tuple(_replies(job, shown)),
        layout=_packed(job.shown),
        last_statement=job.last_statement,
        execution=job.execution,
        bad_replies=tuple(job._bad_replies),
        sleep=job.sleeping.state,
        event_count=job._events,
        happenings=job.happenings.records,
    ).model_dump(mode="json", exclude_defaults=True)


def load(spec: JobSpec, data: dict[str, Any], *, count: Callable[[str], int]) -> Job:
    """The job that ``dump`` was given. ``spec`` is the job's definition, ``count`` its token counter.

    Raises:
        InputError: if the checkpoint is of another version or damaged.
    """
    if data.get("version", VERSION) != VERSION:
        raise InputError(f"checkpoint of version {data.get('version')!r}; this release reads version {VERSION}")
    try:
        saved = JobCheckpoint.model_validate(data)
        events = [event for event in map(event_from_json, saved.events) if is_shown(event)]
        session = None if saved.session is None else base64.b64decode(saved.session, validate=True)
        layout = _unpacked(saved.layout)
    except (ValidationError, binascii.Error) as error:
        raise InputError(f"the checkpoint is damaged: {error}") from error
    job = Job(spec, key=saved.key, started=saved.started, count=count)
    desk = job.desk
    desk.turn = saved.turn
    properties = job.log.view.properties
    desk.log = EventLog.resumed(events, unhandled_request=saved.condensation_requested, properties=properties)
    desk.graph = desk.surface.graph = ContextGraph.load(saved.graph, count, writer=spec.writer is not None)
    desk.session = Session(dump=session, names=_names(saved), pieces=saved.supplied)
    job.ledger.budget, job.ledger.usage, job.ledger.cost_usd = saved.budget, saved.usage, saved.cost_usd
    job.ledger.untold, job.ledger.worked = list(saved.untold), saved.worked
    job.fitter.limit, job.fitter.size, job.condensing.cached_tokens = saved.limit, saved.size, saved.cached_tokens
    job.fitter.accepted = saved.accepted
    job.condensing.dropped, job.condensing.backoff = saved.dropped, saved.backoff
    job.surface.names = job.session.names.handles
    job.surface.collapsed = dict.fromkeys(saved.collapsed)
    job.surface.shrunk = dict(saved.node_budgets)
    job.surface._changed = dict(saved.changed)
    places = job.places
    places.known, places.dropped = dict(saved.places), dict.fromkeys(saved.superseded)
    places.causes, places.prices = dict(saved.causes), saved.prices
    desk.replies = _segments(saved.replies, events)
    desk.shown = layout
    job.last_statement = saved.last_statement
    job.execution = saved.execution
    job._bad_replies = list(saved.bad_replies)
    job.sleeping.state = saved.sleep
    job._events = saved.event_count
    job.happenings = Happenings(saved.happenings)
    return job


def _names(saved: JobCheckpoint) -> Namespace:
    return Namespace(
        variables=saved.variables,
        handles=saved.handles,
        definitions=saved.definitions,
        aliases=saved.aliases,
        scheme=WHOLE if saved.session is None else saved.scheme,
    )


def _replies(job: Job, shown: list[ShownEvent]) -> list[Reply]:
    """The replies that later prompts may show: those of the View's events, and the last, which the next delta names."""
    actions = _actions_of(shown)
    turns = {event.turn for event in shown if isinstance(event, ActionEvent | MessageEvent)} | {job.turn}
    found: list[Reply] = []
    for turn in sorted(turns & job.replies.keys()):
        segment = job.replies[turn]
        same = turn in actions and _segment_of(actions[turn], segment.tokens) == segment
        whole = None if same else segment.model_dump(mode="json", exclude_defaults=True)
        found.append(Reply(turn=turn, tokens=segment.tokens, segment=whole))
    return found


def _segments(replies: tuple[Reply, ...], shown: list[ShownEvent]) -> dict[int, Segment]:
    actions = _actions_of(shown)
    return {
        reply.turn: _segment_of(actions[reply.turn], reply.tokens)
        if reply.segment is None
        else Segment.model_validate(reply.segment)
        for reply in replies
    }


def _actions_of(shown: list[ShownEvent]) -> dict[int, ActionEvent]:
    return {event.turn: event for event in shown if isinstance(event, ActionEvent)}


def _segment_of(action: ActionEvent, tokens: int) -> Segment:
    """The segment of the reply that made an action, from what the action tells of it."""
    return reply_segment(
        turn=action.turn,
        text=action.text,
        tool_calls=action.tool_calls,
        thinking=action.thinking_blocks,
        tokens=tokens,
    )


def _packed(digests: tuple[str, ...]) -> str:
    """Digests (``sha256:…``) as base64 of their bytes, one after the other."""
    return base64.b64encode(b"".join(bytes.fromhex(digest.removeprefix("sha256:")) for digest in digests)).decode()


def _unpacked(text: str) -> tuple[str, ...]:
    data = base64.b64decode(text, validate=True)
    return tuple(f"sha256:{data[start : start + 32].hex()}" for start in range(0, len(data), 32))
