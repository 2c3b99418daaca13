"""One attempt at one turn's model call, from the layout to the archived step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities._answer import Answer, held_in_pieces, without_secrets
from activities._captured import CapturedCall, SentRequest
from activities._counted import at_least, counted_usage, filled, reply_tokens
from activities._failed_attempts import (
    FailedAttempts,
    failed_attempts,
    given_up,
    used_by,
    wait_after,
)
from activities._failures import FailureKind, failure_of
from activities._full_windows import NO_ROOM, has_room, left_no_room
from activities._held import Held
from activities._lent import Lent
from activities._litellm import ask, cost_of, price
from activities._litellm_library import is_heard
from activities._masked import masked_call
from activities._options import ModelOptions, options_of
from activities._prompts import Messages, Prompt, Tools, turn_prompt
from activities._reported_usage import is_told_early, reported_by, tier_in, usage_of
from activities._secrets import Secrets
from activities._under_way import BrokenOff, UnderWay, under_way
from activities._worst_case import in_budget
from activities.contracts import BUDGET_SPENT, HAS_ROOM, HELD, TurnCall
from activities.heartbeats import HEARTBEAT_SECONDS
from activities.prices import prices_of
from activities.rate_headers import tell
from runtime.archive.allowed import allowed_headers, clean_model
from runtime.archive.forms import (
    Capture,
    ExchangeReason,
    NewAttempt,
    NewExchange,
    NewFailure,
    NewStep,
    Step,
    StoredPrefix,
    StoredReply,
)
from runtime.archive.job import JobArchive
from runtime.base.digests import canonical_json
from runtime.base.errors import ArchiveError
from runtime.base.failpoints import failpoint
from runtime.base.values import Failed, Usage
from runtime.projection.messages import Marks
from runtime.projection.prefix import prefix_of
from runtime.projection.segments import Segment

HELD_SECONDS = 600.0
"""How long a reply is held while the archive cannot be written; then the call is made again, as
soon as it can be.
"""

HELD_CHARS = 500
"""What heartbeats tell at most of why a reply is held."""

WITHHELD = b'{"withheld": "the response held a secret value"}'
"""What is archived in place of a response in which the provider said a secret back."""

CUT = "the call was broken off: nobody waits for its reply any more"

T = TypeVar("T")


@dataclass(frozen=True)
class _Ready:
    """A turn that is ready to be called: its prompt as segments and as it is sent, what of that
    litellm is handed, and how much of it the provider's cache may have; None for a prompt of its
    own.
    """

    layout: tuple[Segment, ...]
    tokens: int
    messages: Messages
    lent: Lent
    tools: Tools
    prefix: StoredPrefix | None


class ModelTurn:
    """One attempt at the call of ``call``'s turn in ``run``.

    ``temporal_attempt`` is Temporal's number of it, from 1.

    Raises:
        ApplicationError: as ``options_of``.
    """

    def __init__(
        self,
        call: TurnCall,
        archive: JobArchive,
        *,
        run: str,
        temporal_attempt: int,
        activity_id: str = "",
        prompt: Prompt = turn_prompt,
    ) -> None:
        self._call = call
        self._activity_id = activity_id
        self._held: Held | None = None
        self._began = time.monotonic()
        self._failed = FailedAttempts()
        self._prompt = prompt
        self._archive = archive
        self._run = run
        self._options = options_of(call.model)
        self._captured = CapturedCall(
            self._begin,
            limits=self._options.limits(call.retry),
            secrets=Secrets.of_call(self._options.arguments),
            turn=call.turn,
            temporal_attempt=temporal_attempt,
            job=str(call.key),
            followed=self._keep_followed,
        )

    @property
    def attempt(self) -> str | None:
        """The key of the archived attempt, once the request is sent."""
        return self._captured.attempt

    async def take(self) -> Step:
        """Call, and archive the reply, unless the archive has the turn's step already.

        Returns the turn's step: this attempt's, or that of another that was faster.

        Raises:
            ApplicationError: ``BudgetSpent``, if the attempts before have used up what was left;
                ``BudgetShort``, if the worst case of this one does not fit into it; ``CallCut``, if
                it was broken off.
        """
        with under_way(self._run, self._activity_id) as call:
            return await self._taken(call)

    async def _taken(self, under_way: UnderWay) -> Step:
        ready = await asyncio.to_thread(self._prepared)
        if isinstance(ready, Step):
            return ready
        if self._captured.temporal_attempt > 1:
            self._failed = await asyncio.to_thread(self._attempts_before)
            if (spent := self._spent(self._failed)) is not None:
                raise spent
        if self._call.left is not None:
            self._options = in_budget(
                self._options, ready.tokens, self._call.left, self._failed.spent, self._call.booked
            )
        # From here on money may be spent: all that may refuse the call has been asked.
        failpoint("model.before_call")
        answer = await self._answer(ready, under_way)
        await self._check_room(ready, answer)
        failpoint("model.after_call")
        try:
            return await self._kept(ready, answer)
        except ArchiveError:
            raise
        # A reply that we cannot make a step of is paid for, and may come at each attempt: unless it
        # is one that failed, nothing would book it, and nothing end the job.
        except Exception as error:  # noqa: BLE001
            failure = failure_of(error, self._captured)
            raise await _to_its_end(self._fail, ready.layout, failure, False) from None

    @asynccontextmanager
    async def heartbeats(self) -> AsyncIterator[None]:
        """Tell Temporal every second that the turn lives: how long it takes, and how much has
        arrived.
        """
        self._beat_later(time.monotonic())
        try:
            yield
        finally:
            self._due.cancel()

    def _beat_later(self, started: float) -> None:
        # A timer, and not a task: most calls of a fast model end before it is due.
        loop = asyncio.get_running_loop()
        self._due = loop.call_later(HEARTBEAT_SECONDS, self._beat, started)

    def _beat(self, started: float) -> None:
        self._beat_later(started)
        seconds = round(time.monotonic() - started)
        told = {"turn": self._call.turn, "seconds": seconds, "bytes": self._captured.size}
        # For those who see nothing of this worker's log.
        why = self._held.why[:HELD_CHARS] if self._held is not None else ""
        activity.heartbeat(told | ({HELD: why} if why else {}))

    def _prepared(self) -> Step | _Ready:
        """The turn's step if there is one, else all that the call needs.

        In one go, for a thread: waking one costs more than most of what is done here.
        """
        self._call = call = masked_call(self._call)
        # A worker that died between the step and its return is followed by this: nobody is called
        # twice.
        if (done := self._archive.find_step(self._run, call.turn)) is not None:
            return done
        # What prompts cost is in a file.
        prices = prices_of(self._options.name, self._options.price)
        before = self._archive.layout(call.parent)
        layout = call.layout.apply(before, self._archive.reply_segment(call.parent))
        prefix = prefix_of(before, layout, self._archive.layout_tokens(call.parent))
        messages, tools = self._prompt(layout, call, Marks(prices.marks, prefix.segments))
        stored = (
            StoredPrefix.of(prefix, prices, call.moved) if self._prompt is turn_prompt else None
        )
        lent = Lent(str(call.key), messages)
        return _Ready(layout, prefix.tokens, messages, lent, tools, stored)

    async def _answer(self, ready: _Ready, under_way: UnderWay) -> Answer:
        layout, messages, tools = ready.layout, ready.messages, ready.tools
        try:
            try:
                asked = ask(self._in_time(), ready.lent, tools, self._captured)
                answer = await under_way.asking(asked)
            finally:
                tell(self._captured.headers)
        except asyncio.CancelledError:
            # What was sent is paid for.
            await _to_its_end(self._cut, layout)
            raise
        except BrokenOff:
            raise await _to_its_end(self._cut, layout) from None
        # litellm raises many types; each becomes one of ours.
        except Exception as error:  # noqa: BLE001
            if isinstance(self._captured.failure, ArchiveError):
                raise self._captured.failure from None
            failure = failure_of(error, self._captured)
            unseen = await self._capture_unseen(messages, tools)
            # The chain of causes may hold headers, and Temporal would keep it.
            raise await _to_its_end(self._fail, layout, failure, unseen) from None
        # Whoever listens may keep what it is told of, and change it later.
        if not is_heard():
            ready.lent.give_back()
        if await self._capture_unseen(messages, tools):
            self._captured.received(
                canonical_json(asdict(answer) | {"usage": None, "tool_calls": _plain(answer)})
            )
        return answer

    async def _check_room(self, ready: _Ready, answer: Answer) -> None:
        """See that a reply is one, and not what is left where a prompt fills the model's window.

        Raises:
            ApplicationError: ``WindowFull``, if it is not.
        """
        if left_no_room(answer, ready.tokens, self._call.accepted, self._options):
            failure = ApplicationError(NO_ROOM, type=FailureKind.WINDOW_FULL, non_retryable=True)
            raise await _to_its_end(self._fail, ready.layout, failure, False)

    async def _capture_unseen(self, messages: Messages, tools: Tools) -> bool:
        """Archive a request that none of our transports saw, as what it is: the request as handed
        to litellm.
        """
        if self._captured.attempt is not None:
            return False
        request = {**clean_model(self._call.model), "messages": list(messages), "tools": tools}
        await self._captured.sending(SentRequest(Capture.HANDED_OVER, canonical_json(request)))
        return True

    def _begin(self, request: SentRequest) -> str:
        """Archive an attempt, and return its key."""
        return self._archive.begin_attempt(
            NewAttempt(
                run=self._run,
                turn=self._call.turn,
                parent=self._call.parent,
                delta=self._call.layout,
                model=self._call.model,
                capture=request.capture,
                request=request.body,
                method=request.method,
                url=request.url,
                headers=dict(request.headers),
                temporal_attempt=self._captured.temporal_attempt,
                activity=self._activity_id,
                started_at=datetime.now(UTC).isoformat(),
                through=self._call.through,
            )
        )

    def _attempts_before(self) -> FailedAttempts:
        call = self._call
        return failed_attempts(
            self._archive,
            self._run,
            call.turn,
            self._activity_id,
            self._options,
            but=self._captured.attempt or "",
        )

    def _spent(
        self, failed: FailedAttempts, wait: float | None = None, *, asked: bool = False
    ) -> ApplicationError | None:
        """The error with which the call ends, if ``failed`` have used up what the job had left; it
        tells of the ``wait`` for another attempt, since the job may be granted more, and whether
        the provider has ``asked`` for it.
        """
        left, spent = self._call.left, failed.spent
        if left is None or not (
            spent.usage.total >= left.tokens > 0
            or spent.cost_usd >= left.usd > 0
            or spent.seconds >= left.seconds > 0
        ):
            return None
        return ApplicationError(
            failed.line(wait, asked=asked),
            self._call.booked + spent,
            type=BUDGET_SPENT,
            non_retryable=True,
            next_retry_delay=None if wait is None else timedelta(seconds=wait),
        )

    def _in_time(self) -> ModelOptions:
        """The options, with no more time for the whole call than the job has left to work."""
        if self._call.left is None:
            return self._options
        left = max(self._call.left.seconds - self._failed.spent.seconds, 1.0)
        return self._options.model_copy(update={"timeout": min(self._options.timeout, left)})

    def _fail(
        self, layout: Sequence[Segment], failure: ApplicationError, unseen: bool
    ) -> ApplicationError:
        """Archive what came back until the attempt failed, and what it used.

        The error to raise, which tells of all attempts.
        """
        captured, tried = self._captured, self._call.tried.attempts
        wait = (
            None
            if failure.non_retryable
            else wait_after(
                failure, captured.temporal_attempt + tried, self._failed.archived + 1 + tried
            )
        )
        # No transport saw a request, and trying again makes no sense: nobody was asked.
        refused = unseen and failure.non_retryable
        spent = (
            Failed(attempts=1)
            if refused
            else used_by(captured, layout, self._options, self._call.encoding)
        )
        # With the wait that follows: 'retry' bounds both together.
        spent = spent.model_copy(
            update={"seconds": round(time.monotonic() - self._began + (wait or 0.0), 3)}
        )
        self._archive_failure(failure, spent)
        failed = self._failed.more(spent, f"{failure.type}: {failure.message}")
        asked = failure.next_retry_delay is not None
        if (spent_all := self._spent(failed, wait, asked=asked)) is not None:
            return spent_all
        # A refusal that gives no reason would have the job forget, to ask with less.
        unclear = failure.type == FailureKind.BAD_REQUEST
        tokens = sum(segment.tokens for segment in layout)
        details = (HAS_ROOM,) if unclear and has_room(tokens, self._options) else ()
        return given_up(failure, failed, wait, self._call, *details)

    def _cut(self, layout: Sequence[Segment]) -> ApplicationError:
        """Archive what came back until the attempt was cut short, and what it used; the error that
        says so.
        """
        cut = ApplicationError(
            CUT,
            type=FailureKind.CUT,
            non_retryable=True,
            category=ApplicationErrorCategory.BENIGN,
        )
        if self._captured.attempt is not None:
            spent = used_by(self._captured, layout, self._options, self._call.encoding)
            # Where it cannot be written, the attempt counts as one over which its worker died.
            with suppress(ArchiveError):
                self._archive_failure(cut, spent)
        return cut

    def _archive_failure(self, failure: ApplicationError, spent: Failed) -> None:
        captured = self._captured
        # A stream that broke off may hold a secret in pieces, which no search in its bytes finds.
        held = held_in_pieces(captured.content, captured.secrets)
        self._archive.fail_attempt(
            NewFailure(
                attempt=captured.attempt or "",
                **_received(captured, withheld=held),
                error_type=failure.type or "",
                error_message=failure.message,
                spent=spent,
                failed_at=datetime.now(UTC).isoformat(),
            )
        )

    def _keep_followed(self) -> None:
        """Archive what came back of a request with which the call did not end: it goes on with
        another one.
        """
        held = held_in_pieces(self._captured.content, self._captured.secrets)
        self._archive.keep_exchange(
            NewExchange(
                attempt=self._captured.attempt or "",
                reason=ExchangeReason.FOLLOWED,
                **_received(self._captured, withheld=held),
                finished_at=datetime.now(UTC).isoformat(),
            )
        )

    def _keep_superseded(self, step: NewStep) -> None:
        """Archive a reply that lost the race for its turn's step: it was paid for."""
        self._archive.keep_exchange(NewExchange.like(step, reason=ExchangeReason.SUPERSEDED))

    async def _kept(self, ready: _Ready, answer: Answer) -> Step:
        """Archive the step.

        A reply is paid for: while the archive cannot be written, it is held, and tried again.
        """
        self._held = Held(f"{self._call.key} turn {self._call.turn}: the reply", HELD_SECONDS)
        return await self._held.archived(lambda: _to_its_end(self._finish, ready, answer))

    def _finish(self, ready: _Ready, answer: Answer) -> Step:
        """Archive the step, and read it back: if another attempt archived the turn's step first,
        that one counts, and this reply is archived beside it.
        """
        captured, call = self._captured, self._call
        clean = without_secrets(answer, captured.secrets)
        # A stream cuts a secret into pieces that no search finds, so such a response is not kept at
        # all.
        received = _received(captured, withheld=clean != answer)
        answer = clean
        tokens = reply_tokens(answer, call.encoding)
        ours = counted_usage(ready.tokens, tokens)
        usage = filled(reported_by(captured, answer.usage) or ours, ours)
        if usage.completion < tokens and is_told_early(captured.content):
            usage = at_least(usage, tokens)
        # Read once more: an attempt that was in flight at the beginning may have failed since.
        failed = self._attempts_before() if captured.temporal_attempt > 1 else FailedAttempts()
        new = NewStep.like(
            call,
            run=self._run,
            attempt=captured.attempt or "",
            reply=StoredReply(
                text=answer.text,
                tool_calls=answer.tool_calls,
                thinking=answer.thinking,
                finish_reason=answer.finish_reason,
                response_id=answer.response_id,
                refusal=answer.refusal,
                tokens=tokens,
            ),
            **received,
            usage=usage,
            cost_usd=self._cost(answer, usage),
            failed_attempts=call.booked + failed.spent,
            prefix=ready.prefix,
            finished_at=datetime.now(UTC).isoformat(),
        )
        # Read back, since the turn may have had its step already: the first that was written
        # counts.
        step = self._archive.step(self._archive.finish_step(new))
        if step.attempt.key != new.attempt:
            self._keep_superseded(new)
        return step

    def _cost(self, answer: Answer, usage: Usage) -> float:
        """The price of the call in US dollars; where the provider reported no usage, that of an
        estimate.
        """
        # litellm's usage has more in it that has prices; but it may not be what is booked.
        known = usage.reported and usage_of(answer.usage) == usage
        if not known or self._options.price is not None:
            return cost_of(self._options, usage)
        return price(self._options, answer.usage, tier_in(self._captured.content))


