"""What a worker takes from its environment, looked at before anything is told or started."""

from __future__ import annotations

import os

from runtime.archive.signing import signer_of
from runtime.base.kept_bytes import kept_bytes
from runtime.base.open_jobs import open_jobs
from runtime.base.redaction.key import VARIABLE, redaction_key


def check_settings() -> None:
    """See that a worker with this environment would neither end as it begins nor fail at the first
    secret that it masks.

    Raises:
        InputError: if one of its variables cannot be used.
    """
    kept_bytes()
    open_jobs()
    signer_of()
    # Without the variable it would make a key.
    if VARIABLE in os.environ:
        redaction_key()
