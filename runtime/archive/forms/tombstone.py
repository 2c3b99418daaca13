"""What stays of a job that was deleted."""

from __future__ import annotations

from typing import Annotated, Literal

from runtime.archive.forms.base import Count, Digest, Form
from runtime.archive.forms.end import Signature
from runtime.base.values import LeftOut


class TombstoneForm(Form):
    """Who deleted a job, when and why. ``job`` is its prefix.

    ``objects`` is how many objects it had, ``digest`` that of the part ``objects``: canonical JSON,
    ``{"own": {key: digest}, "shared": {key: digest}}``, what the job had and what it alone used of
    that which jobs share. ``signature`` is over the key and all other fields, as an end's.

    Parts: ``objects``.
    """

    kind: Literal["tombstone"] = "tombstone"
    job: str
    by: str
    at: str
    reason: str
    objects: Count
    digest: Digest
    signature: Annotated[Signature | None, LeftOut()] = None
