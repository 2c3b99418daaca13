"""Listing the namespace inside the sandbox, and what differs between two listings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic_monty import MontyStdTypeProxy

from runtime.base.digests import digest_of
from runtime.base.syntax import tree_of
from runtime.context.outcomes import NodeRef
from runtime.interpreter import walk
from runtime.interpreter.contents import UNBOUND, Contents
from runtime.interpreter.definitions import NO_DEFINITIONS, Definitions
from runtime.interpreter.executions import ChangeInfo, NamespaceDiff, TypeInfo
from runtime.interpreter.handles import HANDLE_TYPES

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
{walk.WALK}"""
"""Fed once, before a session's first statement.

It keeps the builtins that it needs: a statement may bind their names.
"""

LISTING = "[(k, holdfast_short(v)) for k, v in holdfast_locals().items()]"
"""An expression whose value ``parse``, ``taken`` and ``altered`` read, with its handles as
``NodeRef``s.
"""

_FUNCTIONS = ("holdfast_short", "holdfast_repr", "holdfast_held", "holdfast_walk")
OWN = f"(holdfast_locals, {', '.join(_FUNCTIONS)})"
"""An expression of what lists the variables, in a session with a walk: ``exec`` reaches it."""

SHORT, WHOLE = 1, 2
"""Schemes of digests: of short reprs alone, as sessions do that were begun before there was a walk,
and of all content.
"""

_OWN = "holdfast_"
OWN_NAMES = f"a name that begins with {_OWN}"
"""What a statement bound of the framework's, where its source does not tell."""

_PARSED_CHARS = 200_000
_NAME = re.compile(r"\w+")
_CONSTANTS = {"All": "-1"}
"""Names of the contract that the interpreter keeps as variables once they were used, with their
reprs.
"""


@dataclass(frozen=True)
class Namespace:
    """The variables after a statement: what they are, and which of them, or of their items, are
    handles of which node.

    ``aliases`` are pairs of places that hold the same object; ``handles`` maps ``foo``,
    ``views[0]`` or ``by_path['a.py']`` to a node; variables come before items.
    """

    variables: Mapping[str, TypeInfo]
    handles: Mapping[str, str]
    definitions: Definitions = NO_DEFINITIONS
    aliases: tuple[tuple[str, str], ...] = ()
    scheme: int = WHOLE

    @cached_property
    def digest(self) -> str:
        """Digest of names, types and all content, with what the variables share; by ``SHORT``, of
        the short reprs.
        """
        if self.scheme == SHORT:
            return self.short_digest
        listed = {name: info.told for name, info in self.variables.items()}
        return digest_of([WHOLE, listed, dict(self.handles), self.aliases])

    @cached_property
    def short_digest(self) -> str:
        """Digest of names, types, sizes, short reprs and handles, as histories have it that were
        begun with ``SHORT``.
        """
        listed = {name: _short(info) for name, info in self.variables.items()}
        return digest_of([listed, dict(self.handles)])


EMPTY = Namespace(variables={}, handles={})


def taken(listing: Iterable[Any], contract: frozenset[str]) -> list[str]:
    """The contract's names that a statement bound to something of its own.

    There is no ``del``: it could never undo that.
    """
    return sorted(
        name
        for name, (_, _, text, _) in listing
        if name in contract and _CONSTANTS.get(name) != text
    )


