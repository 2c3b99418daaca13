"""The rate of a task queue, as the Temporal server keeps it, and the state by which it is steered.

The state stands in the server too, in the words that say why the queue has its rate: whoever works
on the queue, or asks, sees the same.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, ConfigDict, ValidationError
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import RateLimit, TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    UpdateTaskQueueConfigRequest,
)
from temporalio.client import Client

from runtime.base.spec.limits import QUEUES
from runtime.base.spec.models import Limit
from runtime.base.workflow_ids import BATCH_WORKFLOW, open_on
from runtime.server.authentic import NotSigned

OLDER_LOOKS = 15
"""In every so many looks one goes through all open jobs of a batch, of which a large one has many.
"""

FIRST_TOKENS = 10_000.0
"""What a call is taken to use before one has told."""

# A header may tell of hours; after this the provider is asked again.
LONGEST_SECONDS = 600.0


class Account(BaseModel):
    """A queue's limit, and what is known of its calls.

    ``tokens`` is what a call uses on average, ``share`` the part of the limit that is used after
    refusals, ``slow`` the rate that holds until the time ``until`` (seconds since 1970, by the
    clock of whoever wrote it), by which the provider asked to be left alone.
    """

    model_config = ConfigDict(frozen=True)

    limit: Limit = Limit()
    tokens: float = 0.0
    share: float = 1.0
    slow: float = 0.0
    until: float = 0.0

    def rate(self, now: float) -> float | None:
        """Calls a second; None: not bounded."""
        rates = []
        if self.limit.requests_per_minute is not None:
            rates.append(self.limit.requests_per_minute / 60)
        if self.limit.tokens_per_minute is not None:
            rates.append(self.limit.tokens_per_minute / 60 / (self.tokens or FIRST_TOKENS))
        rate = min(rates) * self.share if rates else None
        if self.slowed_until(now) is not None:
            return self.slow if rate is None else min(rate, self.slow)
        return rate

    def slowed_until(self, now: float) -> float | None:
        """When the provider is asked again that asked to be left alone; None if it is not left
        alone.
        """
        # A time that lies further ahead is of a host whose clock is: nobody waits for that.
        return self.until if now < self.until <= now + LONGEST_SECONDS else None


async def account_of(client: Client, queue: str) -> tuple[Account, float | None]:
    """A queue's state, and the rate that the server keeps; none of either if nobody set it."""
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            report_config=True,
        ),
        retry=True,
    )
    kept = described.config.queue_rate_limit
    rate = kept.rate_limit.requests_per_second if kept.HasField("rate_limit") else None
    try:
        return Account.model_validate_json(kept.metadata.reason), rate
    # Somebody else set the rate, and gave another reason than ours.
    except ValidationError:
        return Account(), rate


async def keep_rate(client: Client, queue: str, account: Account, now: float) -> None:
    """Have the server keep the rate of ``account`` from now on."""
    rate = account.rate(now)
    update = UpdateTaskQueueConfigRequest.RateLimitUpdate(
        rate_limit=None if rate is None else RateLimit(requests_per_second=rate),
        reason=account.model_dump_json(exclude_defaults=True),
    )
    await client.workflow_service.update_task_queue_config(
        UpdateTaskQueueConfigRequest(
            namespace=client.namespace,
            identity="holdfast",
            task_queue=queue,
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            update_queue_rate_limit=update,
        ),
        retry=True,
    )


async def queues_of(client: Client, query: str) -> set[str]:
    """The queues by which limited calls go of the workflows that the query finds, as far as they
    are signed with this state directory's key.
    """
    return (await _called_by(client, query))[0]


@dataclass
class CalledQueues:
    """The queues by which limited calls go of the workflows that are open on a task queue.

    One look in ``OLDER_LOOKS`` asks for all, of which a batch may have hundreds; the others for
    batches and for what began since. A job keeps those queues with which it began.
    """

    client: Client
    task_queue: str
    _looks: int = 0
    _newest: datetime | None = None
    """When the workflow began that was the newest when all were looked at."""

    def question(self) -> str:
        """What the next look asks for."""
        every = open_on(self.task_queue)
        if self._is_whole():
            return every
        since = f"StartTime > '{self._newest:%Y-%m-%dT%H:%M:%S.%fZ}'"
        return f"{every} AND (WorkflowType = '{BATCH_WORKFLOW}' OR {since})"

    async def look(self) -> set[str]:
        """Those that were found now.

        Raises:
            RPCError: if the server does not answer; the next look asks the same.
        """
        queues, newest = await _called_by(self.client, self.question())
        if self._is_whole():
            # By the server's clock, as what is compared with it.
            self._newest = newest
        self._looks += 1
        return queues

    def _is_whole(self) -> bool:
        return self._newest is None or self._looks % OLDER_LOOKS == 0


async def _called_by(client: Client, query: str) -> tuple[set[str], datetime | None]:
    """``queues_of``, and when the workflow began that began last."""
    queues: set[str] = set()
    newest: datetime | None = None
    async for execution in client.list_workflows(query):
        newest = max(execution.start_time, newest or execution.start_time)
        # Each memo is checked, which takes its time: most have no word of queues.
        if QUEUES in execution.raw_info.memo.fields:
            with suppress(NotSigned):
                queues.update(map(str, (await execution.memo())[QUEUES]))
    return queues, newest
