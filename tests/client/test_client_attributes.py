"""Whether a server has Holdfast's search attributes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.searchable import has_attributes


@pytest.mark.parametrize(
    ("status", "has"),
    [
        (RPCStatusCode.PERMISSION_DENIED, False),
        (RPCStatusCode.UNIMPLEMENTED, False),
        (RPCStatusCode.UNAVAILABLE, None),
        (RPCStatusCode.DEADLINE_EXCEEDED, None),
        (RPCStatusCode.CANCELLED, None),
    ],
)
async def test_a_server_that_does_not_say_now_has_not_said_no(
    status: RPCStatusCode, has: bool | None
) -> None:
    """A worker asks it once more; of one that refuses it remembers that."""

    async def refuse(*_: object, **__: object) -> None:
        raise RPCError("no answer", status, b"")

    operator = SimpleNamespace(list_search_attributes=refuse)
    client: Any = SimpleNamespace(namespace="default", operator_service=operator)
    assert await has_attributes(cast(Client, client)) is has
