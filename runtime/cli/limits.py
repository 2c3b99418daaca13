"""``holdfast limits``: how fast models and tools may be called, shown and changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import InputError, NotFound
from runtime.cli.options import ANY_SERVER, Json
from runtime.cli.output import json_document, say
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.client.limits import Limited


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A pattern of models or a tool, as the jobs file has it; all if left out.",
            show_default=False,
        ),
    ] = None,
    target: Target = ANY_SERVER,
    requests_per_minute: Annotated[
        float | None,
        typer.Option("--requests-per-minute", help="Calls a minute from now on, 0.01 at least."),
    ] = None,
    tokens_per_minute: Annotated[
        int | None,
        typer.Option("--tokens-per-minute", help="Tokens a minute from now on."),
    ] = None,
    concurrent: Annotated[
        int | None,
        typer.Option(
            "--concurrent",
            help="Calls at a time of each worker process from now on, 256 at most.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show or change how fast models are called.

    It lists the limits of the batches that run, and the rates that Temporal keeps now.
    A change holds for all batches and workers within seconds, until a jobs file that says otherwise
    is run.
    """
    import asyncio

    asked = {
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "concurrent": concurrent,
    }
    changes = {key: value for key, value in asked.items() if value is not None}
    _check(changes)
    if changes and name is None:
        raise InputError("name what is to be limited: 'holdfast limits' without options lists it")
    rows = [_row(one) for one in asyncio.run(_limits(target, name, changes))]
    if json:
        json_document(rows)
    else:
        _say_all(rows)


def _check(changes: dict[str, Any]) -> None:
    """Check that a jobs file may have these limits."""
    from pydantic import ValidationError

    from runtime.jobsfile.messages import describe
    from runtime.jobsfile.written.limits import WrittenLimit

    try:
        if changes:
            WrittenLimit.model_validate(changes)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        option = str(detail["loc"][0]).replace("_", "-")
        raise InputError(f"--{option}: {describe(detail, WrittenLimit)}") from None


def _say_all(rows: list[dict[str, Any]]) -> None:
    if not rows:
        say("no batch that runs has limits")
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        say(f"{row['name']:<{width}}  {_words(row)}")


async def _limits(target: Target, name: str | None, changes: dict[str, Any]) -> list[Limited]:
    from runtime.base.spec.limits import is_tools, limited_by
    from runtime.client.limits import limited, limited_queues_of, set_limit
    from runtime.server.connection import connect_if_up

    async with connect_if_up(target) as connection:
        queues = [] if connection is None else await limited_queues_of(connection.client)
        chosen = [queue for queue in queues if name is None or limited_by(queue) == name]
        if name is not None and not chosen:
            known = ", ".join(sorted(map(limited_by, queues))) or "none"
            raise NotFound(f"no batch that runs has a limit of {name!r} (those that are: {known})")
        if connection is None:
            return []
        for one in await limited(connection.client, chosen) if changes else []:
            if "tokens_per_minute" in changes and is_tools(one.queue):
                raise InputError(f"{name} is a tool, and a tool has no tokens")
            limit = one.account.limit.model_copy(update=changes)
            await set_limit(connection.client, one.queue, limit)
        return await limited(connection.client, chosen)


def _row(one: Limited) -> dict[str, Any]:
    import time
    from datetime import UTC, datetime

    from runtime.base.spec.limits import is_tools, limited_by

    account, now = one.account, time.time()
    until = account.slowed_until(now)
    return {
        "name": limited_by(one.queue),
        "kind": "tool" if is_tools(one.queue) else "model",
        "queue": one.queue,
        **account.limit.model_dump(),
        "tokens_per_call": account.tokens or None,
        "rate_per_minute": None if one.rate is None else round(one.rate * 60, 3),
        "slowed_until": None if until is None else datetime.fromtimestamp(until, UTC).isoformat(),
    }


def _words(row: dict[str, Any]) -> str:
    parts = [
        f"{_number(row[key])} {words}"
        for key, words in (
            ("requests_per_minute", "calls a minute"),
            ("tokens_per_minute", "tokens a minute"),
            ("concurrent", "at a time"),
        )
        if row[key] is not None
    ]
    rate = row["rate_per_minute"]
    now = "not bounded" if rate is None else f"{_number(rate)} a minute"
    used = (
        "" if row["tokens_per_call"] is None else f", {row['tokens_per_call']:,.0f} tokens a call"
    )
    slowed = "" if row["slowed_until"] is None else f"; slowed until {row['slowed_until']}"
    return f"{', '.join(parts)}; now {now}{used}{slowed}"


def _number(number: float) -> str:
    """``2,000,000``, ``0.5``: in all its digits."""
    return f"{number:,.15g}"
