"""Where a job's files come from."""

from __future__ import annotations

from runtime.base.addresses import SCHEME, WORKSPACE_OF
from runtime.base.quoted import shown
from runtime.base.spec.models import Writable
from runtime.jobsfile.problems import Location, Problems
from runtime.jobsfile.resolve.disk import Disk
from runtime.jobsfile.written.workspace import WrittenWorkspace


def workspace_of(
    written: WrittenWorkspace, at: Location, disk: Disk, problems: Problems
) -> tuple[str, Writable | None]:
    """Where the workspace comes from, and what makes it one that the job may change."""
    writable = None
    if written.write:
        fields = written.model_dump(exclude={"from_", "write"})
        writable = Writable(
            **{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
        )
        if written.from_ is None:
            return "", writable
        if written.from_.startswith(SCHEME):
            if WORKSPACE_OF.fullmatch(written.from_) is None:
                problems.add(
                    (*at, "from"), f"expected holdfast://JOB@N, got {shown(written.from_)}"
                )
            return written.from_, writable
    return disk.workspace(written.from_ or "", at), writable
