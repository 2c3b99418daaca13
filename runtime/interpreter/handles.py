"""Handles: how nodes cross into the interpreter and back.

A handle's id in the interpreter is derived from the node's (uuid5), so handles keep working when a
session is restored in another process: calls on them are answered by id (docs/design.md section 4).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid5

from pydantic_monty import ClassInstance, MontyClassProxy

from runtime.context.outcomes import NodeRef

# Any fixed value would do, but it must stay: saved sessions hold ids that were made with it.
_NAMESPACE = UUID("5f0c7b0e-6f0b-5a4e-9c1e-0d6a3f6f2a11")


@lru_cache(maxsize=65536)
def handle_id(obj_id: str) -> UUID:
    """The interpreter's id of the node's handle."""
    return uuid5(_NAMESPACE, obj_id)


class _Handle:
    """The host's end of a handle. The interpreter takes its class's name as the type's name."""

    def __init__(self, obj_id: str) -> None:
        self.obj_id = obj_id

    def __repr__(self) -> str:
        return f"<{self.obj_id}>"


class ViewHandle(_Handle):
    """A view's handle."""


class GroupHandle(_Handle):
    """A group's handle."""


class NoteHandle(_Handle):
    """A note's handle."""


_CLASSES: dict[str, type[_Handle]] = {"view": ViewHandle, "group": GroupHandle, "note": NoteHandle}
HANDLE_TYPES = frozenset(cls.__name__ for cls in _CLASSES.values())


class Handles:
    """The handles of one stretch. Within it, an id always comes with the same host object."""

    def __init__(self, obj_ids: Iterable[str]) -> None:
        self._objects: dict[str, _Handle] = {}
        self._by_id = {handle_id(obj_id): obj_id for obj_id in obj_ids}

    def outgoing(self, value: Any) -> Any:
        """``value`` with every ``NodeRef`` in it replaced by what the interpreter makes a handle
        of.
        """
        match value:
            case NodeRef(obj_id=obj_id):
                return self._instance(obj_id)
            case list():
                return [self.outgoing(item) for item in value]
            # A named tuple, such as the result of a command, crosses as what it is.
            case tuple() if type(value) is tuple:
                return tuple(self.outgoing(item) for item in value)
            case dict():
                return {key: self.outgoing(item) for key, item in value.items()}
            case _:
                return value

    def incoming(self, value: Any) -> Any:
        """``value`` with every handle in it replaced by a ``NodeRef``."""
        match value:
            case _Handle():
                return NodeRef(value.obj_id)
            case MontyClassProxy() if value.id in self._by_id:
                return NodeRef(self._by_id[value.id])
            case list():
                return [self.incoming(item) for item in value]
            case tuple() if type(value) is tuple:
                return tuple(self.incoming(item) for item in value)
            case dict():
                return {key: self.incoming(item) for key, item in value.items()}
            case _:
                return value

    def obj_id(self, identity: UUID) -> str | None:
        """The node that a method call or attribute access is about."""
        return self._by_id.get(identity)

    def _instance(self, obj_id: str) -> ClassInstance:
        # Also a node that this stretch made, which was not there when it began.
        self._by_id[handle_id(obj_id)] = obj_id
        if obj_id not in self._objects:
            self._objects[obj_id] = _CLASSES[obj_id.rpartition("-")[0]](obj_id)
        return ClassInstance(
            self._objects[obj_id],
            id=handle_id(obj_id),
            eager_attrs=("obj_id",),
            lazy_attrs="all",
            allowed_methods="all",
        )
