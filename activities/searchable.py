"""Whether a server has Holdfast's search attributes."""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from runtime.base.search_attributes import TYPES

_ASKED = timedelta(seconds=5)

_REFUSED = {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED}
"""What a server answers that never lets these be asked for."""


async def has_attributes(client: Client) -> bool | None:
    """Whether the server has Holdfast's search attributes; None if it does not say now."""
    try:
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace), retry=True, timeout=_ASKED
        )
    except RPCError as error:
        return False if error.status in _REFUSED else None
    kinds = {name: IndexedValueType.Name(kind) for name, kind in listed.custom_attributes.items()}
    return all(kinds.get(name) == f"INDEXED_VALUE_TYPE_{kind}" for name, kind in TYPES.items())