async def _to_its_end(work: Callable[..., T], *arguments: Any) -> T:
    """What ``work`` comes to, in a thread: a cancel waits until it is done, since whoever asks what
    the call has spent reads what it archives.
    """
    # Not ``to_thread``, which would need a task of its own here.
    work_here = partial(copy_context().run, work, *arguments)
    done = asyncio.get_running_loop().run_in_executor(None, work_here)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            # Cancelled twice, as by a worker that is stopped, it waits all the same.
            with suppress(asyncio.CancelledError):
                await asyncio.wait({done})
        raise


def _received(captured: CapturedCall, *, withheld: bool) -> dict[str, Any]:
    """What came back, as the archive has it: the bytes as received, but where a secret stands in
    them; of the headers those that are kept.
    """
    content, body = captured.content, captured.body
    clean = captured.secrets.mask_bytes(content)
    # In what is compressed nothing can be masked.
    packed = content != body
    safe = WITHHELD if withheld or (packed and clean != content) else body if packed else clean
    return {
        "response": safe,
        # Times belong to the bytes that arrived, and not to what was put in their place.
        "chunks": captured.chunks if safe == body else (),
        "status_code": captured.status,
        "headers": {
            name: captured.secrets.mask(value)
            for name, value in allowed_headers(captured.headers).items()
        },
    }


def _plain(answer: Answer) -> list[dict[str, Any]]:
    return [call.model_dump() for call in answer.tool_calls]
