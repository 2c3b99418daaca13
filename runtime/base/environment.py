"""This process's environment, read whole at each call of a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

_last: tuple[Mapping[Any, Any], dict[str, str]] = ({}, {})


def environment() -> Mapping[str, str]:
    """The variables that are set now: the same dictionary as before, unless one was changed.

    Nobody may change it.
    """
    global _last
    before, told = _last
    # The bytes behind ``os.environ``, which decodes each name and value whenever it is asked.
    now = vars(os.environ).get("_data", os.environ)
    if now != before:
        now = dict(now)
        told = {os.fsdecode(name): os.fsdecode(value) for name, value in now.items()}
        _last = now, told
    return told
