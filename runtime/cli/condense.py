"""``holdfast condense``: a user's request for a condensation."""

from __future__ import annotations

from runtime.cli.options import Address, Job, Json, Namespace, Profile, Store
from runtime.cli.output import json_document, say


def command(
    job: Job,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Ask a running job to forget older turns behind a summary.

    Its condenser does so before the next model call; 'holdfast log' tells what was forgotten.
    """
    import asyncio

    from runtime.cli.reach import with_job
    from runtime.connection import Target

    target = Target(address=address, namespace=namespace, profile=profile)
    key = asyncio.run(with_job(job, target, store, lambda control, key: control.condense(key)))
    if json:
        json_document({"job": str(key), "asked": True})
    else:
        say(f"{key}: the request is recorded; the job condenses before its next model call")
