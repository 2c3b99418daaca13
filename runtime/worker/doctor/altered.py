"""Files of an installed Holdfast that are not what was installed.

Its packages lie beside everybody else's, and pip puts a file of another distribution in the place
of one of ours without a word (that of llama-index-workflows is called ``workflows``), as it takes
ours away with that distribution.
"""

from __future__ import annotations

import base64
import csv
import hashlib
from importlib.metadata import Distribution
from pathlib import Path


def altered(distribution: Distribution) -> list[str]:
    """The Python files that differ from what the installer noted of them, or are gone. An editable
    installation has none: its files lie where it was made, and may change.
    """
    # Read here: from Python 3.12 on ``Distribution.files`` leaves out what is gone.
    noted = csv.reader((distribution.read_text("RECORD") or "").splitlines())
    return sorted(
        name
        for name, digest, *_ in noted
        if name.endswith(".py") and digest and digest != _digest(distribution, name)
    )


def _digest(distribution: Distribution, name: str) -> str:
    """As in ``RECORD``: SHA-256, which every installer writes."""
    try:
        data = Path(str(distribution.locate_file(name))).read_bytes()
    except OSError:
        return ""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"