def own_bound(source: str) -> list[str]:
    """The framework's names that a statement binds, as far as its source tells: the listing goes by
    them, and shows none of them.
    """
    # The parser may make the name of other letters.
    if (_OWN not in source and source.isascii()) or len(source) > _PARSED_CHARS:
        return []
    try:
        tree = tree_of(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return sorted({name for node in ast.walk(tree) for name in _bound_by(node) if _is_own(name)})


def is_intact(own: Sequence[object]) -> bool:
    """Whether the value of ``OWN`` is what the prelude made it.

    The interpreter tells what it has built in from all else. A function of a statement it tells by
    a name that ``own_bound`` refuses, or by an address, where ``exec`` made it.
    """
    built_in, *functions = own
    return (
        isinstance(built_in, MontyStdTypeProxy)
        and built_in.name == "locals"
        and functions == [f"<function '{name}' at 0x0>" for name in _FUNCTIONS]
    )


def altered(listing: Iterable[Any]) -> list[str]:
    """The variables, and items of them, that hold a handle to which a statement assigned an
    attribute.

    The interpreter keeps such an attribute in its own copy of the handle, where it would hide the
    node's. A handle's repr there lists what the copy holds: the ``obj_id`` that it was sent with,
    and what was assigned.
    """
    return sorted(
        name + place
        for name, (_, _, _, held) in listing
        for place, node, text in held
        if not (isinstance(node, NodeRef) and text.endswith(f"Handle(obj_id={node.obj_id!r})"))
    )


def parse(listing: Iterable[Any], hidden: frozenset[str], contents: Contents | None) -> Namespace:
    """The namespace from ``LISTING``'s value, without framework names and those in ``hidden``,
    sorted by name.

    ``contents`` is what the walk told; None in a session that was begun without one.
    """
    variables: dict[str, TypeInfo] = {}
    handles: dict[str, str] = {}
    items: dict[str, str] = {}
    for name, (kind, size, text, held) in sorted(listing, key=lambda item: str(item[0])):
        if _is_own(name) or name in hidden or kind == UNBOUND:
            continue
        info = TypeInfo(type=kind, repr=text, size=size)
        variables[name] = info if contents is None else _told(name, info, contents)
        for place, node, _ in held:
            (items if place else handles)[name + place] = node.obj_id
    if contents is None:
        return Namespace(variables=variables, handles=handles | items, scheme=SHORT)
    return Namespace(
        variables=variables,
        handles=handles | items,
        definitions=contents.definitions,
        aliases=contents.aliases,
    )


def diff(
    before: Namespace, after: Namespace, paths: Mapping[str, tuple[str, ...]]
) -> NamespaceDiff:
    """What a statement did to the variables; ``paths`` are the places that changed in those of
    ``changed``.
    """
    old, new = before.variables, after.variables
    return NamespaceDiff(
        added={name: info for name, info in new.items() if name not in old},
        changed={
            name: ChangeInfo(
                before=old[name], after=new[name], paths=_inner(name, paths.get(name, ()))
            )
            for name in changed(before, after)
        },
        deleted=tuple(name for name in old if name not in new),
    )


def changed(before: Namespace, after: Namespace) -> list[str]:
    """The variables that hold something else than before, or that share with another what they did
    not, or no more.
    """
    old, new = before.variables, after.variables
    names = {name for name, info in new.items() if name in old and old[name].told != info.told}
    # Where a variable changed itself, what it shares is told with it.
    stayed = (old.keys() & new.keys()) - names
    was, now = (
        {pair for pair in one.aliases if {*map(_root, pair)} <= stayed} for one in (before, after)
    )
    names |= {_root(later) for later, _ in was ^ now}
    return [name for name in new if name in names]


def _is_own(name: str) -> bool:
    return name.startswith(_OWN)


def _bound_by(node: ast.AST) -> list[str]:
    """The names that a node binds itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.alias(name=name, asname=asname):
            return [asname or name]
        case ast.Global(names=names):
            return names
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            return [name]
        case _:
            return []


def _told(name: str, info: TypeInfo, contents: Contents) -> TypeInfo:
    """A variable with the digest of all it holds, unless its repr is all of it."""
    told, root = contents.told[name], contents.roots[name]
    whole = contents.lines[int(root[1:])] if root.startswith("@") else f"={root}"
    if whole.startswith("h"):
        return info.model_copy(update={"repr": f"<{whole[1:]}>"})
    # A repr that is as long as it may be was cut, and is not all.
    if whole == f"={info.repr}" and len(info.repr) < REPR_CHARS:
        return info
    return info.model_copy(update={"digest": told.digest, "partial": told.partial})


def _short(info: TypeInfo) -> dict[str, Any]:
    return {
        "type": info.type,
        "repr": "" if info.type in HANDLE_TYPES else info.repr,
        "size": info.size,
    }


def _inner(name: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Places that say more than the name does."""
    return () if paths == (name,) else paths


def _root(place: str) -> str:
    """The variable of a place in it."""
    return _NAME.match(place)[0]  # type: ignore[index]
