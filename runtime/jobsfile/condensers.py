"""A job's condensers as a jobs file writes them: for the printed configuration and for what
changed.
"""

from __future__ import annotations

from typing import Any

from runtime.base.spec.models import CondenserSpec
from runtime.history.condensers.kinds import KINDS, SETTINGS


def condenser_value(condensers: tuple[CondenserSpec, ...]) -> Any:
    """What a jobs file says of a job's condensers: ``none``, a mapping, or a list of mappings."""
    values = [_condenser(condenser) for condenser in condensers]
    return values if len(values) > 1 else values[0] if values else "none"


def _condenser(condenser: CondenserSpec) -> dict[str, Any]:
    value = condenser.model_dump(mode="json", exclude_none=True)
    if condenser.model is not None:
        value["model"] = {"name": condenser.model.name, **condenser.model.options}
    # A condenser holds defaults of settings that are not its kind's, which a jobs file may not
    # give.
    for name in SETTINGS - KINDS[condenser.kind].settings:
        value.pop(name, None)
    return value
