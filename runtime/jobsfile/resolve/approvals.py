"""Which calls of a job wait for a person, of the tools, servers and commands that it has."""

from __future__ import annotations

from runtime.base.effect_classes import Approval
from runtime.base.quoted import shown
from runtime.base.spec.models import Approvals, CommandRule, ToolSpec, Writable
from runtime.base.spec.servers import ServerSpec
from runtime.jobsfile.problems import Location, Problems
from runtime.jobsfile.written.approvals import WrittenApprovals


def approvals_of(
    written: WrittenApprovals,
    at: Location,
    tools: tuple[ToolSpec, ...],
    servers: tuple[ServerSpec, ...],
    writable: Writable | None,
    job: str,
    problems: Problems,
) -> Approvals:
    """The rules; those for what the ``job`` does not have are noted."""
    # Elsewhere the place says which: of many jobs from one all then share what is wrong.
    job = f"the job {job!r}" if at[0] == "defaults" else "the job"
    names = {tool.name for tool in tools}
    owners = {server.name for server in servers}
    for name in written.tools:
        if name not in names and name.partition(".")[0] not in owners:
            known = ", ".join(map(shown, sorted(names | owners))) or "none"
            problems.add((*at, "tools", name), f"{job} has no such tool or server; it has {known}")
    if written.sh and writable is None:
        problems.add((*at, "sh"), f"{job} runs no commands: its workspace is read-only")
    return Approvals(
        tools={name: Approval(one) for name, one in written.tools.items()},
        sh=tuple(
            CommandRule(pattern=pattern, approval=Approval(one))
            for pattern, one in written.sh.items()
        ),
        wait=written.wait,
        otherwise=written.otherwise,
    )
