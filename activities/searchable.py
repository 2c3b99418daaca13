"""Whether a server has Holdfast's search attributes."""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from runtime.base.search_attributes import TYPES

_ASKED = timedelta(seconds=5)


async def has_attributes(client: Client) -> bool:
    """Whether the server has Holdfast's search attributes.

    One that does not say is taken for one that has them not.
    """
    try:
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace), timeout=_ASKED
        )
    except RPCError:
        return False
    kinds = {name: IndexedValueType.Name(kind) for name, kind in listed.custom_attributes.items()}
    return all(kinds.get(name) == f"INDEXED_VALUE_TYPE_{kind}" for name, kind in TYPES.items())
