"""What a jobs file says beside its jobs: the store, who is told of ends, the batch's budget and
limits.
"""

from __future__ import annotations

from runtime.base.errors import InputError
from runtime.base.places import split_url
from runtime.base.quoted import shown
from runtime.base.spec.finish import FinishEvent, OnFinish
from runtime.base.spec.models import BatchBudget, Limits
from runtime.jobsfile.problems import Problems
from runtime.jobsfile.resolve.disk import Disk
from runtime.jobsfile.resolve.merged import spending_in
from runtime.jobsfile.resolve.urls import has_userinfo
from runtime.jobsfile.written.budgets import WrittenBatchBudget
from runtime.jobsfile.written.finish import WrittenFinish
from runtime.jobsfile.written.limits import WrittenLimits

STORE_SCHEMES = ("file", "s3")


def store_of(store: str | None, disk: Disk, problems: Problems) -> str | None:
    """The archive's URL, or the absolute path of its directory."""
    if store is None:
        return None
    scheme, separator, _ = store.partition("://")
    if not separator:
        return disk.path(store, ("store",))
    # Before the scheme is looked at, whose error repeats the URL.
    if has_userinfo(store):
        problems.add(
            ("store",), "expected no credentials in the URL; set AWS_ACCESS_KEY_ID and its like"
        )
    elif scheme not in STORE_SCHEMES:
        problems.add(
            ("store",),
            f"expected a directory or a URL of {' or '.join(STORE_SCHEMES)}, got {shown(store)}",
        )
    else:
        try:
            split_url(store)
        except InputError as error:
            problems.add(("store",), str(error))
    return store


def on_finish_of(written: WrittenFinish | None, disk: Disk) -> OnFinish | None:
    """Who is told of ends."""
    if written is None:
        return None
    return OnFinish(
        command=written.command,
        webhook=written.webhook,
        events=tuple(dict.fromkeys(map(FinishEvent, written.events))),
        timeout=written.timeout,
        directory=str(disk.directory),
    )


def batch_budget(written: WrittenBatchBudget) -> BatchBudget | None:
    """What a batch may spend; None where nothing is bounded."""
    values = spending_in(written)
    return BatchBudget(**values) if values else None


def limits_of(written: WrittenLimits) -> Limits:
    """How fast a batch's models and tools may be called."""
    return Limits.model_validate(written.model_dump(exclude_unset=True))
