"""What stands under ``_holdfast/summaries/``: summaries, which all jobs share, and the claims of
workers that have them written. None has a digest of its own.
"""

from __future__ import annotations

import json

from runtime.archive.references import SHARED
from runtime.base.errors import ObjectCorrupt

FOLDER = f"{SHARED}summaries/"
CLAIMS = ".claims/"
"""What stands behind the key of a summary in those of its claims, which no object names."""

_SUMMARY: dict[str, type] = {"text": str, "step": dict}
_CLAIM: dict[str, type] = {"owner": str, "over": bool}


def check_summary(key: str, data: bytes) -> None:
    """See that the object at a key below ``FOLDER`` is a summary, or a claim on one.

    Raises:
        ObjectCorrupt: if it is not.
    """
    what, fields = ("claim", _CLAIM) if CLAIMS in key else ("summary", _SUMMARY)
    try:
        said = json.loads(data)
        whole = all(isinstance(said[name], kind) for name, kind in fields.items())
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise ObjectCorrupt(f"{key}: is no {what}")
