"""All that a job's variables hold, as the walk told it: digests of each, what the walk left out,
and what they share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from runtime.base.syntax import literal
from runtime.interpreter.definitions import NO_DEFINITIONS, Definitions, is_opaque

UNBOUND: Final = "holdfast_unbound"
"""The type of what a name is bound to that ``del`` took away."""

DIGEST_CHARS: Final = 16
"""Hexadecimal characters of a variable's digest."""

PARTIAL: Final = 4
"""Places that are named of those which a variable's digest leaves out."""

_VISITS: Final = 4
"""How often, on average, the digests of variables may come by one node."""


@dataclass(frozen=True)
class Told:
    """What the walk tells of one variable: a digest of all it saw, and where it saw less than all
    there is.
    """

    digest: str
    partial: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """The variables' items by name, sorted, and the lines of the nodes to which items refer
    (``runtime.interpreter.walk``).
    """

    roots: Mapping[str, str]
    lines: tuple[str, ...]
    definitions: Definitions = NO_DEFINITIONS

    @property
    def chars(self) -> int:
        """Characters that it takes to keep this."""
        return sum(map(len, self.lines)) + sum(map(len, self.roots.values()))

    @cached_property
    def told(self) -> dict[str, Told]:
        """What is told of each variable."""
        return {name: Told(nodes.digest, nodes.partial) for name, nodes in self._reached.items()}

    @cached_property
    def aliases(self) -> tuple[tuple[str, str], ...]:
        """Pairs of places in two variables that hold one and the same changeable object: the later
        one, and the first.
        """
        owners: dict[int, tuple[str, Reached]] = {}
        pairs: list[tuple[str, str]] = []
        for name, nodes in self._reached.items():
            shared = {node for node in nodes.order if node in owners and self._changeable(node)}
            for node in nodes.order:
                if node not in shared:
                    owners.setdefault(node, (name, nodes))
                elif nodes.parent(node) not in shared:
                    owner, of = owners[node]
                    pairs.append((name + nodes.place(node), owner + of.place(node)))
        return tuple(pairs)

    @cached_property
    def _reached(self) -> dict[str, Reached]:
        # One allowance for all variables: what several of them hold is visited for each.
        left = _VISITS * len(self.lines) + 1_000
        reached: dict[str, Reached] = {}
        by_root: dict[str, Reached] = {}
        for name, root in self.roots.items():
            # Names of one object reach the same nodes.
            if root not in by_root:
                by_root[root] = Reached(self, root, left)
                left -= len(by_root[root].order)
            reached[name] = by_root[root]
        return reached

    def _changeable(self, node: int) -> bool:
        """Whether the node is an object that a statement could change in place, as far as can be
        told.
        """
        line = self.lines[node]
        match line[:1]:
            case "=":
                return line[1:2] in ("[", "{")
            case "m":
                return not line.startswith("mtuple")
            case "s":
                return line.startswith("sset")
            case "#":
                return line.split("\t")[1] not in ("str", "bytes", "int", "tuple", "frozenset")
            case kind:
                return kind in "rdqi?"

    def parts(self, node: int) -> tuple[str, list[str], list[str]]:
        """A node that refers to others: its kind and type, the labels of its parts, and the
        parts.
        """
        kind, (type_, *rest) = self.lines[node][:1], self.lines[node][1:].split("\t")
        match kind:
            case "m":
                return "m" + type_, [f"[{i}]" for i in range(len(rest))], rest
            case "r":
                items = _run(rest)
                return "m" + type_, [f"[{i}]" for i in range(len(items))], items
            case "d":
                return "d" + type_, rest[::2], rest[1::2]
            case "q":
                return "d" + type_, rest[2:], _run(rest[:2])
            case "i" | "c":
                return kind + type_, ["." + name for name in rest[::2]], rest[1::2]
            case _:
                return kind + type_, [], []

    def leaf(self, node: int) -> str:
        """What stands for the content of a node that refers to no other."""
        line = self.lines[node]
        match line[:1]:
            case "#":
                return line[1 : line.index("\t")]
            case "f":
                return "f" + self.definitions.functions.get(line[1:], line[1:])
            case "=" | "s":
                return hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()
            case _:
                return line

    def omitted(self, node: int) -> str:
        """What the walk did not see of a node; empty if it saw all."""
        line = self.lines[node]
        type_, _, size = line[1:].partition("\t")
        match line[:1]:
            case "~":
                return f"a {type_} of {size}" if size != "0" else f"a {type_}"
            case "?":
                return f"the inside of a {type_}"
            case "f" if is_opaque(line[1:]):
                return "a function's defaults and captured variables"
            case "i" if self.definitions.dynamic:
                return f"attributes of a {type_} that were set by computed names"
            case _:
                return ""

    def label(self, node: int, label: str) -> str:
        """A part's label as it is written after its holder: ``[3]``, ``['a']`` or ``.x``."""
        if self.lines[node][:1] not in ("d", "q"):
            return label
        if not label.startswith("@"):
            return f"[{label}]"
        key = self.lines[int(label[1:])]
        return f"[{key[1:]}]" if key.startswith("=") and len(key) < 80 else "[...]"


