"""Planned requests as objects in a store, with just the headers that a reader of requests needs."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.archive.container import header, seal
from runtime.archive.requests import Plan
from runtime.archive.stores import ObjectStore
from runtime.base.digests import digest_bytes

_ANY = {
    "kind": "attempt", "run": "r", "turn": 1, "number": 1, "temporal_attempt": 1, "model": {},
    "parent": None, "previous": None, "delta": [], "capture": "wire", "method": "POST", "url": "",
    "headers": {}, "started_at": "2026-01-01T00:00:00+00:00",
}  # fmt: skip


def store_plans(store: ObjectStore, plans: Mapping[str, Plan]) -> None:
    for key, planned in plans.items():
        request = planned.request
        fields = {
            **_ANY,
            "request": {"digest": digest_bytes(request.wire), "bytes": len(request.wire)},
            "layout": {"digest": digest_bytes(b""), "bytes": len(request.layout), "segments": 0},
            **planned.fields,
        }
        store.put_if_absent(key, seal(key, header(fields, planned.parts), planned.parts)[0])
