"""What a job's definition says about masking.

Imports pydantic alone, for definitions and activity inputs.
"""

from __future__ import annotations

from runtime.base.values import Compact


class Redaction(Compact):
    """What to mask beyond the keys that are always masked.

    ``env`` are names of environment variables of the worker whose values are secret; one that is
    not set masks nothing. ``patterns`` are regular expressions of RE2's; the n-th one's marks are
    named ``pattern-n``.
    """

    env: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