class Reached:
    """The nodes that one item reaches, in a fixed order, and from where each was reached first."""

    def __init__(self, contents: Contents, root: str, bound: int) -> None:
        self._contents = contents
        self._root = root
        self._from: dict[int, tuple[int, str]] = {}
        self._cut = False
        self._hash = hashlib.sha256()
        self.order: list[int] = []
        self._numbers: dict[int, int] = {}
        self._item(root, -1, "")
        at = 0
        while at < len(self.order):
            if at > bound:
                # So many variables share so much that the digest is one of everything: it never
                # misses a change.
                self._cut = True
                self._hash.update(
                    "\n".join([*contents.roots.values(), *contents.lines]).encode(
                        "utf-8", "surrogatepass"
                    )
                )
                break
            self._node(self.order[at])
            at += 1

    def _item(self, item: str, holder: int, label: str) -> str:
        if not item.startswith("@"):
            return item
        node = int(item[1:])
        if node not in self._numbers:
            self._numbers[node] = len(self.order)
            self.order.append(node)
            self._from[node] = (holder, label)
        # By the order of visits: the walk's own numbers depend on what other variables hold, and a
        # digest is to change with its variable alone.
        return f"@{self._numbers[node]}"

    def _node(self, node: int) -> None:
        kind, labels, parts = self._contents.parts(node)
        if not labels:
            text = kind if kind[0] in "mdic" else self._contents.leaf(node)
        else:
            dict_ = kind.startswith("d")
            told = [kind]
            for label, part in zip(labels, parts, strict=True):
                if dict_ or kind[0] in "ic":
                    told.append(self._item(label, node, label) if dict_ else label)
                told.append(self._item(part, node, label))
            text = "\t".join(told)
        # The sandbox shows nothing of a class's methods, so its source stands for them.
        if kind.startswith("c"):
            text += "\t" + self._contents.definitions.sources.get(kind[1:], "")
        self._hash.update(text.encode("utf-8", "surrogatepass") + b"\n")

    @property
    def digest(self) -> str:
        """Of all that was reached; of the item itself if it refers to nothing."""
        if not self.order:
            self._hash.update(self._root.encode("utf-8", "surrogatepass"))
        return self._hash.hexdigest()[:DIGEST_CHARS]

    @property
    def partial(self) -> tuple[str, ...]:
        """What was left out, by place: the first few, and how many more."""
        places = list(self._omitted())
        more = (f"{len(places) - PARTIAL} more places",) if len(places) > PARTIAL else ()
        return (*places[:PARTIAL], *more)

    def _omitted(self) -> Iterator[str]:
        for node in self.order:
            if omitted := self._contents.omitted(node):
                place = self.place(node)
                yield f"{place}: {omitted}" if place else omitted

    def parent(self, node: int) -> int:
        """The node that held a node first, -1 for the variable itself."""
        return self._from[node][0]

    def place(self, node: int) -> str:
        """Where a node is in its variable: ``[3].x['a']``; empty for what the variable itself
        holds.
        """
        steps: list[str] = []
        while (holder := self._from[node][0]) >= 0:
            steps.append(self._contents.label(holder, self._from[node][1]))
            node = holder
        return "".join(reversed(steps))


def parse(text: str, hidden: frozenset[str]) -> Contents:
    """The contents that a walk told, without the names in ``hidden``."""
    head, _, body = text.partition("\n\n")
    roots = dict(line.split("\t", 1) for line in head.split("\n") if line)
    lines = tuple(body.split("\n")) if body else ()
    # What ``del`` took away: all such names are bound to one value.
    gone = {f"@{number}" for number, line in enumerate(lines) if line == f"?{UNBOUND}"}
    shown = sorted(name for name in roots if name not in hidden and roots[name] not in gone)
    return Contents(roots={name: roots[name] for name in shown}, lines=lines)


def items_of(text: str) -> list[object] | dict[object, object] | None:
    """The value of a literal that is a list, tuple or dict; None of another, and of one that is too
    long to be read.
    """
    if len(text) > 200_000 or text[:1] not in ("[", "(", "{"):
        return None
    try:
        value = literal(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return (
        list(value)
        if isinstance(value, list | tuple)
        else value
        if isinstance(value, dict)
        else None
    )


def _run(first_and_count: list[str]) -> list[str]:
    first, count = map(int, first_and_count)
    return [f"@{node}" for node in range(first, first + count)]
