"""``holdfast archive release``: end a job's legal hold."""

from __future__ import annotations

from runtime.base.errors import InputError
from runtime.cli.archive.deleting import By, Reason
from runtime.cli.caller import caller
from runtime.cli.options import Job, Json, Store
from runtime.cli.output import json_document, say


def command(
    job: Job, reason: Reason, by: By = None, store: Store = None, json: Json = False
) -> None:
    """End a job's legal hold: it may be deleted again."""
    from runtime.archive import keys
    from runtime.archive.catalog import find_job
    from runtime.archive.lifecycle.deletion import now
    from runtime.archive.lifecycle.holds import Hold, hold_of, write_hold
    from runtime.cli.stores import archive_of

    if not reason.strip():
        raise InputError("--reason: say why the hold ends; it is kept with it")
    objects = archive_of(store)
    name = find_job(objects, job)
    prefix = keys.job_prefix(name.batch, name.job)
    if hold_of(objects, prefix) is None:
        raise InputError(f"{name} is not held: 'holdfast archive hold' lists those that are")
    word = Hold(kind="release", by=by or caller(), at=now(), reason=reason.strip())
    write_hold(objects, prefix, word)
    if json:
        json_document({"job": str(name), **word.model_dump(mode="json")})
    else:
        say(f"{name}: released by {word.by}: {word.reason}")
