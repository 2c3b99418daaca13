"""Listing the namespace inside the sandbox, and what differs between two listings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.context.outcomes import NodeRef
from runtime.digests import digest_of
from runtime.interpreter.records import ChangeInfo, NamespaceDiff, TypeInfo

REPR_CHARS = 80
REPR_ITEMS = 8
REPR_DEPTH = 2
HELD_ITEMS = 200
"""Items of a list, tuple or dict among which handles are looked for."""

PRELUDE = f"""
holdfast_locals = locals
def holdfast_repr(v, depth=0, type=type, repr=repr, str=str, bytes=bytes, list=list, tuple=tuple, dict=dict, set=set,
                  frozenset=frozenset, plain=(int, float, bool, type(None))):
    t = type(v)
    if t is str or t is bytes:
        return repr(v[:{REPR_CHARS}])
    if t in plain:
        return repr(v)
    if t.__name__ in ("ViewHandle", "GroupHandle", "NoteHandle"):
        return "<" + v.obj_id + ">"
    if t is not list and t is not tuple and t is not dict and t is not set and t is not frozenset:
        return "<" + t.__name__ + ">"
    items = []
    for item in v:
        if len(items) == {REPR_ITEMS} or depth == {REPR_DEPTH}:
            items.append("...")
            break
        text = holdfast_repr(item, depth + 1)
        items.append(text + ": " + holdfast_repr(v[item], depth + 1) if t is dict else text)
    inside = ", ".join(items)
    if t is list:
        return "[" + inside + "]"
    if t is tuple:
        return "(" + inside + ("," if len(items) == 1 else "") + ")"
    if t is dict or items:
        return "{{" + inside + "}}"
    return t.__name__ + "()"
def holdfast_held(v, depth=0, type=type, list=list, tuple=tuple, dict=dict, enumerate=enumerate, str=str, repr=repr):
    t = type(v)
    if t.__name__ in ("ViewHandle", "GroupHandle", "NoteHandle"):
        return [("", v, repr(v))]
    if depth == {REPR_DEPTH} or (t is not list and t is not tuple and t is not dict):
        return []
    found = []
    for i, item in enumerate(v):
        if i == {HELD_ITEMS}:
            break
        place = "[" + (repr(item)[:{REPR_CHARS}] if t is dict else str(i)) + "]"
        for inner, handle, text in holdfast_held(v[item] if t is dict else item, depth + 1):
            found.append((place + inner, handle, text))
    return found
def holdfast_short(v, type=type, len=len, sized=(str, bytes, list, tuple, dict, set, frozenset),
                   shown=(str, bytes, list, tuple, dict, set, frozenset, int, float, bool, type(None)), error=Exception):
    t = type(v)
    try:
        size = len(v) if t in sized else None
        text = holdfast_repr(v)[:{REPR_CHARS}] if t in shown else ""
        held = holdfast_held(v)
    except error:
        return (t.__name__, None, "<no repr>", [])
    return (t.__name__, size, text, held)
"""
"""Fed once, before a session's first statement. It keeps the builtins that it needs: a statement may bind their names."""

LISTING = "[(k, holdfast_short(v)) for k, v in holdfast_locals().items()]"
"""An expression whose value ``parse``, ``taken`` and ``altered`` read, with its handles as ``NodeRef``s."""

_OWN = "holdfast_"
_CONSTANTS = {"All": "-1"}
"""Names of the contract that the interpreter keeps as variables once they were used, with their reprs."""


@dataclass(frozen=True)
class Namespace:
    """The variables after a statement: their types, and which of them, or of their items, are handles of which node.

    ``handles`` maps ``foo``, ``views[0]`` or ``by_path['a.py']`` to a node; variables come before items.
    """

    variables: Mapping[str, TypeInfo]
    handles: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Digest of names, types, sizes, short reprs and handles."""
        listed = {name: info.model_dump(mode="json") for name, info in self.variables.items()}
        return digest_of([listed, dict(self.handles)])


EMPTY = Namespace(variables={}, handles={})


def taken(listing: Iterable[Any], contract: frozenset[str]) -> list[str]:
    """The contract's names that a statement bound to something of its own. There is no ``del``: it could never undo that."""
    return sorted(name for name, (_, _, text, _) in listing if name in contract and _CONSTANTS.get(name) != text)


def altered(listing: Iterable[Any]) -> list[str]:
    """The variables, and items of them, that hold a handle to which a statement assigned an attribute.

    The interpreter keeps such an attribute in its own copy of the handle, where it would hide the node's. A handle's repr
    there lists what the copy holds: the ``obj_id`` that it was sent with, and what was assigned.
    """
    return sorted(
        name + place
        for name, (_, _, _, held) in listing
        for place, node, text in held
        if not (isinstance(node, NodeRef) and text.endswith(f"Handle(obj_id={node.obj_id!r})"))
    )


def parse(listing: Iterable[Any], hidden: frozenset[str]) -> Namespace:
    """The namespace from ``LISTING``'s value, without framework names and those in ``hidden``, sorted by name."""
    variables: dict[str, TypeInfo] = {}
    handles: dict[str, str] = {}
    items: dict[str, str] = {}
    for name, (kind, size, text, held) in sorted(listing, key=lambda item: str(item[0])):
        if name.startswith(_OWN) or name in hidden:
            continue
        variables[name] = TypeInfo(type=kind, repr=text, size=size)
        for place, node, _ in held:
            (items if place else handles)[name + place] = node.obj_id
    return Namespace(variables=variables, handles=handles | items)


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
