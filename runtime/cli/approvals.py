"""``holdfast approvals``: the calls that wait for a person."""

from __future__ import annotations

import json as json_module

from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, say


def command(store: Store = None, json: Json = False) -> None:
    """List the calls that wait for approval.

    It reads the archive alone. 'holdfast approve JOB' and 'holdfast reject JOB' answer.
    """
    from runtime.archive.approvals import waiting_question
    from runtime.archive.catalog import all_jobs
    from runtime.archive.job import JobArchive
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    rows = []
    for key in all_jobs(objects, None):
        waiting = waiting_question(JobArchive.of(objects, key))
        if waiting is not None:
            rows.append({"job": str(key), "turn": waiting.turn, **waiting.asked})
    if json:
        json_document(rows)
        return
    if not rows:
        say("nothing waits for approval")
    for row in rows:
        arguments = [json_module.dumps(value, ensure_ascii=False) for value in row["args"]]
        arguments += [
            f"{name}={json_module.dumps(value, ensure_ascii=False)}"
            for name, value in row["kwargs"].items()
        ]
        say(f"{row['job']}@{row['turn']}  {row['tool']}({', '.join(arguments)})  {row['asked_at']}")
