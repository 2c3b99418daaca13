"""``holdfast doctor``: whether all that a worker needs is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from runtime.cli.options import ANY_SERVER, Json, Store
from runtime.cli.output import json_document, say
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.worker.doctor.finding import Finding


def command(target: Target = ANY_SERVER, store: Store = None, json: Json = False) -> None:
    """Check all that a worker needs here, and say what to do.

    Versions, the state directory's files and key, the archive's store (by writing an object,
    reading it, and being refused to overwrite it), room, what is kept of workspaces, interpreter,
    sandbox, providers' keys, and the Temporal server with its namespace and clock. Given the
    options and variables of a worker, it asks for what that worker needs. Exit code 1 if a job
    could not run; warnings are no failures.
    """
    import asyncio

    from runtime.base.home import state_home
    from runtime.cli.stores import address_of
    from runtime.worker.doctor.doctor import examine
    from runtime.worker.doctor.finding import Verdict

    home, url = state_home(), address_of(store)

    async def look() -> list[Finding]:
        findings = []
        async for finding in examine(home, target, url):
            findings.append(finding)
            if not json:
                say(_line(finding))
        return findings

    findings = asyncio.run(look())
    healthy = all(finding.verdict is not Verdict.FAILED for finding in findings)
    if json:
        document = [finding.model_dump(mode="json") for finding in findings]
        json_document({"healthy": healthy, "findings": document})
    raise typer.Exit(0 if healthy else 1)


def _line(finding: Finding) -> str:
    from runtime.cli.text import one_line

    what = one_line(finding.seen) + (f": {finding.advice}" if finding.advice else "")
    return f"{finding.verdict.value:<8} {finding.name:<12} {what}"
