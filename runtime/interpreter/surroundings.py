"""What a whole statement, and its session, say of how each part of the statement is lowered."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from runtime.interpreter import shape
from runtime.interpreter.dialect import Dialect


@dataclass(frozen=True)
class Surroundings:
    """What holds wherever in a statement a part of it stands."""

    files: bool
    """Whether it may hand files on that it opens."""
    enums: bool
    """Whether any class may be an enumeration."""
    lengths: bool
    """Whether any value may be of a class that has a length."""
    truths: bool
    """Whether any value may be of a class that has a truth."""
    regex: bool
    """Whether any object may be the module ``re``, or of it, under another name."""
    servers: frozenset[str]
    """The names that stand for the job's MCP servers, and ``OutcomeUnknown`` if it knows that."""
    functions: frozenset[str] = frozenset()
    """The names that stand for what the job can call."""
    looped: frozenset[str] = frozenset()
    """The names of such functions that are variables of loops here."""
    expressions: bool = False
    """Whether it may have regular expressions."""
    caught: frozenset[str] = frozenset()
    """The names of exceptions that it catches."""

    @classmethod
    def of(
        cls,
        source: str,
        tree: ast.AST,
        *,
        before: Sequence[str],
        names: frozenset[str],
        functions: frozenset[str],
        dialect: Dialect,
    ) -> Surroundings:
        """Those of a statement in a session that has the pieces ``before``; ``names`` and
        ``functions`` as for ``lower``.
        """
        # Once for all that looks through it: each walk through the tree is dear.
        nodes = tuple(ast.walk(tree))
        # The parser may make the name of other letters.
        opens = "open" in source or not source.isascii()
        enums = "_enum" in before or "Enum" in source
        truths = dialect >= Dialect.FAITHFUL and (
            "_truth" in before or "__len__" in source or "__bool__" in source
        )
        regex = dialect >= Dialect.ALIKE and ("_regex" in before or shape.renames(nodes, "re"))
        known = cls(
            files=opens and shape.hands_files_on(nodes),
            enums=enums,
            lengths=enums or truths or "_len" in before or "def __len__" in source,
            truths=truths,
            regex=regex,
            # A statement's own variable of a server's name hides the server, as it would in Python.
            servers=names - shape.bound(nodes) if names else names,
        )
        # The rest, which decides nothing before.
        if dialect < Dialect.NATURAL:
            return known
        bound = {shape.binds(node) for node in nodes}
        return replace(
            known,
            expressions="re" not in bound and (regex or "re." in source or "_patterns" in before),
            functions=functions - bound,
            looped=shape.only_looped(nodes, functions & bound),
            caught=frozenset(
                node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name
            ),
        )
