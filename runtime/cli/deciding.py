"""Answering a job's question, for ``approve`` and ``reject``."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from runtime.base.errors import InputError, NotFound
from runtime.cli.caller import caller
from runtime.cli.job_turn import parse_job_call
from runtime.cli.options import ANY_SERVER
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.base.redaction.masked_edits import Place
    from runtime.base.values import JobKey
    from runtime.client.control import Control


def decide(
    job: str,
    target: Target = ANY_SERVER,
    store: str | None = None,
    *,
    approved: bool,
    reason: str = "",
    edit: bool = False,
) -> dict[str, Any]:
    """Answer the question that a job waits with; what was told to it, and of which call."""
    from runtime.cli.reach import with_job
    from runtime.client import wishes
    from runtime.client.questions import open_question

    told: dict[str, Any] = {}
    wanted, call = parse_job_call(job)

    async def act(control: Control, key: JobKey) -> None:
        question = await open_question(control, key)
        waiting = question.waiting
        # Since it was listed, that call may have been answered, and another have come.
        if wanted.turn not in {None, waiting.turn} or call not in {None, waiting.effect}:
            number = "" if call is None else f".{call}"
            raise NotFound(
                f"job {key} waits with call {waiting.turn}.{waiting.effect}, and not with one of"
                f" {wanted.turn}{number} ('holdfast approvals' lists it)"
            )
        # In a thread: an editor is open for as long as its user likes.
        edited = await asyncio.to_thread(_edited, waiting.asked) if edit else None
        kept, arguments = edited or ((), None)
        await wishes.decide(
            control,
            question,
            approved=approved,
            by=caller(),
            reason=reason,
            arguments=arguments,
            kept=kept,
        )
        told.update(
            turn=waiting.turn,
            call=waiting.effect,
            tool=waiting.asked["tool"],
            edited=arguments is not None,
        )

    key = asyncio.run(with_job(wanted.job, target, store, act))
    return {"job": str(key), "approved": approved, **told}


def _edited(asked: dict[str, Any]) -> tuple[tuple[Place, ...], dict[str, Any]] | None:
    """The arguments as an editor leaves them, without those that hold a mask and were left as they
    are, and the places of these; None if all were.

    Raises:
        InputError: if they are no arguments any more, or have a mask in what was changed; and if
            the editor fails.
    """
    import click

    from runtime.base.redaction.masked_edits import left_masked
    from runtime.base.visible import escaped
    from runtime.context.outcomes import Refused
    from runtime.interpreter import hands

    before = {"args": asked["args"], "kwargs": asked["kwargs"]}
    try:
        # Its own line feeds are those between values: in texts there are none.
        lines = json.dumps(before, ensure_ascii=False, indent=2).split("\n")
        text = click.edit("\n".join(map(escaped, lines)), extension=".json")
    except click.ClickException as error:
        raise InputError(f"nothing is decided: the editor: {error.message}") from error
    if text is None:
        return None
    try:
        after = json.loads(text)
    except ValueError as error:
        raise InputError(f"the arguments are no JSON: {error}") from error
    shaped = isinstance(after, dict) and set(after) == {"args", "kwargs"}
    if not (shaped and isinstance(after["args"], list) and isinstance(after["kwargs"], dict)):
        raise InputError('expected {"args": [...], "kwargs": {...}}')
    if after == before:
        return None
    if asked["tool"] == "sh":
        try:
            # Checked as the job will check it, while the user can still put it right.
            hands.asked("sh", tuple(after["args"]), after["kwargs"])
        except Refused as error:
            raise InputError(str(error)) from error
    return left_masked(before, after)
