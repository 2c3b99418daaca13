"""``holdfast condense``: a user's request for a condensation."""

from __future__ import annotations

from runtime.cli.options import ANY_SERVER, Job, Json, Store
from runtime.cli.output import json_document, say
from runtime.server.target import Target


def command(
    job: Job,
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """Ask a running job to forget older turns behind a summary.

    Its condenser does so before the next model call; 'holdfast log' tells what was forgotten.
    """
    import asyncio

    from runtime.cli.reach import with_job
    from runtime.client.wishes import condense

    key = asyncio.run(with_job(job, target, store, condense))
    if json:
        json_document({"job": str(key), "asked": True})
    else:
        say(f"{key}: the request is recorded; the job condenses before its next model call")
