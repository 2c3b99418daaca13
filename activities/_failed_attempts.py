"""What attempts at a model call used that came to nothing, from what the archive has of them.

An attempt that failed has an object that says what it used. One over which its worker died has
none: its request was sent, or was about to be, so it counts as an estimate. Attempts are told apart
by the activity that made them: one turn may have several, since a prompt that a provider found too
long is followed by another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from temporalio.exceptions import ApplicationError

from activities._captured import CapturedCall
from activities._counted import at_least, counted_usage, filled, reply_tokens
from activities._cut_streams import is_cut
from activities._failures import FailureKind
from activities._litellm import cost_of
from activities._options import ModelOptions
from activities._reported_usage import usage_in
from activities.contracts import TurnCall
from runtime.archive.forms import Attempt, Exchange, ExchangeReason
from runtime.archive.job import JobArchive
from runtime.base.durations import format_duration
from runtime.base.plurals import counted
from runtime.base.tokens import encoding
from runtime.base.values import Failed
from runtime.projection.segments import Segment

_MAYBE_WORKED = frozenset({408, 502, 504, 524})
"""Statuses by which a gateway says that it waited no longer: the model behind it may have worked,
and its work is paid for.
"""

KEY_TRIES = 3
"""Attempts at a call whose key the provider refuses: another worker may have a newer one."""

_FIRST_WAIT, _SHORT_WAIT, _LONG_WAIT = 1.0, 60.0, 300.0
"""Seconds: Temporal's waits between attempts double from the first up to the second, ours beyond
that up to the third.
"""


@dataclass(frozen=True)
class FailedAttempts:
    """The failed attempts of one activity.

    ``archived`` is how many of them the archive has a failure of, ``last`` the last one's error.
    """

    spent: Failed = field(default_factory=Failed)
    archived: int = 0
    last: str = ""

    def more(self, spent: Failed, last: str) -> FailedAttempts:
        """With one more that has failed, with an error in words."""
        return FailedAttempts(self.spent + spent, self.archived + 1, last)

    def line(self, wait: float | None = None, *, asked: bool = False) -> str:
        """``7 failed attempts used 1,050,000 tokens and $1.0500 within 2m; the last: ServerError:
        Oops (HTTP 500)``. The ``wait`` that would follow, and is in what they used, is told apart,
        and whether the provider has ``asked`` for it.
        """
        spent = self.spent
        about = "" if spent.usage.reported else "about "
        used = f"used {about}{counted(spent.usage.total, 'token')} and ${spent.cost_usd:.4f}"
        seconds = max(spent.seconds - (wait or 0.0), 0.0)
        took = f" within {format_duration(round(seconds))}" if seconds >= 1 else ""
        after = format_duration(round(wait)) if wait is not None and wait >= 1 else ""
        why = "the provider asks to wait" if asked else "another was to follow after"
        more = f", and {why} {after}" if after else ""
        last = f"; the last: {self.last}" if self.last else ""
        return f"{counted(spent.attempts, 'failed attempt')} {used}{took}{more}{last}"


def failed_attempts(
    archive: JobArchive, run: str, turn: int, activity: str, options: ModelOptions, *, but: str = ""
) -> FailedAttempts:
    """Those of ``activity`` at a turn of ``run``, without the attempt of the key ``but``.

    Raises:
        ArchiveError: if they cannot be read.
    """
    failed = FailedAttempts()
    for attempt in archive.attempts_of(run, turn):
        # Not those of another prompt of the same turn, which were booked when that failed.
        if attempt.activity != activity or attempt.key == but:
            continue
        failure, exchange = archive.failure(attempt.key), archive.exchange(attempt.key)
        if exchange is not None:
            failed = replace(failed, spent=failed.spent + _exchanged(exchange))
        elif failure is None:
            failed = replace(failed, spent=failed.spent + _in_flight(archive, attempt, options))
        elif failure.error_type == FailureKind.CUT:
            # Not the provider's doing: 'retry' does not count it.
            failed = replace(failed, spent=failed.spent + failure.spent)
        else:
            failed = failed.more(failure.spent, f"{failure.error_type}: {failure.error_message}")
    return failed


def spent_on_call(
    archive: JobArchive, run: str, turn: int, activity: str, options: ModelOptions
) -> Failed:
    """All that ``activity`` spent on a call at a turn of ``run`` for which nobody waits any more:
    its failed attempts, and a reply that came too late.

    Raises:
        ArchiveError: if the attempts cannot be read.
    """
    step = archive.find_step(run, turn)
    if step is None or step.run != run:
        return failed_attempts(archive, run, turn, activity, options).spent
    late, by = Failed(attempts=1, usage=step.usage, cost_usd=step.cost_usd), step.attempt.key
    own = any(a.key == by and a.activity == activity for a in archive.attempts_of(run, turn))
    failed = failed_attempts(archive, run, turn, activity, options, but=by).spent
    return failed + late if own else failed


def _exchanged(exchange: Exchange) -> Failed:
    """A reply that lost the race for its turn; a request that the call went on from cost nothing by
    itself.
    """
    if exchange.reason is ExchangeReason.FOLLOWED:
        return Failed()
    return Failed(attempts=1, usage=exchange.usage, cost_usd=exchange.cost_usd)


def _in_flight(archive: JobArchive, attempt: Attempt, options: ModelOptions) -> Failed:
    """An attempt of which nothing is known but its request."""
    return estimate(
        sum(segment.tokens for segment in archive.attempt_layout(attempt.key)), 0, options
    )


def used_by(
    captured: CapturedCall, layout: Sequence[Segment], options: ModelOptions, encoding_name: str
) -> Failed:
    """What an attempt that failed used: as its response states, else nothing if the provider
    refused it, else an estimate.
    """
    # Nothing was sent, so nothing was used.
    if not captured.reached:
        return Failed(attempts=1)
    # A response that broke off, or is an error, may state it all the same.
    stated = usage_in(captured.content)
    status = captured.status
    if status is not None and status >= 300 and status not in _MAYBE_WORKED:
        if stated is None:
            return Failed(attempts=1)
        return Failed(attempts=1, usage=stated, cost_usd=cost_of(options, stated))
    said = encoding(encoding_name).count(captured.unheard)
    if captured.heard is not None:
        said += reply_tokens(captured.heard.answer(), encoding_name)
    ours = counted_usage(sum(segment.tokens for segment in layout), said)
    usage = filled(stated or ours, ours)
    # What is stated where a stream begins says nothing of what came after it.
    if is_cut(captured):
        usage = at_least(usage, said)
    return Failed(attempts=1, usage=usage, cost_usd=cost_of(options, usage))


def wait_after(failure: ApplicationError, temporal_attempt: int, number: int) -> float:
    """Seconds until the next attempt, after the ``number``-th that failed.

    Both numbers count those too that were made with earlier slices of the batch's budget.

    A provider that has been failing for minutes is asked ever more seldom; a worker that dies often
    waits no longer for that.
    """
    if failure.next_retry_delay is not None:
        return failure.next_retry_delay.total_seconds()
    # The exponent is bounded too: two to the power of some thousand attempts is no float any more.
    of_ours = min(_FIRST_WAIT * 2.0 ** min(number - 1, 20), _LONG_WAIT)
    of_temporals = min(_FIRST_WAIT * 2.0 ** min(temporal_attempt - 1, 20), _SHORT_WAIT)
    # Temporal's own wait doubles per attempt, also after a worker's death; ours counts failures
    # alone.
    return max(of_ours, of_temporals) if of_ours > _SHORT_WAIT else of_temporals


def given_up(
    failure: ApplicationError,
    failed: FailedAttempts,
    wait: float | None,
    call: TurnCall,
    *details: str,
) -> ApplicationError:
    """``failure`` as it is raised: with all that was spent and further ``details``, and without
    another attempt if there were enough of them, those ``call.tried`` before included.
    """
    words, retry = failure.message, call.retry
    number = call.tried.attempts + failed.archived
    seconds = call.tried.seconds + failed.spent.seconds
    refused = failure.type == FailureKind.AUTHENTICATION
    if wait is not None and number >= retry.attempts:
        words = f"{counted(number, 'attempt')} failed, as many as 'retry' allows; the last: {words}"
    elif wait is not None and refused and number >= KEY_TRIES:
        words = (
            f"{counted(number, 'attempt')} failed, and with a key that is refused no more than"
            f" {KEY_TRIES} are made; the last: {words}"
        )
    elif wait is not None and seconds > retry.time:
        so_far = format_duration(max(round(seconds - wait), 0))
        words = (
            f"{counted(number, 'attempt')} failed in {so_far}, and another after"
            f" {format_duration(round(wait))} would be later than 'retry' allows"
            f" ({format_duration(retry.time)}); the last: {words}"
        )
    over = failure.non_retryable or words != failure.message
    return ApplicationError(
        words,
        call.booked + failed.spent,
        *details,
        type=failure.type,
        non_retryable=over,
        next_retry_delay=(
            failure.next_retry_delay
            # Temporal's own waits begin again with each activity.
            if over or wait is None or (wait <= _SHORT_WAIT and call.tried.empty)
            else timedelta(seconds=wait)
        ),
    )


def estimate(prompt: int, completion: int, options: ModelOptions) -> Failed:
    """A failed attempt whose request was sent, and for which nobody said what it used."""
    usage = counted_usage(prompt, completion)
    return Failed(attempts=1, usage=usage, cost_usd=cost_of(options, usage))
