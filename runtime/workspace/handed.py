"""Making the patch of a whole job, which ``finish(..., patch=True)`` hands over with the result."""

from __future__ import annotations

from runtime.archive import keys
from runtime.archive.forms.end import HandedPatch
from runtime.archive.handed import STREAM
from runtime.archive.job import JobArchive
from runtime.archive.trees import Trees
from runtime.archive.workspaces import opening_of
from runtime.base.digests import digest_bytes
from runtime.base.effect_numbers import HANDED_PATCH
from runtime.base.redaction.marks import count_marks
from runtime.base.redaction.redactor import Redactor

_MOST_UNTOLD = 50


def hand_over(
    archive: JobArchive, run: str, turn: int, version: str, redactor: Redactor
) -> HandedPatch | None:
    """Archive what leads from the version that a run began with to ``version``; None if it has no
    workspace of its own.

    Raises:
        ArchiveError: if the archive cannot be read or written.
    """
    from runtime.workspace.git.differences import differences

    opening = opening_of(archive, run)
    if opening is None or not version:
        return None
    base = str(opening["version"])
    diff = differences(Trees(archive.store), base, version, binary=True)
    whole = diff.patch
    patch = redactor.data(whole)
    handed = HandedPatch(
        address=keys.effect_key(archive.prefix, run, turn, HANDED_PATCH),
        digest=digest_bytes(patch),
        bytes=len(patch),
        paths=len(diff.files),
        # Files may hold marks: of what the job was shown so.
        masked=_marks(patch) - _marks(whole) if patch is not whole else 0,
        untold=diff.untold[:_MOST_UNTOLD],
    )
    value = {"patch": handed.model_dump(mode="json")}
    # An attempt before this one may have written it already: that one counts.
    kept = archive.write_effect(run, turn, HANDED_PATCH, value, texts={STREAM: patch})
    return HandedPatch.model_validate(kept["patch"])


def _marks(patch: bytes) -> int:
    return count_marks(patch.decode("utf-8", "replace"))
