"""The limits of models and tools, as the Temporal server keeps them: set, shown and changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from temporalio.client import Client

from runtime.base.spec.limits import Routes, limited_by
from runtime.base.spec.models import Limit, Limits
from runtime.base.workflow_ids import OPEN_BATCHES
from runtime.server.rates import Account, account_of, keep_rate, queues_of

WRITTEN_SECONDS = 1.0
"""By then a worker that steers a queue has written what it made of what it had read of it."""


def routes_of(
    limits: Limits,
    priority: int | None,
    archive: str,
    *,
    queues: bool = False,
    roles: bool = False,
) -> Routes | None:
    """By which queues the limited calls of a batch go; None where nothing is limited, no tool has
    one of the ``queues`` by name, and workers have no ``roles``.
    """
    if not limits.models and not limits.tools and not queues and not roles:
        return None
    models, tools = tuple(sorted(limits.models)), tuple(sorted(limits.tools))
    return Routes(archive=archive, models=models, tools=tools, priority=priority, roles=roles)


async def set_limits(client: Client, routes: Routes, limits: Limits) -> None:
    """Have the server keep what the jobs file says, from before the first call on."""
    by_name = {**limits.models, **limits.tools}
    await asyncio.gather(
        *(set_limit(client, queue, by_name[limited_by(queue)]) for queue in routes.queues)
    )


async def set_limit(client: Client, queue: str, limit: Limit) -> None:
    """Have the server keep a limit from now on; what was learned of the queue's calls stays."""
    account, _ = await account_of(client, queue)
    before, is_new = account.limit, account == Account()
    # Not where somebody has set another one meanwhile: that was later.
    while account.limit == before != limit:
        changed = account.model_copy(update={"limit": limit})
        await keep_rate(client, queue, changed, time.time())
        if is_new:
            return
        # The server takes whatever comes last, also of a worker that read the limit before.
        await asyncio.sleep(WRITTEN_SECONDS)
        account, _ = await account_of(client, queue)


@dataclass(frozen=True)
class Limited:
    """A queue, its state, and the rate that the server keeps now, in calls a second."""

    queue: str
    account: Account
    rate: float | None


async def limited(client: Client, queues: Iterable[str]) -> list[Limited]:
    """How queues stand."""
    names = sorted(set(queues))
    states = await asyncio.gather(*(account_of(client, queue) for queue in names))
    return [Limited(name, *state) for name, state in zip(names, states, strict=True)]


async def limited_queues_of(client: Client) -> list[str]:
    """The queues of the batches that run, as far as they are signed with this state directory's
    key.
    """
    return sorted(await queues_of(client, OPEN_BATCHES))
