"""How much a host keeps of what jobs' workspaces are made of: the one setting for it."""

from __future__ import annotations

import os

from runtime.base.errors import InputError
from runtime.base.quoted import shown
from runtime.base.whole_numbers import whole_number

KEPT_BYTES = "HOLDFAST_KEPT_BYTES"
_DEFAULT = 20 * 1024**3
_MOST = 10**18 - 1


def kept_bytes() -> int:
    """So many bytes of bases, set-ups and checkouts stay on this host when nobody needs them now.

    Raises:
        InputError: if ``HOLDFAST_KEPT_BYTES`` is no number of bytes.
    """
    setting = os.environ.get(KEPT_BYTES, "")
    if not setting:
        return _DEFAULT
    number = whole_number(setting, _MOST)
    if number is None:
        raise InputError(
            f"{KEPT_BYTES}: expected a number of bytes, such as {_DEFAULT}, got {shown(setting)}"
        )
    return number
