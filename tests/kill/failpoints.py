"""Every named fail point, and the jobs in which it is tried.

A group is one job that dies at each of its points in order, with the command given again in
between. ``name:3`` is the third time that the newest process comes by; later than the first where
the point would otherwise hit one turn again and again.
"""

from __future__ import annotations

import re

from runtime.archive.forms import KINDS
from tests.kill.processes import ROOT

TURNS = 24

GROUPS: dict[str, tuple[str, ...]] = {
    "submit": (
        "submit.before",
        "begin.before",
        "archive.run.before_put",
        "model.before_call:2",
        "archive.failure.before_put",
        "archive.attempt.before_put:2",
        "archive.attempt.after_put:2",
        "end.before",
    ),
    "reply": (
        "submit.after",
        "archive.definition.before_put",
        "model.mid_reply:9",
        "model.after_call:2",
        "archive.step.before_put:2",
        "archive.step.after_put:2",
        "model.before_return:2",
        "archive.failure.after_put",
        "archive.end.before_put",
    ),
    "effect": (
        "archive.definition.after_put",
        "archive.run.after_put",
        "read.before:3",
        "read.after:3",
        "verdict.before_return:4",
        "tool.before_run",
        "archive.end.after_put",
    ),
    "store": (
        "begin.after",
        "store.directory.mid_put:6",
        "store.directory.before_link:6",
        "store.directory.before_sync:6",
        "end.before_return",
    ),
    "tool": (
        "tool.after_run",
        "archive.effect.before_put:2",
        "archive.effect.after_put:2",
        "tool.before_return:2",
    ),
}

HANDS = (
    "hands.open.before",
    "tree.base.before_put",
    "hands.open.after",
    "tree.before_put",
    "hands.command.before",
    "checkout.base.before_rename",
    "checkout.moving",
    "hands.command.after",
    "tree.after_put:2",
    "hands.before_effect:3",
    "archive.effect.before_put:4",
    "archive.effect.after_put:3",
    "hands.before_return:5",
    "checkout.moving:3",
    "hands.command.after:4",
    "end.after_patch",
)
"""Those of a job that changes its workspace (``tests/kill/test_kill_hands.py``)."""

LOOKED_THROUGH = (
    "hands.command.before",
    "checkout.moving:2",
    "hands.command.after:2",
    "tree.after_put:2",
    "hands.before_return:4",
)
"""Those at which it dies again where its files are looked through after each command."""

# Not "page.after:2": the process that was killed after the submission may have read a page.
SUBMISSION = ("submit.page:2", "submit.before", "page.before", "page.after", "submit.after")
"""Those of a batch that comes in pages (``tests/kill/test_kill_submission.py``), in an order in
which each is come by: once pages are submitted, a worker may run their jobs before the next kill.
"""

SUB_JOBS = ("spawn.before", "spawn.started", "spawn.recorded:2")
"""Those of a job that starts others (``tests/kill/test_kill_sub_jobs.py``)."""

CHECKPOINTS = (
    "checkpoint.before",
    "archive.checkpoint.before_put",
    "archive.checkpoint.after_put",
    "checkpoint.before_return",
)
"""One job that is long enough for a checkpoint, and dies again and again over it: before it is
written, as it is, and behind it. A later one finds what those before it wrote.
"""

CHECKPOINT_TURNS = 66

CONDENSATION = (
    "summary.before",
    "model.mid_reply",
    "archive.step.after_put",
    "summary.before_return",
)
"""One job that dies again and again over its first summary: before the call, in the reply, and
behind it.
"""

CONDENSATION_TURNS = 15

CONDENSER = "{kind: summary, max_size: 16}"
"""The condenser of that job: two summaries in so many turns."""

ELSEWHERE = {
    **dict.fromkeys(
        ("archive.exchange.before_put", "archive.exchange.after_put"),
        "no call of these jobs has a second exchange; one is put by the code that puts a failure",
    ),
    "tool.after_claim": "tests/kill/test_kill_once.py kills at it",
    "store.s3.before_put": "tests/archive kills at it, with an S3 server",
    **dict.fromkeys(
        ("archive.copy.before_put", "archive.copy.after_put"),
        "tests/archive/test_archive_copy.py kills at it",
    ),
    **dict.fromkeys(
        (
            "archive.delete.before_tombstone",
            "archive.delete.after_tombstone",
            "archive.delete.mid_job",
            "archive.delete.mid_sweep",
        ),
        "tests/archive/test_archive_deletion.py kills at it",
    ),
    **dict.fromkeys(
        ("archive.pack.before_put", "archive.pack.after_put", "archive.pack.mid_removal"),
        "tests/archive/test_archive_packs.py kills at it",
    ),
    **dict.fromkeys(("retry.before", "retry.after"), "tests/cli/test_cli_retry.py kills at it"),
    "export.before_move": "tests/git/test_workspace_export.py kills at it",
    "tidy.aside": "tests/checkouts/test_tidying.py kills at it",
    "tidy.deleting": "tests/checkouts/test_tidying.py kills at it",
    **dict.fromkeys(
        (
            "reset.before",
            "reset.after",
            "fork.before",
            "fork.after",
            "replay.before_claim",
            "replay.after_claim",
            "archive.replay.before_put",
            "archive.replay.after_put",
            "archive.claim.before_put",
            "archive.claim.after_put",
        ),
        "tests/cli kills replays and forks at it",
    ),
}
"""Fail points that these jobs do not come by, and why."""

_CALL = re.compile(r'failpoint\((f?)"([^"]+)"\)')


def named_in_the_source() -> set[str]:
    """The fail points that the source names; one whose name has a ``{kind}`` in it is one for each
    kind of object.
    """
    found: set[str] = set()
    for folder in ("runtime", "activities", "workflows"):
        for path in (ROOT / folder).rglob("*.py"):
            for formatted, name in _CALL.findall(path.read_text()):
                found |= {name.replace("{kind}", kind) for kind in KINDS} if formatted else {name}
    return found


def tried() -> set[str]:
    """The fail points that are tried here or elsewhere."""
    grouped = {point.partition(":")[0] for points in GROUPS.values() for point in points}
    hands = {point.partition(":")[0] for point in HANDS}
    paged = {point.partition(":")[0] for point in SUBMISSION}
    spawned = {point.partition(":")[0] for point in SUB_JOBS}
    return grouped | spawned | {*CHECKPOINTS, *paged, *CONDENSATION, *hands, *ELSEWHERE}
