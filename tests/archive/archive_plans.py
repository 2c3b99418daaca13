"""Planned requests as objects in a store, with just the headers that a reader of requests needs."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.archive.container import header, seal
from runtime.archive.requests import Plan
from runtime.archive.stores import ObjectStore
from runtime.base.digests import digest_bytes


def store_plans(store: ObjectStore, plans: Mapping[str, Plan]) -> None:
    for key, planned in plans.items():
        request = planned.request
        fields = {
            "kind": "attempt",
            "request": {"digest": digest_bytes(request.wire), "bytes": len(request.wire)},
            "layout": {"bytes": len(request.layout)},
            **planned.fields,
        }
        store.put_if_absent(key, seal(key, header(fields, planned.parts), planned.parts)[0])
