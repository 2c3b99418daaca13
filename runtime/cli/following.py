"""``replay`` and ``fork`` from the start of a run to the exit code: a worker in process, and what
came of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from activities.record import AfterRecord, ReplayMode, ReplayOrder
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.archive.texts import Explained
from runtime.base.plurals import counted
from runtime.base.values import JobKey
from runtime.cli.differences import explained_in, lines_of
from runtime.cli.exit_codes import DIFFERENCE, INTERRUPTED, SOME_FAILED, exit_code, worst
from runtime.cli.interrupts import Interrupts
from runtime.cli.output import json_document, note, say
from runtime.cli.reporters import PlainReporter, outcome_line, silence_line
from runtime.client.control import Control
from runtime.client.moves import moves_of
from runtime.client.resets import Reset, outcome_of_reset
from runtime.server.connection import Connection, connect
from runtime.server.target import Target
from runtime.worker.settings import check_settings
from runtime.worker.worker import running_worker
from workflows.messages import JobOutcome

_SHOWN = 20

_AS_IT_BEGAN = (
    "interrupted as it began: 'holdfast ls' shows whether there is a new run, which goes on when a"
    " worker has it"
)


@dataclass(frozen=True)
class Started:
    """A run that a command made, and what was ordered of it."""

    made: Reset
    order: ReplayOrder


@dataclass(frozen=True)
class Result:
    """What came of one run.

    ``statements`` were executed from the record; ``whole``: that is all of it.
    """

    started: Started
    outcome: JobOutcome
    divergences: list[Explained]
    statements: int
    whole: bool

    @property
    def code(self) -> int:
        """The exit code."""
        if self.divergences:
            return DIFFERENCE
        order = self.started.order
        if order.mode is ReplayMode.REEXECUTE and order.then is AfterRecord.STOP:
            # Nothing differs, but what was not executed is not proven.
            return 0 if self.whole else exit_code([self.outcome.status]) or SOME_FAILED
        return exit_code([self.outcome.status])


async def followed(
    target: Target,
    store: ObjectStore,
    begin: Callable[[Connection], Awaitable[list[Started]]],
    *,
    detach: bool,
    json: bool,
    further: str,
) -> int:
    """Begin, work until all that was begun has ended, and report; returns the exit code. Who
    interrupts is told how it goes ``further``.

    Raises:
        InputError: if a worker would refuse a variable of the environment: nothing is begun.
        ServerError: if another reset ended one of the runs.
    """
    if not detach:
        check_settings()
    goes_on = f"the job goes on when a worker has it ({further})"
    with Interrupts(goes_on) as interrupts:
        begins = False
        try:
            async with connect(target) as connection:
                interrupts.abandons_server(connection.embedded)
                begins = True
                started = await begin(connection)
                for one in started:
                    if not json:
                        say(_begun(one))
                if detach:
                    if json:
                        json_document([_about(one) for one in started])
                    return 0
                # From here on the job runs: an interrupt lets its calls in flight end.
                interrupts.patient = True
                shown = [] if json else [one.made.key for one in started]
                async with _shown(Control(connection.client, store), shown):
                    results = await _worked(connection, store, started, interrupts)
        except asyncio.CancelledError:
            # Cancelled by whoever awaits this, and not by the user.
            if not interrupts.asked.is_set():
                raise
            note(_AS_IT_BEGAN if begins else "interrupted before anything was started")
            return INTERRUPTED
    if results is None:
        note(f"interrupted: {goes_on}")
        return INTERRUPTED
    if json:
        json_document([_document(result) for result in results])
    else:
        for result in results:
            _report(result)
    return worst(result.code for result in results)


@asynccontextmanager
async def _shown(control: Control, keys: list[JobKey]) -> AsyncIterator[None]:
    """Within the block the turns of these jobs are told as they come, as ``run`` tells them."""

    async def show() -> None:
        reporter = PlainReporter()
        async for turn in moves_of(control, keys):
            reporter.turn(turn)

    showing = asyncio.create_task(show())
    try:
        yield
    finally:
        showing.cancel()
        # What ended it ends the command as well, which asks the same server.
        await asyncio.gather(showing, return_exceptions=True)


async def _worked(
    connection: Connection, store: ObjectStore, started: list[Started], interrupts: Interrupts
) -> list[Result] | None:
    """Have a worker of each queue until all runs have ended; None if the user interrupts."""
    told = False

    def silent(reason: str) -> None:
        nonlocal told
        # Said once, however often it is asked again, and for how many runs.
        if not told:
            note(silence_line(reason))
        told = True

    async def one(each: Started) -> Result:
        outcome = await outcome_of_reset(connection.client, each.made, silent)
        return await asyncio.to_thread(_result, store, each, outcome)

    async with AsyncExitStack() as workers:
        for queue in sorted({each.made.queue for each in started}):
            await workers.enter_async_context(
                running_worker(connection.client, store, task_queue=queue)
            )

        async def every() -> list[Result]:
            return list(await asyncio.gather(*map(one, started)))

        working, asking = asyncio.create_task(every()), asyncio.create_task(interrupts.asked.wait())
        try:
            await asyncio.wait({working, asking}, return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            working.cancel()
            asking.cancel()


def _result(store: ObjectStore, each: Started, outcome: JobOutcome) -> Result:
    order = each.order
    archive = JobArchive.of(store, outcome.key)
    follows = order.mode is ReplayMode.REEXECUTE and order.source is not None
    if not follows or order.source is None:
        return Result(each, outcome, [], 0, whole=False)
    recorded = JobArchive.of(store, order.source)
    last = max((step.turn for step in recorded.steps(order.source.run)), default=0)
    divergences = explained_in(archive, outcome.run)
    return Result(
        each,
        outcome,
        divergences,
        max(min(outcome.turns, last) - order.start + 1, 0),
        whole=outcome.turns >= last,
    )


def _begun(one: Started) -> str:
    order = one.order
    how = f"{order.mode}{', frozen' if order.frozen else ''}"
    there = "is there already, " if one.made.existed else ""
    return f"{one.made.key} from statement {order.start} ({how}): {there}run {one.made.run}"


def _report(result: Result) -> None:
    say(outcome_line(result.outcome))
    if result.started.order.mode is not ReplayMode.REEXECUTE:
        return
    if not result.divergences:
        say(f"{result.outcome.key}: no divergence in {counted(result.statements, 'statement')}")
        return
    turns = {one.divergence.turn for one in result.divergences}
    say(f"{result.outcome.key}: {len(turns)} of {counted(result.statements, 'statement')} diverge")
    for one in result.divergences[:_SHOWN]:
        for line in lines_of(one):
            say(f"  {line}")
    if len(result.divergences) > _SHOWN:
        say(
            f"  and {len(result.divergences) - _SHOWN} more:"
            f" 'holdfast divergences {result.outcome.key}' lists them all"
        )


def _about(one: Started) -> dict[str, Any]:
    return {
        "job": str(one.made.key),
        "run": one.made.run,
        "from": one.order.start,
        "mode": one.order.mode,
    }


def _document(result: Result) -> dict[str, Any]:
    outcome = result.outcome
    return {
        **_about(result.started),
        "last_run": outcome.run,
        "status": outcome.status,
        "reason": outcome.reason,
        "turns": outcome.turns,
        "reexecuted": result.statements,
        "divergences": [one.document() for one in result.divergences],
    }
