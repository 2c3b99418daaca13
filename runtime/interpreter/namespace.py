"""Listing the namespace inside the sandbox, and what differs between two listings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.digests import digest_of
from runtime.interpreter.records import ChangeInfo, NamespaceDiff, TypeInfo

REPR_CHARS = 80
_HELPER = "holdfast_short"

PRELUDE = f"""
def {_HELPER}(v):
    t = type(v).__name__
    n = None
    r = ""
    i = ""
    try:
        if t in ("str", "bytes"):
            n = len(v)
            r = repr(v[:{REPR_CHARS}])
        elif t in ("list", "tuple"):
            n = len(v)
            r = repr(v[:8])
        elif t in ("dict", "set", "frozenset"):
            n = len(v)
            r = repr(v) if n <= 8 else ""
        elif t in ("int", "float", "bool", "NoneType"):
            r = repr(v)
        elif t in ("ViewHandle", "GroupHandle", "NoteHandle"):
            i = v.obj_id
    except Exception:
        r = "<no repr>"
    return (t, n, r[:{REPR_CHARS}], i)
"""
"""Fed once, before a session's first statement."""

LISTING = f"[(k, {_HELPER}(v)) for k, v in list(locals().items())]"
"""An expression whose value ``parse`` reads."""


@dataclass(frozen=True)
class Namespace:
    """The variables after a statement: their types, and which of them are handles of which node."""

    variables: Mapping[str, TypeInfo]
    handles: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Digest of names, types, sizes, short reprs and handles."""
        listed = {name: info.model_dump(mode="json") for name, info in self.variables.items()}
        return digest_of([listed, dict(self.handles)])


EMPTY = Namespace(variables={}, handles={})


def parse(listing: Iterable[Any], hidden: frozenset[str]) -> Namespace:
    """The namespace from ``LISTING``'s value, without framework names and those in ``hidden``, sorted by name."""
    variables: dict[str, TypeInfo] = {}
    handles: dict[str, str] = {}
    for name, (kind, size, text, obj_id) in sorted(listing, key=lambda item: str(item[0])):
        if name.startswith("holdfast_") or name in hidden:
            continue
        variables[name] = TypeInfo(type=kind, repr=text, size=size)
        if isinstance(obj_id, str) and obj_id:
            handles[name] = obj_id
    return Namespace(variables=variables, handles=handles)


def diff(before: Namespace, after: Namespace) -> NamespaceDiff:
    """What a statement did to the variables."""
    old, new = before.variables, after.variables
    return NamespaceDiff(
        added={name: info for name, info in new.items() if name not in old},
        changed={
            name: ChangeInfo(before=old[name], after=info)
            for name, info in new.items()
            if name in old and old[name] != info
        },
        deleted=tuple(name for name in old if name not in new),
    )
